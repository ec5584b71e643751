//! Windows, by their promise: so many per window, or in every trailing one.

use super::{Admitted, Oracle};
use crate::calendar::Boundaries;

fn now_or_never(passes: bool) -> Option<i128> {
    passes.then_some(0)
}

/// At most `amount` per window.
pub(super) struct Fixed {
    pub(super) amount: i128,
    pub(super) period: i128,
    pub(super) first_hit: bool,
}

impl Oracle for Fixed {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let counted: i128 = if self.first_hit {
            // Windows open one after the other, each with the first action that no earlier one holds.
            let mut opened = None;
            let mut counted = 0;
            for action in admitted {
                if opened.is_none_or(|opened| action.asked >= opened + self.period) {
                    opened = Some(action.asked);
                    counted = 0;
                }
                counted += action.units;
            }
            if opened.is_some_and(|opened| now < opened + self.period) { counted } else { 0 }
        } else {
            let window = now.div_euclid(self.period);
            let within = |action: &&Admitted| action.asked.div_euclid(self.period) == window;
            admitted.iter().filter(within).map(|action| action.units).sum()
        };
        now_or_never(counted + units <= self.amount)
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.amount
    }
}

/// At most `amount` per period of a calendar.
pub(super) struct PerPeriod {
    pub(super) amount: i128,
    pub(super) periods: Boundaries,
}

impl Oracle for PerPeriod {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let period = self.periods.number_of(now);
        let within = |action: &&Admitted| self.periods.number_of(action.asked) == period;
        let counted: i128 = admitted.iter().filter(within).map(|action| action.units).sum();
        now_or_never(counted + units <= self.amount)
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.amount
    }
}

/// At most `amount` in every (x, x + period].
pub(super) struct Trailing {
    pub(super) amount: i128,
    pub(super) period: i128,
    pub(super) count_denied: bool,
}

impl Oracle for Trailing {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let within = |action: &&Admitted| action.asked > now - self.period;
        let counted: i128 = admitted.iter().filter(within).map(|action| action.units).sum();
        now_or_never(counted + units <= self.amount)
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.amount
    }

    fn counts_refusals(&self) -> bool {
        self.count_denied
    }
}

/// At most `amount` in every trailing period, where an action counts until its slot's end is a period ago.
pub(super) struct Slotted {
    amount: i128,
    slots: i128,
    width: i128,
}

impl Slotted {
    pub(super) fn new(amount: u64, period: u64, slots: u64) -> Slotted {
        let width = period / slots + u64::from(period % slots != 0);
        Slotted { amount: amount.into(), slots: slots.into(), width: width.into() }
    }
}

impl Oracle for Slotted {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let counts = |action: &&Admitted| {
            let slot_end = action.asked - action.asked.rem_euclid(self.width) + self.width;
            now < slot_end + self.slots * self.width
        };
        let counted: i128 = admitted.iter().filter(counts).map(|action| action.units).sum();
        now_or_never(counted + units <= self.amount)
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.amount
    }
}

/// This window's actions, and those of the one before by the share of it that a trailing period covers.
pub(super) struct Weighted {
    pub(super) amount: i128,
    pub(super) period: i128,
}

impl Oracle for Weighted {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let window = now.div_euclid(self.period);
        let of = |wanted: i128| -> i128 {
            let within = |action: &&Admitted| action.asked.div_euclid(self.period) == wanted;
            admitted.iter().filter(within).map(|action| action.units).sum()
        };
        let covered = self.period - now.rem_euclid(self.period);
        let estimate_times_period = of(window - 1) * covered + (of(window) + units) * self.period;
        now_or_never(estimate_times_period <= self.amount * self.period)
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.amount
    }
}
