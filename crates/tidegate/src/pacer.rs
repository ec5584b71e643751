//! Spaces calls out, as Guava's `RateLimiter` does.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::limit::{Draft, Limit, LimitError, Rate};
use crate::single::Single;
use crate::time::{Clock, SECOND};
use crate::wait::Acquire;

/// Lets callers through at a steady rate, with or without a warm-up; clones share it.
///
/// A grant waits for what earlier ones cost; what it costs itself, the next one waits for.
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
#[derive(Clone, Debug)]
pub struct Pacer {
    single: Single,
}

impl Pacer {
    /// A pacer of so many per second.
    ///
    /// # Panics
    /// If that is no rate: zero, or more than 10,000,000. For numbers from outside there is [`Pacer::new`].
    pub fn per_second(permits: u64) -> Pacer {
        Pacer { single: Single::new(Limit::pacer(permits, SECOND)).begun() }
    }

    /// A pacer under a limit of the algorithm `pacer`; none if it is of another one.
    pub fn new(limit: Limit) -> Option<Pacer> {
        paces(limit).then(|| Pacer { single: Single::new(limit).begun() })
    }

    /// A pacer like [`Pacer::new`] that goes by another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Option<Pacer> {
        paces(limit).then(|| Pacer { single: Single::with_clock(limit, clock).begun() })
    }

    /// Warms up in this time, beginning cold.
    ///
    /// # Panics
    /// If it does not fit the rate; see [`Limit::warm_up`].
    #[must_use]
    pub fn warm_up(self, length: Duration) -> Pacer {
        self.single.set_limit(self.single.limit().warm_up(length));
        Pacer { single: self.single.begun() }
    }

    /// Saves up for this long while nobody asks; one second unless set.
    ///
    /// # Panics
    /// If it also warms up; see [`Limit::burst_span`].
    #[must_use]
    pub fn burst_span(self, span: Duration) -> Pacer {
        self.single.set_limit(self.single.limit().burst_span(span));
        self
    }

    /// Lets at most so many wait at a time, here and in all clones; 65,536 unless set.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Pacer {
        Pacer { single: self.single.max_waiters(most) }
    }

    /// Waits for so many permits at once; to be awaited on any runtime, or to block a thread with.
    pub fn acquire(&self, permits: u64) -> Acquire {
        self.single.acquire_units(permits)
    }

    /// So many permits now, or not at all.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn admit(&self, permits: u64) -> Decision {
        self.single.admit_units(permits)
    }

    /// Goes on at another rate. What is owed stays; what is saved keeps its share of the most that can be.
    pub fn set_rate(&self, rate: Rate) -> Result<(), LimitError> {
        self.single.change_limit(|limit| Draft::with_other_rate(limit.draft(), rate).build())
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.single.limit()
    }
}

fn paces(limit: Limit) -> bool {
    limit.algorithm() == Algorithm::Pacer
}
