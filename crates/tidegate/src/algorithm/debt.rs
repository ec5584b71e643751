//! Debt: how much of a burst is used, as the time until it is repaid.
//!
//! One word says everything about a subject: the instant at which it owes nothing any more, its *clear
//! time* (the paper that introduced the idea, for telephone cells, calls it the theoretical arrival time).
//!
//! ```text
//!                owed
//!        |<--------------->|
//!  ------+-----------------+------------------+----------+---> time
//!       now            clear time       now + capacity   now + depth
//!                          |<---- room ------>|<-------->|
//!                                                max_debt
//! ```
//!
//! A unit costs one interval. Spending moves the clear time right, time moves `now` right, and a clear time
//! in the past is the same as none: nobody saves more than the burst by idling. Nothing is ever counted per
//! tick, so nothing can be lost between two calls however close they are.
//!
//! A debt beyond `depth` cannot come from spending: a clock stepped back, or the limit was lowered. It is
//! cut to `depth`, and kept so; if only the sum were cut, the promised wait would start anew at each call.

use std::num::NonZeroU64;

use super::Decide;
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, Outcome, Room};
use crate::limit::Problem;
use crate::time::{Ticks, Timestamp};

/// An algorithm whose whole state is a clear time: it only has to say what a debt means.
pub(crate) trait Metered {
    /// The prices.
    fn debt(&self) -> &Debt;

    /// The most that passes at one instant from rest.
    fn limit(&self) -> u64;

    /// Decides about an ask that would turn the debt `owed` into `after`.
    fn verdict(&self, owed: Ticks, after: Ticks, patience: Ticks) -> Outcome;
}

impl<M: Metered + std::fmt::Debug> Decide for M {
    type State = Timestamp;

    #[inline]
    fn decide(&self, clear_at: &mut Timestamp, now: Timestamp, ask: Ask) -> Decision {
        let owed = self.debt().owed(*clear_at, now);
        let (outcome, after) = judge(self, owed, now, ask);
        if outcome.is_allowed() {
            *clear_at = now.saturating_add(after);
            return report(self, outcome, after, now);
        }
        self.debt().clamp(clear_at, now);
        report(self, outcome, owed, now)
    }

    fn peek(&self, clear_at: &Timestamp, now: Timestamp, ask: Ask) -> Decision {
        let owed = self.debt().owed(*clear_at, now);
        report(self, judge(self, owed, now, ask).0, owed, now)
    }

    fn adjust(&self, clear_at: &mut Timestamp, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        self.debt().adjust(clear_at, now, adjustment)
    }

    fn clear_at(&self, clear_at: &Timestamp) -> Timestamp {
        *clear_at
    }
}

/// The verdict, and the debt that an allowed ask leaves.
#[inline]
fn judge<M: Metered>(meter: &M, owed: Ticks, now: Timestamp, ask: Ask) -> (Outcome, Ticks) {
    let Some(price) = meter.debt().price(ask.units()) else { return (Outcome::Impossible, owed) };
    let after = owed.saturating_add(price);
    if after > now.left() {
        return (Outcome::Impossible, owed);
    }
    (meter.verdict(owed, after, ask.longest_delay()), after)
}

#[inline]
fn report<M: Metered>(meter: &M, outcome: Outcome, owed: Ticks, now: Timestamp) -> Decision {
    Decision::new(outcome, meter.limit(), meter.debt().room(owed, now), owed)
}

/// The prices of a limit whose state is one clear time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Debt {
    interval: NonZeroU64,
    capacity: Ticks,
    max_debt: Ticks,
}

impl Debt {
    /// Units at one per `interval`, of which `burst` may be owed by taking and `max_debt` more by charging.
    pub(crate) const fn new(interval: NonZeroU64, burst: u64, max_debt: u64) -> Result<Debt, Problem> {
        let unit = Ticks::new(interval.get());
        let Some(capacity) = unit.checked_mul(burst) else { return Err(Problem::BurstTooLong) };
        let Some(max_debt) = unit.checked_mul(max_debt) else { return Err(Problem::MaxDebtTooLong) };
        if capacity.get() > Ticks::TEN_YEARS.get() {
            return Err(Problem::BurstTooLong);
        }
        if max_debt.get() > Ticks::TEN_YEARS.get() {
            return Err(Problem::MaxDebtTooLong);
        }
        Ok(Debt { interval, capacity, max_debt })
    }

    pub(crate) const fn capacity(&self) -> Ticks {
        self.capacity
    }

    pub(crate) const fn max_debt(&self) -> Ticks {
        self.max_debt
    }

    /// The price of a cost, if taking can ever pay it.
    #[inline]
    pub(crate) fn price(&self, cost: u64) -> Option<Ticks> {
        Ticks::new(self.interval.get()).checked_mul(cost).filter(|price| *price <= self.capacity)
    }

    /// What is owed now, cut to what can be owed.
    #[inline]
    pub(crate) fn owed(&self, clear_at: Timestamp, now: Timestamp) -> Ticks {
        clear_at.since(now).min(self.depth())
    }

    /// Writes a debt that is too large back as a full one; anything else stays as it is.
    #[inline]
    pub(crate) fn clamp(&self, clear_at: &mut Timestamp, now: Timestamp) {
        *clear_at = (*clear_at).min(now.saturating_add(self.depth()));
    }

    /// What could still be taken at this instant.
    pub(crate) fn room(&self, owed: Ticks, now: Timestamp) -> Room {
        Room::of_amount(self.capacity.min(now.left()).saturating_sub(owed).get(), self.interval)
    }

