//! What one subject was admitted, judged by arithmetic that shares nothing with the library.
//!
//! A bucket of burst B that earns one unit per T admits at most B + t/T in every interval of length t. All intervals
//! are watched at once by the time at which everything admitted so far is repaid: it may never be more than B·T ahead.
//!
//! A caller of a store knows the time of a decision only as being between two readings. The account takes the
//! earlier one where time repays and the later one where it judges: it never accuses wrongly, and since one unit
//! too many is a whole T ahead it misses nothing, either, as long as a call is shorter than that.

use std::time::Duration;

use tidegate::{Limit, Ticks, Timestamp};

/// A token bucket as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    amount: u64,
    period: Duration,
    burst: u64,
}

impl Bucket {
    pub(crate) const fn new(amount: u64, period: Duration, burst: u64) -> Bucket {
        Bucket { amount, period, burst }
    }

    /// The limit that promises this.
    pub(crate) fn limit(&self) -> Limit {
        Limit::token_bucket(self.amount, self.period).burst(self.burst)
    }

    pub(crate) const fn amount(&self) -> u64 {
        self.amount
    }

    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    pub(crate) const fn burst(&self) -> u64 {
        self.burst
    }

    /// The time in which one unit is earned, in ticks, rounded up.
    pub(crate) fn interval(&self) -> u64 {
        ticks(self.period).div_ceil(self.amount)
    }

    /// The most that may be admitted within this span.
    pub(crate) fn worst_case(&self, span: Duration) -> u64 {
        self.burst + ticks(span) / self.interval()
    }

    /// The prices by which an account is kept.
    pub(crate) fn prices(&self) -> Prices {
        Prices { interval: self.interval(), capacity: self.interval() * self.burst }
    }
}

/// A span in ticks.
pub(crate) fn ticks(span: Duration) -> u64 {
    Ticks::saturating_from(span).get()
}

/// The price of one unit and of all that may be owed, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    interval: u64,
    capacity: u64,
}

/// The time at which all that was admitted is repaid at the earliest, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account(u64);

impl Account {
    /// Enters one admission between two readings of the clock. Whether that was within the bound.
    pub(crate) fn admit(&mut self, prices: &Prices, before: Timestamp, after: Timestamp) -> bool {
        self.0 = self.0.max(before.ticks()) + prices.interval;
        self.0 <= after.ticks() + prices.capacity
    }
}

#[cfg(test)]
mod tests {
    use tidegate::{Ask, SECOND, State};

    use super::*;

    fn at(seconds: u32) -> Timestamp {
        Timestamp::after_epoch(seconds * SECOND)
    }

    #[test]
    fn an_account_admits_what_the_library_admits() {
        let bucket = Bucket::new(5, 60 * SECOND, 5);
        let mut random = conformance::random::Random::new(7);
        let (mut state, mut account, mut now) = (State::default(), Account::default(), at(100));
        for _ in 0..10_000 {
            now = now.saturating_add(conformance::ticks(random.sized(0, 1 << 40)));
            let mut tried = account;
            let within = tried.admit(&bucket.prices(), now, now);
            assert_eq!(bucket.limit().decide(&mut state, now, Ask::ONE).is_allowed(), within);
            if within {
                account = tried;
            }
        }
    }

    #[test]
    fn one_too_many_is_seen_and_a_doubt_about_the_time_is_no_breach() {
        let prices = Bucket::new(1, SECOND, 3).prices();
        let mut account = Account::default();
        assert!((0..3).all(|_| account.admit(&prices, at(10), at(10))));
        let (mut sure, mut unsure) = (account, account);
        assert!(!sure.admit(&prices, at(10), at(10)));
        assert!(unsure.admit(&prices, at(10), at(11)), "it may have been a second later");
    }

    #[test]
    fn the_most_in_a_span_is_the_burst_and_what_is_earned() {
        let bucket = Bucket::new(5, 60 * SECOND, 5);
        assert_eq!(bucket.interval(), ticks(12 * SECOND));
        assert_eq!((bucket.worst_case(Duration::ZERO), bucket.worst_case(60 * SECOND)), (5, 10));
        assert_eq!(bucket.worst_case(12 * SECOND - Duration::from_nanos(1)), 5);
        assert_eq!(Bucket::new(3, Duration::from_nanos(1), 1).interval(), 6, "rounded up");
    }
}
