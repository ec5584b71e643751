//! A pacer, which spaces calls evenly, as Guava's `RateLimiter` does.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::direct::DirectLimiter;
use crate::limit::{Limit, LimitBuilder, LimitError, Rate};
use crate::time::{Clock, SECOND};
use crate::wait::Acquire;

/// A limiter that admits callers at a steady rate, with or without a warm-up; clones share it.
///
/// A caller waits for the cost of earlier callers. Its own cost delays the next one.
///
/// ```
/// use tidegate::{Pacer, SECOND};
///
/// let pacer = Pacer::per_second(5).warm_up(4 * SECOND);
/// let waited = pacer.acquire(1).blocking()?;
/// assert!(waited.duration.is_zero()); // the first one is free
/// pacer.set_rate("10/s".parse()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("RateLimiter", "Guava", "SmoothBursty", "SmoothWarmingUp", "throttle"))]
#[derive(Clone, Debug)]
pub struct Pacer {
    single: DirectLimiter,
}

impl Pacer {
    /// Creates a pacer of this many permits per second.
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

    /// Sets the length of the warm-up; the pacer starts cold.
    ///
    /// # Panics
    /// If the length does not fit the rate; see [`Limit::warm_up`].
    #[doc(alias("slow start", "cold start"))]
    #[must_use]
    pub fn warm_up(self, length: Duration) -> Pacer {
        self.single.set_limit(self.single.limit().warm_up(length));
        Pacer { single: self.single.begun() }
    }

    /// Sets the span of idle time for which permits are saved; one second unless set.
    ///
    /// # Panics
    /// If the pacer also warms up; see [`Limit::burst_span`].
    #[must_use]
    pub fn burst_span(self, span: Duration) -> Pacer {
        self.single.set_limit(self.single.limit().burst_span(span));
        self
    }

    /// Sets the largest number of waiters at a time, for this pacer and all its clones. The default is 65,536.
    ///
    /// An `acquire` that finds the queue full is denied at once; `Denied::is_queue_full` is then true.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Pacer {
        Pacer { single: self.single.max_waiters(most) }
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

/// Returns true for limits that a pacer can keep.
fn paces(limit: Limit) -> bool {
    limit.algorithm() == Algorithm::Pacer
}
