//! A queue that lets callers through evenly.

use std::sync::Arc;

use crate::limit::Limit;
use crate::single::Single;
use crate::time::Clock;
use crate::wait::Acquire;

/// Releases callers one after the other as its limit says; clones share it.
///
/// Under a leaky bucket they leave evenly spaced, and as many as its queue has places may wait. Whoever gives
/// up leaves its place to those behind.
///
/// ```
/// use tidegate::{Limit, SECOND, Shaper};
///
/// let shaper = Shaper::new(Limit::leaky_bucket(100, SECOND).queue(50));
/// let first = shaper.pass().blocking()?;
/// assert!(first.duration.is_zero());
/// let second = shaper.pass().blocking()?; // 10 ms after the first
/// println!("waited {:?}", second.duration);
/// # Ok::<(), tidegate::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shaper {
    single: Single,
}

impl Shaper {
    /// A queue under this limit: a leaky bucket with as many places as its `queue` says (none unless set), or
    /// any other, which then says when each of those who wait may go.
    pub fn new(limit: Limit) -> Shaper {
        Shaper { single: Single::new(limit) }
    }

    /// A queue that goes by another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Shaper {
        Shaper { single: Single::with_clock(limit, clock) }
    }

    /// Lets at most so many wait at a time, whatever the limit has places for; 65,536 unless set.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Shaper {
        Shaper { single: self.single.max_waiters(most) }
    }

    /// Waits its turn; to be awaited on any runtime, or to block a thread with.
    pub fn pass(&self) -> Acquire {
        self.single.acquire()
    }

    /// Waits its turn with something heavier than one unit.
    pub fn pass_units(&self, units: u64) -> Acquire {
        self.single.acquire_units(units)
    }

    /// Puts another limit in force, for those who wait, too.
    pub fn set_limit(&self, limit: Limit) {
        self.single.set_limit(limit);
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.single.limit()
    }
}
