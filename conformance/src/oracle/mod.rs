//! Judges that know only the written promise and the list of what was admitted.
//!
//! An oracle looks at every interval, every window, every holder anew at each question. It is slow and
//! plain on purpose: no state is carried from one question to the next but the list itself.

mod bucket;
mod in_flight;
mod pace;
mod window;

use crate::promise::Promise;

/// One admitted action (or a denied one, where denials count).
#[derive(Clone, Copy, Debug)]
pub struct Admitted {
    /// The time of the ask, in ticks.
    pub asked: i128,
    /// The time at which it may act, in ticks.
    pub departs: i128,
    /// The cost.
    pub units: i128,
}

/// The written promise of one limit.
pub trait Oracle {
    /// Returns the wait of an ask, if it may be accepted at this instant at all.
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128>;

    /// Returns the longest wait that may be promised.
    fn longest_delay(&self) -> i128 {
        i128::MAX
    }

    /// Returns true if this cost can pass at some time from now on, with this max wait.
    fn is_possible(&self, admitted: &[Admitted], now: i128, units: i128, max_wait: i128) -> bool;

    /// Returns true if denials count too.
    fn counts_refusals(&self) -> bool {
        false
    }

    /// Returns the tolerated error of a reported span, in ticks.
    fn tolerance(&self) -> i128 {
        0
    }

    /// Returns true if an ask would be allowed at this instant.
    fn allows(&self, admitted: &[Admitted], now: i128, units: i128, max_wait: i128) -> bool {
        let max_wait = max_wait.min(self.longest_delay());
        self.delay(admitted, now, units).is_some_and(|delay| delay <= max_wait)
    }
}

/// The judge of a promise.
pub fn of(promise: &Promise) -> Box<dyn Oracle> {
    match *promise {
        Promise::TokenBucket { amount, period, burst, max_debt } => {
            Box::new(bucket::TokenBucket::new(amount, period, burst, max_debt))
        }
        Promise::LeakyBucket { amount, period, queue, delay_after, .. } => {
            Box::new(bucket::LeakyBucket::new(amount, period, queue, delay_after))
        }
        Promise::FixedWindow { amount, period, first_hit, .. } => {
            Box::new(window::Fixed { amount: amount.into(), period: period.into(), first_hit })
        }
        Promise::SlidingLog { amount, period, count_denied } => {
            Box::new(window::Trailing { amount: amount.into(), period: period.into(), count_denied })
        }
        Promise::SlidingWindow { amount, period, slots, .. } => {
            Box::new(window::Slotted::new(amount, period, slots))
        }
        Promise::Estimate { amount, period, .. } => {
            Box::new(window::Weighted { amount: amount.into(), period: period.into() })
        }
        Promise::Steady { amount, period, savings, own } => {
            Box::new(pace::Steady::new(amount, period, savings, own))
        }
        Promise::WarmUp { amount, period, warm_up, cold_factor, own } => {
            Box::new(pace::WarmUp::new(amount, period, warm_up, cold_factor, own))
        }
        Promise::Calendar { amount, calendar, .. } => {
            Box::new(window::PerPeriod { amount: amount.into(), periods: calendar.boundaries() })
        }
        Promise::Concurrency { max, .. } => Box::new(in_flight::InFlight { max: max.into() }),
    }
}
