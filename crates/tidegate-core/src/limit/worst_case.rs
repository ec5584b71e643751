//! The worst case of a limit: the most that it admits, whatever its callers do.
//!
//! Each bound is proven and reached, to the tick; the tests try all sequences of asks with small numbers. It applies to
//! one key, while its clock does not step, its limit does not change and its state is not dropped. Refunded cost may be
//! spent again.

use std::time::Duration;

use super::{AlgorithmParams, Limit};
use crate::algorithm::debt::Metered as _;
use crate::time::Ticks;

/// The most that can pass; see [`Limit::worst_case`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorstCase {
    /// So many units, for asks of any cost.
    Units(u64),
    /// So many units, and one grant of any size beside them. With asks that cost 1, that is one more than this number.
    ///
    /// A pacer lets a grant of any size act at once. Either later grants wait for it, or it waits before.
    UnitsAndOneGrant(u64),
    /// So many at the same time. The number that begin and end has no bound, however short the time.
    InFlight(u64),
    /// No bound at all.
    Unbounded,
}

impl WorstCase {
    fn units(units: u128) -> WorstCase {
        WorstCase::Units(saturated(units))
    }
}

impl Limit {
    /// Returns the most that can pass within any closed interval of this length. Of length zero, at one instant.
    ///
    /// A request that was promised a later time counts at that time. T is the time from one unit to the next, rounded
    /// up to a tick; W is the period, S the length of a slot, t that of the interval.
    ///
    /// | algorithm | most | asks that cost 1 reach it |
    /// |---|---|---|
    /// | token-bucket | burst + ⌊t / T⌋ | yes |
    /// | leaky-bucket | queue + 1 + ⌊t / T⌋ | so many are accepted; beyond `delay-after` they leave one per T, and only a larger cost leaves as a whole |
    /// | fixed-window | limit · (⌈t / W⌉ + 1) | yes |
    /// | from the first hit | one less, unless t is a multiple of W | yes |
    /// | sliding-log | limit · (⌊t / W⌋ + 1) | yes: an action exactly W ago has left |
    /// | sliding-window | limit · (⌊⌈t / S⌉ / (slots + 1)⌋ + 1) | yes |
    /// | by estimate | 2 · limit − 1 in one W, and limit − 1 in each further one (with a limit of 1, one in every other) | yes |
    /// | pacer | ⌊(savings + t) / T⌋, one less with savings and `pay self`, and one grant | yes |
    /// | warming up | ⌊t / T⌋, and one grant | yes, when it is warm |
    /// | concurrency | max, at a time | yes |
    /// | calendar | limit · (⌈(t + o) / P⌉ + 1), with the shortest period P and the largest difference o of the zone's offsets | hours, days and weeks of UTC |
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limit, WorstCase, SECOND};
    ///
    /// let limit: Limit = "10/s burst 20".parse()?;
    /// assert_eq!(limit.worst_case(Duration::ZERO), WorstCase::Units(20));
    /// assert_eq!(limit.worst_case(60 * SECOND), WorstCase::Units(620));
    /// let windows: Limit = "10/s fixed-window".parse()?;
    /// assert_eq!(windows.worst_case(SECOND), WorstCase::Units(20));
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    pub fn worst_case(&self, span: Duration) -> WorstCase {
        // The span saturates: no interval is longer than all representable time.
        self.most_within(Ticks::saturating_from(span))
    }

    /// Returns the most for every shorter interval, such as a trailing period, which does not include its first
    /// instant.
    ///
    /// ```
    /// use tidegate::{Limit, WorstCase, SECOND};
    ///
    /// let limit: Limit = "10/s sliding-log".parse()?;
    /// assert_eq!(limit.worst_case(SECOND), WorstCase::Units(20));
    /// assert_eq!(limit.worst_case_trailing(SECOND), WorstCase::Units(10));
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    pub fn worst_case_trailing(&self, span: Duration) -> WorstCase {
        self.most_within(Ticks::saturating_from(span).saturating_sub(Ticks::new(1)))
    }

    fn most_within(&self, span: Ticks) -> WorstCase {
        match &self.terms {
            AlgorithmParams::TokenBucket(bucket) => WorstCase::units(bucket.debt().worst_case(span)),
            AlgorithmParams::LeakyBucket(bucket) => WorstCase::units(bucket.debt().worst_case(span)),
            AlgorithmParams::FixedWindow(window) => WorstCase::units(window.worst_case(span)),
            AlgorithmParams::Calendar(calendar) => WorstCase::units(calendar.worst_case(span)),
            AlgorithmParams::SlidingLog(log) => WorstCase::units(log.worst_case(span)),
            AlgorithmParams::SlidingWindow(window) => WorstCase::units(window.worst_case(span)),
            AlgorithmParams::Pacer(pacer) => match pacer.most_beside_one(span) {
                Some(units) => WorstCase::UnitsAndOneGrant(saturated(units)),
                None => WorstCase::Unbounded,
            },
            AlgorithmParams::Concurrency(concurrency) => WorstCase::InFlight(concurrency.max()),
        }
    }
}

fn saturated(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(tidegate_models)))]
mod tests;
