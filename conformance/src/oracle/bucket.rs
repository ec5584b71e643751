//! Buckets, by their promise: in every interval at most so much.

use super::{Admitted, Oracle};
use crate::promise::interval;

/// Over any time t at most `burst + t / interval` departs.
pub(super) struct TokenBucket {
    interval: i128,
    burst: i128,
    max_debt: i128,
}

impl TokenBucket {
    pub(super) fn new(amount: u64, period: u64, burst: u64, max_debt: u64) -> TokenBucket {
        let interval = interval(amount, period).into();
        TokenBucket { interval, burst: burst.into(), max_debt: max_debt.into() }
    }
}

impl Oracle for TokenBucket {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        if units > self.burst {
            return None;
        }
        let mut earliest = now;
        let mut within = units;
        // Every interval that begins with an earlier departure and ends with this one.
        for first in admitted.iter().rev() {
            within += first.units;
            let beyond_burst = within - self.burst;
            earliest = earliest.max(first.departs + beyond_burst * self.interval);
        }
        Some(earliest - now)
    }

    fn longest_delay(&self) -> i128 {
        self.max_debt * self.interval
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.burst
    }
}

/// Accepted while what has not drained, and this, are at most `queue + 1`; delayed by what is ahead.
pub(super) struct LeakyBucket {
    interval: i128,
    places: i128,
    /// The units ahead that cause no delay; `None`: any number.
    undelayed: Option<i128>,
}

impl LeakyBucket {
    pub(super) fn new(amount: u64, period: u64, queue: u64, delay_after: Option<u64>) -> LeakyBucket {
        let interval = interval(amount, period).into();
        LeakyBucket { interval, places: i128::from(queue) + 1, undelayed: delay_after.map(i128::from) }
    }

    /// The time that it takes to drain what was accepted before.
    fn ahead(&self, admitted: &[Admitted], now: i128) -> i128 {
        let mut ahead = 0;
        let mut units = 0;
        // Since any of these it has drained without a pause, or less was accepted than could drain.
        for first in admitted.iter().rev() {
            units += first.units;
            ahead = ahead.max(units * self.interval - (now - first.asked));
        }
        ahead
    }
}

impl Oracle for LeakyBucket {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let ahead = self.ahead(admitted, now);
        if ahead + units * self.interval > self.places * self.interval {
            return None;
        }
        let undelayed = self.undelayed.map_or(ahead, |units| units * self.interval);
        Some((ahead - undelayed).max(0))
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.places
    }
}
