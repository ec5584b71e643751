//! What a zone counts about itself.
//!
//! Nothing is counted for a subject that has its cell and is not disturbed there; the rest is counted in many
//! places, by where the subject is kept, so that threads do not meet over a number.

use crate::sync::{Apart, AtomicU64, Ordering};

const STRIPES: usize = if cfg!(any(tidegate_models, miri)) { 1 } else { 32 };

/// What happened in a zone since it was made or opened here, and how full it is.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneCounts {
    /// Cells that there are.
    pub cells: usize,
    /// Cells that somebody owes something in: an estimate from a sample of a few thousand buckets, exact in small
    /// zones.
    pub live: usize,
    /// Cells that carry those who have none; from the same sample.
    pub shared: usize,
    /// Newcomers that got a cell.
    pub inserts: u64,
    /// Cells that became shared because a newcomer found neither bucket free.
    pub conversions: u64,
    /// Decisions about subjects without a cell of their own: they may have been refused early.
    pub shared_decisions: u64,
    /// Subjects that were forgotten, or not remembered, because their rule says so.
    pub forgotten: u64,
    /// Exchanges that another thread was faster with.
    pub retries: u64,
}

/// Counters of one stripe.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    pub(super) inserts: AtomicU64,
    pub(super) conversions: AtomicU64,
    pub(super) shared_decisions: AtomicU64,
    pub(super) forgotten: AtomicU64,
    pub(super) retries: AtomicU64,
    /// Places that newcomers have wanted; tells one attempt from another.
    pub(super) attempts: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Counters {
    stripes: Box<[Apart<Stripe>]>,
}

impl Counters {
    pub(super) fn new() -> Counters {
        Counters { stripes: (0..STRIPES).map(|_| Apart::default()).collect() }
    }

    pub(super) fn of(&self, place: usize) -> &Stripe {
        &self.stripes[place % STRIPES].0
    }

    pub(super) fn sum(&self, counter: impl Fn(&Stripe) -> &AtomicU64) -> u64 {
        self.stripes.iter().map(|stripe| counter(&stripe.0).load(Ordering::Relaxed)).sum()
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}
