//! The units that passed, in real time, whatever the clock showed.

use super::promises::bounds;
use crate::promise::Promise;

/// Everything that passed, by the time that really went by, and what excuses more than usual.
#[derive(Default)]
pub(super) struct Ledger {
    admitted: Vec<(i128, i128)>,
    refunds: Vec<(i128, i128)>,
    excuses: Vec<i128>,
    burst: i128,
    interval: i128,
    period: i128,
    longest_period: i128,
}

impl Ledger {
    /// From now on the bounds are those of the widest promise so far.
    pub(super) fn widen(&mut self, promise: &Promise) {
        let (burst, interval, period) = bounds(promise);
        let first = self.interval == 0;
        self.burst = self.burst.max(burst);
        self.interval = if first { interval } else { self.interval.min(interval) };
        self.period = if first { period } else { self.period.min(period) };
        self.longest_period = self.longest_period.max(period);
    }

    pub(super) fn admit(&mut self, at: i128, units: u64) {
        self.admitted.push((at, units.into()));
    }

    pub(super) fn refund(&mut self, at: i128, units: u64) {
        self.refunds.push((at, units.into()));
    }

    /// A forward step of the clock or a changed limit may let one more burst through.
    pub(super) fn excuse(&mut self, at: i128) {
        self.excuses.push(at);
    }

    /// I-1, I-9: in every interval that ends with the newest action, no more than promised.
    pub(super) fn check(&self, kind: &str) -> Result<(), String> {
        let Some(&(end, _)) = self.admitted.last() else { return Ok(()) };
        let mut passed = 0;
        for &(start, units) in self.admitted.iter().rev() {
            passed += units;
            let within = |at: i128| at >= start && at <= end;
            let refunds: i128 =
                self.refunds.iter().filter(|(at, _)| within(*at)).map(|(_, units)| units).sum();
            // After a changed limit a fixed window may end off the new grid: the one behind it is cut short.
            let lasting = match kind {
                "fixed-window" => 2 * self.longest_period,
                // No period is longer than four of the shortest.
                "calendar" => 8 * self.longest_period,
                _ => 0,
            };
            let excused = |at: i128| within(at) || (at < start && at + lasting >= start);
            let excuses = self.excuses.iter().filter(|at| excused(**at)).count() as i128;
            let span = end - start;
            let promised = match kind {
                "token-bucket" | "leaky-bucket" => self.burst * (1 + excuses) + span.max(0) / self.interval,
                // A step may land right before a boundary: on either side of it there is a burst.
                "fixed-window" | "calendar" => self.burst * (span.max(0) / self.period + 2 + 2 * excuses),
                "sliding-log" | "sliding-window" if span < self.period => self.burst * (1 + excuses),
                "sliding-window-estimate" if span < self.period => 2 * self.burst * (1 + excuses),
                _ => return Ok(()),
            };
            if passed > promised + refunds {
                return Err(format!(
                    "I-9: {passed} passed within {span} ticks, {promised} and {refunds} refunds are promised"
                ));
            }
        }
        Ok(())
    }
}