    /// Charges up to the depth, or gives back down to nothing.
    pub(crate) fn adjust(
        &self,
        clear_at: &mut Timestamp,
        now: Timestamp,
        adjustment: Adjustment,
    ) -> Adjusted {
        let unit = Ticks::new(self.interval.get());
        let owed = self.owed(*clear_at, now);
        let (after, whole) = match adjustment {
            Adjustment::Charge(cost) => {
                let price = unit.checked_mul(cost.get()).unwrap_or(Ticks::MAX);
                let most = self.depth().min(now.left());
                (owed.saturating_add(price).min(most), price <= most.saturating_sub(owed))
            }
            Adjustment::Refund(cost) => {
                let price = unit.checked_mul(cost.get()).unwrap_or(Ticks::MAX);
                (owed.saturating_sub(price), price <= owed)
            }
        };
        *clear_at = now.saturating_add(after);
        Adjusted::whole_if(whole)
    }

    /// Gives one take back, as far as nobody has built upon it.
    ///
    /// What was taken after it has moved the clear time on, and counts on that place being used: only the
    /// part of the debt that no later take stands on returns. Late, nothing is left to return.
    pub(crate) fn give_back(&self, clear_at: &mut Timestamp, now: Timestamp, taken: Taken) {
        let Some(price) = self.price(taken.cost.get()) else { return };
        if now >= taken.clear_at {
            return;
        }
        let built_upon = clear_at.since(taken.clear_at);
        let returned = price.saturating_sub(built_upon);
        *clear_at = clear_at.saturating_sub(returned).max(now);
    }

    /// The most that can be owed at all.
    fn depth(&self) -> Ticks {
        self.capacity.saturating_add(self.max_debt)
    }
}

/// A receipt for one take: what it cost, and the clear time that it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What was spent.
    pub cost: Cost,
    /// The state right after.
    pub clear_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::TokenBucket;

    fn bucket() -> TokenBucket {
        TokenBucket::new(NonZeroU64::new(100).unwrap(), 5, 5).unwrap()
    }

    #[test]
    fn a_debt_may_end_with_time_but_not_after_it() {
        let last_whole = Timestamp::from_ticks(u64::MAX - 100);
        let mut clear_at = Timestamp::EPOCH;
        let decision = bucket().decide(&mut clear_at, last_whole, Ask::ONE);
        assert!(decision.is_allowed());
        assert_eq!((clear_at, decision.remaining()), (Timestamp::LAST, 0));

        let too_late = Timestamp::from_ticks(u64::MAX - 99);
        let mut clear_at = Timestamp::EPOCH;
        let decision = bucket().decide(&mut clear_at, too_late, Ask::ONE);
        assert_eq!((decision.outcome(), decision.remaining()), (Outcome::Impossible, 0));
        assert_eq!(clear_at, Timestamp::EPOCH);
    }

    #[test]
    fn a_late_charge_ends_with_time_too() {
        let mut clear_at = Timestamp::EPOCH;
        let near_the_end = Timestamp::from_ticks(u64::MAX - 250);
        let adjusted = bucket().adjust(&mut clear_at, near_the_end, Adjustment::Charge(Cost::of(3)));
        assert_eq!((adjusted, clear_at), (Adjusted::Capped, Timestamp::LAST));
        let mut clear_at = Timestamp::EPOCH;
        let adjusted = bucket().adjust(&mut clear_at, near_the_end, Adjustment::Charge(Cost::of(2)));
        assert_eq!((adjusted, clear_at), (Adjusted::Whole, Timestamp::from_ticks(u64::MAX - 50)));
    }

    #[test]
    fn a_take_comes_back_until_the_instant_at_which_nothing_is_owed_for_it() {
        let taken = Taken { cost: Cost::of(2), clear_at: Timestamp::from_ticks(200) };
        let owed_at = |now: u64| {
            let mut clear_at = Timestamp::from_ticks(300);
            bucket().give_back(&mut clear_at, Timestamp::from_ticks(now), taken);
            clear_at.ticks()
        };
        assert_eq!(owed_at(0), 200, "one unit was taken on top of it");
        assert_eq!(owed_at(199), 200);
        assert_eq!(owed_at(200), 300, "it has been repaid by then");
        let mut alone = Timestamp::from_ticks(200);
        bucket().give_back(&mut alone, Timestamp::from_ticks(150), taken);
        assert_eq!(alone.ticks(), 150, "nobody gets more than nothing to owe");
        let impossible = Taken { cost: Cost::of(6), clear_at: Timestamp::from_ticks(500) };
        bucket().give_back(&mut alone, Timestamp::from_ticks(100), impossible);
        assert_eq!(alone.ticks(), 150, "what could not have been taken cannot come back");
    }

    #[test]
    fn ten_years_is_the_most_that_may_be_owed_or_charged() {
        let year = NonZeroU64::new(Ticks::TEN_YEARS.get() / 10).unwrap();
        assert!(Debt::new(year, 10, 10).is_ok());
        assert_eq!(Debt::new(year, 11, 0), Err(Problem::BurstTooLong));
        assert_eq!(Debt::new(year, 10, 11), Err(Problem::MaxDebtTooLong));
        assert_eq!(Debt::new(year, u64::MAX, 0), Err(Problem::BurstTooLong));
        assert_eq!(Debt::new(year, 1, u64::MAX), Err(Problem::MaxDebtTooLong));
    }
}
