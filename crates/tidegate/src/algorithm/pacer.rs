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
        // After the clock stepped back, what is owed is reckoned from now, not from a time yet to come.
        if let Some(last) = &mut state.0 {
            last.at = last.at.min(now);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Cost;

    const INTERVAL: Option<NonZeroU64> = NonZeroU64::new(1000);

    fn steady(pay: Pay) -> Pacer {
        Pacer::steady(INTERVAL, Ticks::new(5000), pay).unwrap()
    }

    fn patient(units: u64) -> Ask {
        Ask::new(Cost::of(units)).patience_in_ticks(Ticks::MAX)
    }

    #[test]
    fn nobody_owes_more_than_ten_years_nor_beyond_the_end_of_time() {
        let pacer =
            Pacer::steady(NonZeroU64::new(Ticks::TEN_YEARS.get() / 10), Ticks::ZERO, Pay::Next).unwrap();
        let mut state = Pace::default();
        assert!(pacer.decide(&mut state, Timestamp::EPOCH, patient(10)).is_allowed());
        let year = Ticks::new(Ticks::TEN_YEARS.get() / 10);
        let refused = pacer.decide(&mut state, Timestamp::EPOCH, patient(1));
        assert_eq!(refused.outcome(), Outcome::Denied { retry_after: year });
        assert_eq!(pacer.decide(&mut state, Timestamp::EPOCH, patient(11)).outcome(), Outcome::Impossible);

        let mut state = Pace::default();
        let near_the_end = Timestamp::from_ticks(u64::MAX - year.get());
        assert!(pacer.decide(&mut state, near_the_end, patient(1)).is_allowed());
        assert_eq!(pacer.decide(&mut state, near_the_end, patient(1)).outcome(), Outcome::Impossible);
    }

    #[test]
    fn a_charge_beyond_ten_years_is_capped_there() {
        let pacer = steady(Pay::Next);
        let mut state = Pace::default();
        let charge = |units: u64| Adjustment::Charge(Cost::of(units));
        assert_eq!(pacer.adjust(&mut state, Timestamp::EPOCH, charge(7)), Adjusted::Whole);
        assert_eq!(pacer.peek(&state, Timestamp::EPOCH, Ask::ONE).reset_after_in_ticks(), Ticks::new(7000));
        assert_eq!(pacer.adjust(&mut state, Timestamp::EPOCH, charge(u64::MAX)), Adjusted::Capped);
        assert_eq!(pacer.peek(&state, Timestamp::EPOCH, Ask::ONE).reset_after_in_ticks(), Ticks::TEN_YEARS);
    }

    #[test]
    fn a_rested_pacer_is_like_one_never_seen() {
        let pacer = steady(Pay::Next);
        let mut state = Pace::default();
        assert_eq!(pacer.clear_at(&state), Timestamp::EPOCH);
        let _ = pacer.decide(&mut state, Timestamp::from_ticks(100_000), patient(7));
        assert_eq!(pacer.clear_at(&state), Timestamp::from_ticks(100_000 + 2000 + 5000));
        let _ = pacer.decide(&mut state, Timestamp::EPOCH, patient(1));
        assert_eq!(pacer.clear_at(&state), Timestamp::from_ticks(3000 + 5000));

        let warming = Pacer::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let _ = warming.decide(&mut state, Timestamp::EPOCH, patient(1));
        let rested = warming.clear_at(&state);
        assert_eq!(warming.peek(&state, rested, Ask::ONE), warming.peek(&Pace::default(), rested, Ask::ONE));
        let earlier = Timestamp::from_ticks(rested.ticks() - 1);
        assert_ne!(
            warming.peek(&state, earlier, patient(9)),
            warming.peek(&Pace::default(), earlier, patient(9))
        );
    }

    #[test]
    fn a_warming_pacer_takes_back_saved_permits_at_their_price() {
        let warming = Pacer::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let cold = warming.peek(&state, Timestamp::EPOCH, Ask::ONE);
        let _ = warming.decide(&mut state, Timestamp::EPOCH, patient(2));
        let spent = warming.peek(&state, Timestamp::EPOCH, Ask::ONE);
        assert!(spent.reset_after_in_ticks() > Ticks::new(4000), "two cold permits cost more than 2 each");
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::of(2))),
            Adjusted::Whole
        );
        assert_eq!(warming.peek(&state, Timestamp::EPOCH, Ask::ONE), cold);
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::ONE)),
            Adjusted::Capped
        );
        assert_eq!(warming.peek(&state, Timestamp::EPOCH, Ask::ONE), cold);
    }

    #[test]
    fn a_warm_pacer_takes_back_fresh_permits_at_the_stable_price() {
        let warming = Pacer::warming_up(INTERVAL, Ticks::new(8000), 3, Pay::Next).unwrap();
        let mut state = Pace::default();
        let _ = warming.decide(&mut state, Timestamp::EPOCH, patient(10));
        let owed =
            |state: &Pace| warming.peek(state, Timestamp::EPOCH, Ask::ONE).reset_after_in_ticks().get();
        let before = owed(&state);
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::of(2))),
            Adjusted::Whole
        );
        assert_eq!(owed(&state), before - 2000);
        assert_eq!(
            warming.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::of(99))),
            Adjusted::Capped
        );
        assert_eq!(owed(&state), 0);
    }

    #[test]
    fn an_unlimited_pacer_has_nothing_to_count_and_nothing_to_give_back() {
        let pacer = Pacer::steady(None, Ticks::new(5000), Pay::Own).unwrap();
        let mut state = Pace::default();
        let decision = pacer.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(u64::MAX)));
        assert_eq!(
            (decision.outcome(), decision.limit(), decision.remaining()),
            (Outcome::NOW, u64::MAX, u64::MAX)
        );
        assert_eq!(
            pacer.adjust(&mut state, Timestamp::EPOCH, Adjustment::Refund(Cost::ONE)),
            Adjusted::Whole
        );
    }

    #[test]
    fn a_pacer_that_pays_for_itself_knows_what_no_waiting_brings() {
        let pacer = steady(Pay::Own);
        let rested = Timestamp::from_ticks(1 << 40);
        let outcome = |units: u64, patience: u64| {
            let ask = Ask::new(Cost::of(units)).patience_in_ticks(Ticks::new(patience));
            pacer.peek(&Pace::default(), rested, ask).outcome()
        };
        assert_eq!(outcome(5, 0), Outcome::NOW);
        assert_eq!(outcome(6, 999), Outcome::Impossible);
        assert_eq!(outcome(6, 1000), Outcome::Allowed { delay: Ticks::new(1000) });
    }

    #[test]
    fn numbers_beyond_the_bounds_make_no_pacer() {
        let beyond = Ticks::new(Ticks::TEN_YEARS.get() + 1);
        assert_eq!(Pacer::steady(INTERVAL, beyond, Pay::Next), Err(Problem::BurstTooLong));
        assert!(Pacer::steady(INTERVAL, Ticks::TEN_YEARS, Pay::Next).is_ok());
        let warming =
            |length: u64, factor: u64| Pacer::warming_up(INTERVAL, Ticks::new(length), factor, Pay::Next);
        assert_eq!(warming(0, 3), Err(Problem::WarmUpOutOfRange));
        assert!(warming(1, 1).is_ok() && warming(MAX_WARM_UP.get(), MAX_COLD_FACTOR).is_ok());
        assert_eq!(warming(MAX_WARM_UP.get() + 1, 3), Err(Problem::WarmUpOutOfRange));
        assert_eq!(
            (warming(1, 0), warming(1, 101)),
            (Err(Problem::ColdFactorOutOfRange), Err(Problem::ColdFactorOutOfRange))
        );
        let slowest = |ticks: u64| Pacer::warming_up(NonZeroU64::new(ticks), Ticks::new(1), 3, Pay::Next);
        assert!(slowest(u64::MAX / 8).is_ok());
        assert_eq!(slowest(u64::MAX / 8 + 1), Err(Problem::TooSlowToWarmUp));
    }
}
