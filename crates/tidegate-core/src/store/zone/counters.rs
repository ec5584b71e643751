//! The counters of a zone.
//!
//! Nothing is counted for a key that has a cell and no contention there. All other events are counted in stripes,
//! chosen by the key's bucket, so that threads do not contend for one counter.

use crate::sync::{AtomicU64, CachePadded, Ordering};

const STRIPES: usize = if cfg!(any(tidegate_models, miri)) { 1 } else { 32 };

/// The events in a zone since it was created or opened in this process, and its fill level.
///
/// ```
/// use tidegate::{Limit, Limiter, Zone};
///
/// let zone = Zone::new(1 << 20);
/// let limiter = Limiter::on(&zone, "user", Limit::per_second(10));
/// assert!(limiter.admit("ana").is_allowed());
/// let counts = zone.counts();
/// assert_eq!((counts.cells, counts.inserts, counts.shared_decisions), (65_536, 1, 0));
/// ```
#[doc(alias = "metrics")]
#[doc(alias = "statistics")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneCounts {
    /// The number of cells.
    pub cells: usize,
    /// The number of cells with debt: an estimate from a sample of a few thousand buckets, exact in small zones.
    pub live: usize,
    /// The number of shared cells, each used by all keys without a cell; from the same sample.
    pub shared: usize,
    /// The number of new keys that got a cell.
    pub inserts: u64,
    /// The number of cells that became shared because a new key found both buckets full.
    pub conversions: u64,
    /// The number of decisions on keys without a cell of their own, which may have been denied early.
    pub shared_decisions: u64,
    /// The number of keys that were forgotten, or not stored, because their rule uses
    /// [`WhenFull::Forget`](crate::WhenFull::Forget).
    pub forgotten: u64,
    /// The number of attempts that were repeated because another thread was faster.
    pub retries: u64,
}

/// The counters of one stripe.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    pub(super) inserts: AtomicU64,
    pub(super) conversions: AtomicU64,
    pub(super) shared_decisions: AtomicU64,
    pub(super) forgotten: AtomicU64,
    pub(super) retries: AtomicU64,
    /// The number of tentative cells written, by which attempts are distinguished.
    pub(super) attempts: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Counters {
    stripes: Box<[CachePadded<Stripe>]>,
}

impl Counters {
    pub(super) fn new() -> Counters {
        Counters { stripes: (0..STRIPES).map(|_| CachePadded::default()).collect() }
    }

    pub(super) fn of(&self, place: usize) -> &Stripe {
        &self.stripes[place % STRIPES].0
    }

    pub(super) fn sum(&self, counter: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        self.stripes.iter().map(|stripe| counter(&stripe.0).load(Ordering::Relaxed)).sum()
    }
}

/// Increments a counter.
pub(super) fn count(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}
