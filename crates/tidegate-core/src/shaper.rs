//! A traffic shaper: a queue that releases callers at an even rate.

use std::sync::Arc;

use crate::direct::{DirectLimiter, DirectLimiterBuilder};
use crate::limit::Limit;
use crate::time::Clock;
use crate::wait::Acquire;

/// A queue that releases callers one after the other at the rate of its limit; clones share it.
///
/// Under a leaky bucket, callers leave evenly spaced, unless `delay-after` is set, and at most its `queue` of them
/// wait. When a waiter gives up, the waiters behind it move up.
///
/// ```
/// use tidegate::{Limit, SECOND, Shaper};
///
/// let shaper = Shaper::new(Limit::leaky_bucket(100, SECOND).queue(50));
/// let first = shaper.acquire().blocking()?;
/// assert!(first.duration.is_zero());
/// let second = shaper.acquire().blocking()?; // 10 ms after the first
/// println!("waited {:?}", second.duration);
/// # Ok::<(), tidegate::Denied>(())
/// ```
///
/// # Bounds of the queue
///
/// Callers wait in one FIFO queue with two bounds:
///
/// | bound | set by | counts | default |
/// |---|---|---|---|
/// | of the limit | `queue N`, [`Limit::queue`] | waiting units, only under a leaky bucket | 0: no caller waits |
/// | of the handle | `max_waiters`, [`Shaper::set_max_waiters`] | waiting callers, under any limit | 65,536 |
///
/// If either bound is reached, `acquire` is denied at once and [`Denied::is_queue_full`](crate::Denied::is_queue_full)
/// is true. Its `retry_after` is the predicted wait at the end of the full queue, or a lower bound of it. After the
/// predicted wait, the same ask passes at once if no other caller asks meanwhile. The queue has room earlier: as soon
/// as enough waiters have left.
///
/// ```
/// use std::sync::Arc;
/// use tidegate::{Limit, MILLISECOND, ManualClock, SECOND, Shaper};
///
/// let limit = Limit::leaky_bucket(10, SECOND).queue(2);
/// let shaper = Shaper::with_clock(limit, Arc::new(ManualClock::new()));
/// shaper.acquire().blocking()?; // leaves at once
/// let waiting = [shaper.acquire().enqueue(), shaper.acquire().enqueue()]; // leave after 100 ms and 200 ms
/// let denied = shaper.acquire().blocking().unwrap_err();
/// assert!(denied.is_queue_full());
/// assert_eq!(denied.retry_after(), Some(300 * MILLISECOND));
/// # drop(waiting);
/// # Ok::<(), tidegate::Denied>(())
/// ```
#[doc(alias("leaky bucket", "traffic shaping", "queue", "limit_req"))]
#[derive(Clone, Debug)]
pub struct Shaper {
    single: DirectLimiter,
}

impl Shaper {
    /// Creates a shaper under this limit. A leaky bucket queues at most as many callers as its `queue` (0 unless
    /// set). With any other algorithm, the limit determines when each waiter may go.
    pub fn new(limit: Limit) -> Shaper {
        Shaper { single: DirectLimiter::new(limit) }
    }

    /// Creates a shaper that reads another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Shaper {
        Shaper { single: DirectLimiter::with_clock(limit, clock) }
    }

    /// Creates a builder for a shaper under this limit.
    pub fn builder(limit: Limit) -> ShaperBuilder {
        ShaperBuilder { single: DirectLimiter::builder(limit) }
    }

    /// Sets the largest number of waiters at a time, a bound in addition to the limit's own `queue`; see
    /// [bounds of the queue](Shaper#bounds-of-the-queue). The default is 65,536.
    ///
    /// An `acquire` that finds the queue full is denied at once; `Denied::is_queue_full` is then true.
    pub fn set_max_waiters(&self, most: usize) {
        self.single.set_max_waiters(most);
    }

    /// Waits for its turn with one unit. The future runs on any runtime; it can also block a thread.
    ///
    /// The result states how long the caller waited. A dropped future leaves the queue, and the waiters behind it move
    /// up.
    #[doc(alias("pass"))]
    pub fn acquire(&self) -> Acquire {
        self.single.acquire()
    }

    /// Waits for its turn with this many units.
    ///
    /// The units leave together; the next caller follows after all of them have drained.
    pub fn acquire_units(&self, units: u64) -> Acquire {
        self.single.acquire_units(units)
    }

    /// Replaces the limit, also for callers that already wait.
    pub fn set_limit(&self, limit: Limit) {
        self.single.set_limit(limit);
    }

    /// Returns the limit in force.
    pub fn limit(&self) -> Limit {
        self.single.limit()
    }
}

/// A builder for a [`Shaper`]: its clock and its queue.
///
/// ```
/// use tidegate::{Limit, SECOND, Shaper};
///
/// let limit = Limit::leaky_bucket(100, SECOND).queue(50);
/// let shaper = Shaper::builder(limit).max_waiters(100).build();
/// assert_eq!(shaper.limit(), limit);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ShaperBuilder {
    single: DirectLimiterBuilder,
}

impl ShaperBuilder {
    /// Sets the clock; a [`CounterClock`](crate::CounterClock) unless set.
    pub fn clock(self, clock: Arc<dyn Clock>) -> ShaperBuilder {
        ShaperBuilder { single: self.single.clock(clock) }
    }

    /// Sets the largest number of waiters at a time; see [`Shaper::set_max_waiters`].
    pub fn max_waiters(self, most: usize) -> ShaperBuilder {
        ShaperBuilder { single: self.single.max_waiters(most) }
    }

    /// Creates the shaper.
    pub fn build(self) -> Shaper {
        Shaper { single: self.single.build() }
    }
}
