//! Pacers, by their promise: grants are spaced by what earlier ones cost, less what was saved.

use super::{Admitted, Oracle};
use crate::promise::{TEN_YEARS, interval};

/// Guava's steady mode, seen as a balance that idling raises up to a maximum and each grant lowers.
pub(super) struct Steady {
    interval: i128,
    savings: i128,
    own: bool,
}

impl Steady {
    pub(super) fn new(amount: u64, period: u64, savings: u64, own: bool) -> Steady {
        Steady { interval: interval(amount, period).into(), savings: savings.into(), own }
    }

    /// Returns the savings now, as time, or the debt if negative: the least that any stretch of the past leaves.
    fn balance(&self, admitted: &[Admitted], now: i128) -> i128 {
        let mut least = self.savings;
        let mut spent = 0;
        for start in admitted.iter().rev() {
            spent += start.units * self.interval;
            least = least.min(self.savings + (now - start.asked) - spent);
        }
        // At the epoch nothing was saved yet.
        least.min(now - spent)
    }
}

impl Oracle for Steady {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let balance = self.balance(admitted, now);
        let after = units * self.interval - balance;
        let delay = if self.own { after } else { -balance };
        (after <= i128::from(TEN_YEARS)).then_some(delay.max(0))
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, max_wait: i128) -> bool {
        !self.own || units * self.interval - self.savings <= max_wait
    }
}

/// Guava's warm-up in its own terms: permits and seconds, in floating point, from the published formulas.
pub(super) struct WarmUp {
    interval: f64,
    warm_up: f64,
    cold_interval: f64,
    threshold: f64,
    maximum: f64,
    own: bool,
}

impl WarmUp {
    pub(super) fn new(amount: u64, period: u64, warm_up: u64, cold_factor: u64, own: bool) -> WarmUp {
        let interval = interval(amount, period) as f64;
        let warm_up = warm_up as f64;
        let cold_interval = interval * cold_factor as f64;
        let threshold = 0.5 * warm_up / interval;
        let maximum = threshold + 2.0 * warm_up / (interval + cold_interval);
        WarmUp { interval, warm_up, cold_interval, threshold, maximum, own }
    }

    /// The time from one permit to the next when so many are stored.
    fn interval_at(&self, stored: f64) -> f64 {
        if stored <= self.threshold || self.maximum <= self.threshold {
            return self.interval;
        }
        let share = (stored - self.threshold) / (self.maximum - self.threshold);
        self.interval + share * (self.cold_interval - self.interval)
    }

    /// The time that it takes to hand out so many of the stored and then fresh permits, as trapezoids.
    fn time(&self, stored: f64, permits: f64) -> f64 {
        let steep = (stored - self.threshold).clamp(0.0, permits);
        let mean = (self.interval_at(stored) + self.interval_at(stored - steep)) / 2.0;
        steep * mean + (permits - steep) * self.interval
    }

    /// Stored permits and the next free instant, replayed from the first grant.
    fn replay(&self, admitted: &[Admitted], now: i128) -> (f64, f64) {
        let origin = admitted.first().map_or(now, |first| first.asked);
        let mut stored = self.maximum;
        let mut next_free = 0.0;
        let idle_until = |at: f64, stored: &mut f64, next_free: &mut f64| {
            if at > *next_free {
                *stored = (*stored + (at - *next_free) * self.maximum / self.warm_up).min(self.maximum);
                *next_free = at;
            }
        };
        for grant in admitted {
            idle_until((grant.asked - origin) as f64, &mut stored, &mut next_free);
            next_free += self.time(stored, grant.units as f64);
            stored = (stored - grant.units as f64).max(0.0);
        }
        let now = (now - origin) as f64;
        idle_until(now, &mut stored, &mut next_free);
        (stored, next_free - now)
    }
}

impl Oracle for WarmUp {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let (stored, owed) = self.replay(admitted, now);
        let after = owed + self.time(stored, units as f64);
        let delay = if self.own { after } else { owed };
        (after <= TEN_YEARS as f64).then_some(delay.ceil() as i128)
    }

    /// Waiting pays off what is owed, but makes it only colder.
    fn is_possible(&self, admitted: &[Admitted], now: i128, units: i128, max_wait: i128) -> bool {
        let (stored, _) = self.replay(admitted, now);
        !self.own || self.time(stored, units as f64) <= max_wait as f64
    }

    /// A microsecond, or what floating point cannot tell apart in long intervals.
    fn tolerance(&self) -> i128 {
        16_000.max((self.interval.max(self.warm_up) * 1e-9) as i128)
    }
}
