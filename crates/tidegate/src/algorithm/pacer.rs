//! Pacer: spaces permits out, as Guava's `RateLimiter` does.
//!
//! A grant waits only for what earlier ones still owe; what it costs itself is paid by the next
//! (`pay next`), or by its own wait (`pay self`). Time in which nobody asks is saved, up to a maximum.
//!
//! *Steady*: saved permits are free, fresh ones cost one interval each.
//!
//! *Warm-up*: saved permits say how cold the thing behind us is, and cost more the colder it is.
//!
//! ```text
//!   wait per permit
//!     cold |                     /|     cold = interval * cold_factor
//!          |                   /  |
//!          |                 /    |     the area under the line is the time
//!          |               /      |     it takes to spend what is saved
//!   stable |-------------/        |
//!          |    W/2      |   W    |
//!          +-------------+--------+---> saved permits
//!          0         threshold   maximum
//! ```
//!
//! Savings are kept as *idle time* rather than as permits: a whole warm-up W of idling fills them, at any
//! rate. With a cold factor f the savings are counted in units of 1/(5 + f) tick, because then everything is
//! a whole number: full is W(5 + f), the threshold W(1 + f), and a permit 2(1 + f) intervals. Since nothing
//! in that depends on the rate, a changed rate rescales the saved permits by itself, as Guava does by hand.
//! Steady mode counts plain ticks; its maximum is a span too, Guava's burst seconds.
//!
//! What is owed is kept as a span beside the time it was last reckoned: when the clock steps back, the debt
//! stays what it was, neither forgiven nor lengthened.

use std::num::NonZeroU64;

use super::Decide;
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, Outcome, Room};
use crate::limit::{Pay, Problem};
use crate::time::{Ticks, Timestamp};

/// The longest warm-up.
pub(crate) const MAX_WARM_UP: Ticks = Ticks::new(30 * 24 * 3600 * 16_000_000_000);
/// The largest cold factor.
pub(crate) const MAX_COLD_FACTOR: u64 = 100;

/// The numbers of a pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    /// The time from one permit to the next; none at an unlimited rate.
    interval: Option<NonZeroU64>,
    savings: Savings,
    pay: Pay,
}

/// What idling is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Savings {
    Steady { most: Ticks },
    WarmUp { length: Ticks, cold_factor: u64 },
}

/// What is saved and what is owed; a subject never seen has been idle since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace(Option<Reckoning>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reckoning {
    at: Timestamp,
    owed: Ticks,
    saved: u64,
}

impl Pacer {
    pub(crate) const fn steady(
        interval: Option<NonZeroU64>,
        most: Ticks,
        pay: Pay,
    ) -> Result<Pacer, Problem> {
        if most.get() > Ticks::TEN_YEARS.get() {
            return Err(Problem::BurstTooLong);
        }
        Ok(Pacer { interval, savings: Savings::Steady { most }, pay })
    }

    pub(crate) const fn warming_up(
        interval: Option<NonZeroU64>,
        length: Ticks,
        cold_factor: u64,
        pay: Pay,
    ) -> Result<Pacer, Problem> {
        if length.get() == 0 || length.get() > MAX_WARM_UP.get() {
            return Err(Problem::WarmUpOutOfRange);
        }
        if cold_factor == 0 || cold_factor > MAX_COLD_FACTOR {
            return Err(Problem::ColdFactorOutOfRange);
        }
        if let Some(interval) = interval {
            if interval.get().checked_mul(2 * (1 + cold_factor)).is_none() {
                return Err(Problem::TooSlowToWarmUp);
            }
        }
        Ok(Pacer { interval, savings: Savings::WarmUp { length, cold_factor }, pay })
    }

    /// Brings the state up to now. Before a changed rate takes effect, its predecessor settles.
    pub fn settle(&self, state: &mut Pace, now: Timestamp) {
        state.0 = Some(self.reckon(state, now));
    }

    fn reckon(&self, state: &Pace, now: Timestamp) -> Reckoning {
        let unseen = Reckoning { at: Timestamp::EPOCH, owed: Ticks::ZERO, saved: self.saved_at_first() };
        let last = state.0.unwrap_or(unseen);
        let passed = now.since(last.at);
        let idle = passed.saturating_sub(last.owed);
        let saved = match self.interval {
            Some(_) => last.saved.saturating_add(idle.get().saturating_mul(self.scale())).min(self.full()),
            None => self.saved_when_unlimited(),
        };
        Reckoning { at: now, owed: last.owed.saturating_sub(passed), saved }
    }

