//! The limits of this drill as numbers, so that their bounds can be computed apart from the library.

use std::time::Duration;

use tidegate::{DelayAfter, Limit, MINUTE, SECOND};

use crate::account::{Bucket, Prices, ticks};

/// How far readings may be out of order without being a step of the clock.
pub(super) const OUT_OF_ORDER: Duration = Duration::from_millis(100);

/// A limit whose states fit a cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Terms {
    Tokens(Bucket),
    /// A queue of so many places, one of which is being served; those in it wait, or not.
    Queue(Bucket, DelayAfter),
    Window {
        amount: u64,
        period: Duration,
    },
}

/// Every burst is repaid within an hour, which is what clocks jump by.
pub(super) const ALL: [Terms; 9] = [
    Terms::Tokens(Bucket::new(5, MINUTE, 5)),
    Terms::Tokens(Bucket::new(10, SECOND, 20)),
    Terms::Tokens(Bucket::new(100, SECOND, 3)),
    Terms::Tokens(Bucket::new(1, Duration::from_secs(600), 2)),
    Terms::Queue(Bucket::new(10, SECOND, 6), DelayAfter::All),
    Terms::Queue(Bucket::new(10, SECOND, 16), DelayAfter::Units(0)),
    Terms::Queue(Bucket::new(2, MINUTE, 4), DelayAfter::Units(1)),
    Terms::Window { amount: 5, period: Duration::from_secs(10) },
    Terms::Window { amount: 3, period: MINUTE },
];

impl Terms {
    pub(super) fn limit(&self) -> Limit {
        match self {
            Terms::Tokens(bucket) => bucket.limit(),
            Terms::Queue(bucket, delay_after) => {
                let queue = Limit::leaky_bucket(bucket.amount(), bucket.period()).queue(bucket.burst() - 1);
                queue.delay_after(*delay_after)
            }
            Terms::Window { amount, period } => Limit::fixed_window(*amount, *period),
        }
    }

    /// What passes at one instant from rest.
    pub(super) fn burst(&self) -> u64 {
        match self {
            Terms::Tokens(bucket) | Terms::Queue(bucket, _) => bucket.burst(),
            Terms::Window { amount, .. } => *amount,
        }
    }

    /// Whether max wait only says how long an admission may be put off, and admits no more than there is room for.
    pub(super) fn has_queue(&self) -> bool {
        matches!(self, Terms::Queue(..))
    }

    /// The prices by which its accounts are kept, unless it counts.
    pub(super) fn prices(&self) -> Option<Prices> {
        match self {
            Terms::Tokens(bucket) | Terms::Queue(bucket, _) => Some(bucket.prices()),
            Terms::Window { .. } => None,
        }
    }

    /// The longest that anybody has to wait who asks for so many, in ticks. What late charges may add, and what is
    /// left of a debt after the clock was set back, is one more burst.
    pub(super) fn longest_wait(&self, cost: u64) -> u64 {
        match self {
            Terms::Tokens(bucket) | Terms::Queue(bucket, DelayAfter::All) => {
                (cost + bucket.burst()) * bucket.interval() + ticks(OUT_OF_ORDER)
            }
            // Who does not want to be delayed waits until no other is before it.
            Terms::Queue(bucket, DelayAfter::Units(_)) => {
                2 * bucket.burst() * bucket.interval() + ticks(OUT_OF_ORDER)
            }
            Terms::Window { period, .. } => 2 * ticks(*period),
        }
    }

    /// Whether the slowest of readers that are so far apart never takes the fastest for a step back.
    pub(super) fn outlasts(&self, apart: Duration) -> bool {
        match self {
            Terms::Tokens(bucket) | Terms::Queue(bucket, _) => {
                bucket.interval() * bucket.burst() + ticks(OUT_OF_ORDER) >= ticks(apart)
            }
            Terms::Window { period, .. } => *period >= apart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_holds_what_its_burst_says() {
        let texts = ALL.map(|terms| terms.limit().to_string());
        assert_eq!(texts[4], "10/s queue 5 delay-after all leaky-bucket");
        assert!(ALL.iter().all(|terms| terms.prices().is_none() || terms.longest_wait(1) > 0));
    }

    #[test]
    fn a_short_burst_does_not_outlast_a_second() {
        let outlasts = ALL.map(|terms| terms.outlasts(SECOND));
        assert_eq!(outlasts.iter().filter(|outlasts| !**outlasts).count(), 2);
        assert!(!outlasts[2] && !outlasts[4], "100/s burst 3 and 10/s queue 5");
    }
}
