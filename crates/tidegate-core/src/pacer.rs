//! A pacer, which spaces calls, and saves idle time for bursts, as Guava's `RateLimiter` does.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::direct::{DirectLimiter, DirectLimiterBuilder};
use crate::limit::{Limit, LimitBuilder, LimitError, Rate};
use crate::time::{Clock, SECOND};
use crate::wait::Acquire;

/// A limiter that spaces callers at a rate, with savings from idle time or with a warm-up; clones share it.
///
/// A caller waits for the cost of earlier callers. Its own cost delays the next one.
///
/// ```
/// use tidegate::{Pacer, SECOND};
///
/// let pacer = Pacer::builder(5).warm_up(4 * SECOND).build(); // or `Pacer::per_second(5)`
/// let waited = pacer.acquire(1).blocking()?;
/// assert!(waited.duration.is_zero()); // the first one is free
/// pacer.set_rate("10/s".parse()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Bursts after idle time
///
/// Without a warm-up, a pacer saves up to one second of idle time unless set, as Guava's `RateLimiter` does. After a
/// pause, the saved permits are granted at one instant. A new pacer has no savings. With
/// [`burst_span(Duration::ZERO)`](PacerBuilder::burst_span) (`burst 0s` in a text) nothing is saved, and calls stay
/// spaced after a pause. With a warm-up there is no burst: saved permits are slower, not free.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tidegate::{ManualClock, Pacer, SECOND};
///
/// let clock = Arc::new(ManualClock::new());
/// let bursty = Pacer::builder(10).clock(clock.clone()).build();
/// let even = Pacer::builder(10).burst_span(Duration::ZERO).clock(clock.clone()).build();
/// clock.advance(60 * SECOND); // a pause
///
/// let granted = |pacer: &Pacer| std::iter::repeat_with(|| pacer.admit(1)).take_while(|now| now.is_allowed()).count();
/// assert_eq!(granted(&bursty), 11); // ten saved permits, and one for whose cost the next caller waits
/// assert_eq!(granted(&even), 1);
/// ```
///
/// A [`Shaper`](crate::Shaper) under a leaky bucket also spaces calls without bursts, and bounds its queue.
#[doc(alias("RateLimiter", "Guava", "SmoothBursty", "SmoothWarmingUp", "throttle"))]
#[derive(Clone, Debug)]
pub struct Pacer {
    single: DirectLimiter,
}

impl Pacer {
    /// Creates a pacer of this many permits per second. It saves up to one second of idle time.
    ///
    /// # Panics
    /// If the rate is zero or more than 10,000,000. For numbers known only at run time, use [`Pacer::new`].
    pub fn per_second(permits: u64) -> Pacer {
        Pacer { single: DirectLimiter::new(Limit::pacer(permits, SECOND)).begun() }
    }

    /// Creates a pacer under a limit of the algorithm `pacer`; `None` for any other algorithm.
    pub fn new(limit: Limit) -> Option<Pacer> {
        paces(limit).then(|| Pacer { single: DirectLimiter::new(limit).begun() })
    }

    /// Creates a pacer like [`Pacer::new`] that reads another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Option<Pacer> {
        paces(limit).then(|| Pacer { single: DirectLimiter::with_clock(limit, clock).begun() })
    }

    /// Sets the largest number of waiters at a time, for this pacer and all its clones. The default is 65,536.
    ///
    /// An `acquire` that finds the queue full is denied at once; `Denied::is_queue_full` is then true.
    pub fn set_max_waiters(&self, most: usize) {
        self.single.set_max_waiters(most);
    }

    /// Waits for this many permits at once. The future runs on any runtime; it can also block a thread.
    ///
    /// A large grant passes as early as a small one; the next caller waits for its cost. With
    /// [`Pay::Own`](crate::Pay::Own), the caller waits for its own cost.
    pub fn acquire(&self, permits: u64) -> Acquire {
        self.single.acquire_units(permits)
    }

    /// Takes this many permits now, or denies.
    #[doc(alias("try_acquire", "tryAcquire"))]
    #[must_use = "a decision that is not read limits nothing"]
    pub fn admit(&self, permits: u64) -> Decision {
        self.single.admit_units(permits)
    }

    /// Sets another rate. The debt stays; the saved permits keep their fraction of the maximum.
    ///
    /// # Errors
    /// If the rate does not fit the other settings of the limit; the old rate stays in force.
    #[doc(alias("setRate"))]
    pub fn set_rate(&self, rate: Rate) -> Result<(), LimitError> {
        self.single.change_limit(|limit| LimitBuilder::with_other_rate(limit.draft(), rate).build())
    }

    /// Returns the limit in force.
    pub fn limit(&self) -> Limit {
        self.single.limit()
    }
}

/// A builder for a [`Pacer`]: its warm-up or its savings, its clock and its queue.
///
/// ```
/// use tidegate::{Pacer, SECOND};
///
/// let pacer = Pacer::builder(10).burst_span(3 * SECOND).max_waiters(100).build();
/// assert_eq!(pacer.limit().to_string(), "10/s burst 3s pacer");
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct PacerBuilder {
    single: DirectLimiterBuilder,
}

impl Pacer {
    /// Creates a builder for a pacer of this many permits per second.
    ///
    /// # Panics
    /// If the rate is zero or more than 10,000,000. For numbers known only at run time, use [`Pacer::builder_of`].
    pub fn builder(permits: u64) -> PacerBuilder {
        PacerBuilder { single: DirectLimiter::builder(Limit::pacer(permits, SECOND)) }
    }

    /// Creates a builder for a pacer under a limit of the algorithm `pacer`; `None` for any other algorithm.
    pub fn builder_of(limit: Limit) -> Option<PacerBuilder> {
        paces(limit).then(|| PacerBuilder { single: DirectLimiter::builder(limit) })
    }
}

impl PacerBuilder {
    /// Sets the length of the warm-up; the pacer starts cold.
    ///
    /// # Panics
    /// If the length does not fit the rate; see [`Limit::warm_up`].
    #[doc(alias("slow start", "cold start"))]
    pub fn warm_up(self, length: Duration) -> PacerBuilder {
        PacerBuilder { single: self.single.limit(|limit| limit.warm_up(length)) }
    }

    /// Sets the span of idle time for which permits are saved; one second unless set. Zero saves none, so that no burst
    /// follows idle time.
    ///
    /// # Panics
    /// If the pacer also warms up; see [`Limit::burst_span`].
    pub fn burst_span(self, span: Duration) -> PacerBuilder {
        PacerBuilder { single: self.single.limit(|limit| limit.burst_span(span)) }
    }

    /// Sets the clock; a [`CounterClock`](crate::CounterClock) unless set.
    pub fn clock(self, clock: Arc<dyn Clock>) -> PacerBuilder {
        PacerBuilder { single: self.single.clock(clock) }
    }

    /// Sets the largest number of waiters at a time; see [`Pacer::set_max_waiters`].
    pub fn max_waiters(self, most: usize) -> PacerBuilder {
        PacerBuilder { single: self.single.max_waiters(most) }
    }

    /// Creates the pacer.
    pub fn build(self) -> Pacer {
        Pacer { single: self.single.build().begun() }
    }
}

/// Returns true for limits that a pacer can keep.
fn paces(limit: Limit) -> bool {
    limit.algorithm() == Algorithm::Pacer
}