    /// At the epoch a steady pacer has nothing saved, and a warming one is cold.
    fn saved_at_first(&self) -> u64 {
        match self.savings {
            Savings::Steady { .. } => 0,
            Savings::WarmUp { .. } => self.full(),
        }
    }

    /// At an unlimited rate a steady pacer has all it can save, and a warming one is warm.
    fn saved_when_unlimited(&self) -> u64 {
        match self.savings {
            Savings::Steady { .. } => self.full(),
            Savings::WarmUp { .. } => 0,
        }
    }

    /// The most that can be saved.
    fn full(&self) -> u64 {
        match self.savings {
            Savings::Steady { most } => most.get(),
            Savings::WarmUp { length, .. } => length.get() * self.scale(),
        }
    }

    /// What one tick of idling saves.
    fn scale(&self) -> u64 {
        match self.savings {
            Savings::Steady { .. } => 1,
            Savings::WarmUp { cold_factor, .. } => 5 + cold_factor,
        }
    }

    /// What one permit takes out of the savings; nothing at an unlimited rate.
    fn permit(&self) -> Option<NonZeroU64> {
        let intervals = match self.savings {
            Savings::Steady { .. } => 1,
            Savings::WarmUp { cold_factor, .. } => 2 * (1 + cold_factor),
        };
        NonZeroU64::new(self.interval?.get() * intervals)
    }

    /// The time that permits cost, and what they leave saved.
    fn spend(&self, saved: u64, permits: u64) -> Option<(Ticks, u64)> {
        let Some(permit) = self.permit() else { return Some((Ticks::ZERO, saved)) };
        let price = u128::from(permit.get()) * u128::from(permits);
        let left = u128::from(saved).saturating_sub(price) as u64;
        let time = match self.savings {
            Savings::Steady { .. } => price.saturating_sub(u128::from(saved)),
            Savings::WarmUp { length, cold_factor } => {
                warm_up_time(u128::from(length.get()), u128::from(cold_factor), u128::from(saved), price)?
            }
        };
        let time = u64::try_from(time).ok().filter(|time| *time <= Ticks::TEN_YEARS.get())?;
        Some((Ticks::new(time), left))
    }

    /// The verdict, and the reckoning that an allowed ask leaves.
    fn judge(&self, reckoning: Reckoning, now: Timestamp, ask: Ask) -> (Outcome, Reckoning) {
        let Some((time, saved)) = self.spend(reckoning.saved, ask.units()) else {
            return (Outcome::Impossible, reckoning);
        };
        let owed = reckoning.owed.saturating_add(time);
        if owed > now.left() {
            return (Outcome::Impossible, reckoning);
        }
        let (delay, least_delay) = match self.pay {
            Pay::Next => (reckoning.owed, Ticks::ZERO),
            Pay::Own => (owed, self.least_own_time(ask.units(), time)),
        };
        let patience = ask.longest_delay();
        let retry_after = delay.saturating_sub(patience).max(owed.saturating_sub(Ticks::TEN_YEARS));
        let outcome = if retry_after == Ticks::ZERO {
            Outcome::Allowed { delay }
        } else if least_delay > patience {
            Outcome::Impossible
        } else {
            Outcome::Denied { retry_after }
        };
        (outcome, Reckoning { owed, saved, ..reckoning })
    }

    /// The least that permits can cost however long one waits; they cost `now` this instant.
    fn least_own_time(&self, permits: u64, now: Ticks) -> Ticks {
        match self.savings {
            Savings::Steady { .. } => self.spend(self.full(), permits).map_or(now, |(time, _)| time),
            // Waiting only makes it colder.
            Savings::WarmUp { .. } => now,
        }
    }

    fn report(&self, outcome: Outcome, reckoning: Reckoning) -> Decision {
        let (limit, room) = match self.permit() {
            Some(permit) => (self.full() / permit, Room::of_amount(reckoning.saved, permit)),
            None => (u64::MAX, Room::of_units(u64::MAX)),
        };
        Decision::new(outcome, limit, room, reckoning.owed)
    }

    fn charge(&self, reckoning: Reckoning, permits: u64) -> (Reckoning, Adjusted) {
        let (time, saved) = self.spend(reckoning.saved, permits).unwrap_or((Ticks::TEN_YEARS, 0));
        let owed = reckoning.owed.saturating_add(time);
        let most = Ticks::TEN_YEARS.min(reckoning.at.left());
        (Reckoning { owed: owed.min(most), saved, ..reckoning }, Adjusted::whole_if(owed <= most))
    }

    fn refund(&self, reckoning: Reckoning, permits: u64) -> (Reckoning, Adjusted) {
        let Some(permit) = self.permit() else { return (reckoning, Adjusted::Whole) };
        let price = permit.get().saturating_mul(permits);
        let (time, saved) = match self.savings {
            // What is owed is paid off first, the rest is saved again.
            Savings::Steady { .. } => {
                let time = price.min(reckoning.owed.get());
                (Ticks::new(time), reckoning.saved.saturating_add(price - time))
            }
            // With nothing saved the permits were fresh; else they came from savings, at the price of those.
            Savings::WarmUp { .. } => {
                let saved = if reckoning.saved == 0 { 0 } else { reckoning.saved.saturating_add(price) };
                let time = self.spend(saved.min(self.full()), permits).map_or(Ticks::MAX, |(time, _)| time);
                (time, saved)
            }
        };
        let whole = time <= reckoning.owed && saved <= self.full();
        let owed = reckoning.owed.saturating_sub(time);
        (Reckoning { owed, saved: saved.min(self.full()), ..reckoning }, Adjusted::whole_if(whole))
    }

    /// A refusal writes only after the clock stepped back: else what is owed would be reckoned from a time
    /// that has not come.
    fn rebase(&self, state: &mut Pace, now: Timestamp) {
        if state.0.is_some_and(|last| now < last.at) {
            self.settle(state, now);
        }
    }
}

impl Decide for Pacer {
    type State = Pace;

    fn decide(&self, state: &mut Pace, now: Timestamp, ask: Ask) -> Decision {
        let before = self.reckon(state, now);
        let (outcome, after) = self.judge(before, now, ask);
        if outcome.is_allowed() {
            state.0 = Some(after);
            return self.report(outcome, after);
        }
        self.rebase(state, now);
        self.report(outcome, before)
    }

    fn peek(&self, state: &Pace, now: Timestamp, ask: Ask) -> Decision {
        let reckoning = self.reckon(state, now);
        self.report(self.judge(reckoning, now, ask).0, reckoning)
    }

    fn adjust(&self, state: &mut Pace, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        let reckoning = self.reckon(state, now);
        let (after, adjusted) = match adjustment {
            Adjustment::Charge(cost) => self.charge(reckoning, cost.get()),
            Adjustment::Refund(cost) => self.refund(reckoning, cost.get()),
        };
        state.0 = Some(after);
        adjusted
    }

    /// When everything is paid and as much is saved as can be: like a subject that nobody has asked for yet.
    fn clear_at(&self, state: &Pace) -> Timestamp {
        state.0.map_or(Timestamp::EPOCH, |last| {
            let missing = self.full().saturating_sub(last.saved).div_ceil(self.scale());
            let rested_at = last.at.saturating_add(last.owed).saturating_add(Ticks::new(missing));
            let others_rested_at =
                Timestamp::from_ticks((self.full() - self.saved_at_first()) / self.scale());
            rested_at.max(others_rested_at)
        })
    }
}

/// The area under the line: the time that it takes to spend `price` of what is saved.
///
/// With Y the savings above the threshold, a permit costs `interval * (1 + (f - 1) Y / 4W)`; integrated from
/// Y1 down to Y0, and with the rest at the stable price, that is
/// `(8W * price + (f - 1)(Y1 + Y0)(Y1 - Y0)) / 16W(1 + f)`, rounded up to a tick.
fn warm_up_time(length: u128, cold_factor: u128, saved: u128, price: u128) -> Option<u128> {
    let threshold = length * (1 + cold_factor);
    let above = saved.saturating_sub(threshold);
    let slope = above.min(price);
    let dear = (cold_factor - 1) * (2 * above - slope) * slope;
    let area = price.checked_mul(8 * length)?.checked_add(dear)?;
    Some(area.div_ceil(16 * length * (1 + cold_factor)))
}
