//! Debt: the used part of a burst, kept as the time until it is repaid.
//!
//! One word is the whole state of a key: the instant at which it owes nothing any more, its *clear time*. The papers on
//! GCRA, which introduced the idea for telephone cells, call it the theoretical arrival time (TAT).
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
//! A unit costs one interval. Spending moves the clear time right, time moves `now` right. A clear time in the past
//! equals none, so an idle key never saves more than the burst. Nothing is counted per tick, so nothing is lost between
//! two calls, however close they are.
//!
//! A debt well beyond `depth` cannot come from spending: the clock stepped back, or the limit was lowered. It is cut to
//! `depth`, and the cut is stored. If only the reported debt were cut, the promised wait would restart at each call. A
//! debt slightly beyond `depth` is kept: it occurs when one caller has read the clock before another. Cutting it would
//! forgive a little at each such call.

use std::num::NonZeroU64;

use super::state::StateFootprint;
use super::{Decide, OneWord, Words};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, Remaining, Verdict};
use crate::limit::Problem;
use crate::receipt::Receipt;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// An algorithm whose whole state is a clear time. It only defines the meaning of a debt.
pub(crate) trait Metered {
    /// Returns the prices.
    fn debt(&self) -> &Debt;

    /// Returns the most units that pass at one instant from rest.
    fn limit(&self) -> u64;

    /// Returns the numbers for [`StateFootprint::pack`].
    fn numbers(&self) -> Words;

    /// Returns the largest debt at which every allowed request has already acted.
    fn all_acted_within(&self) -> Ticks;

    /// Decides about an ask that would raise the debt from `owed` to `after`.
    fn verdict(&self, owed: Ticks, after: Ticks, max_wait: Ticks) -> Verdict<Ticks>;
}

impl<M: Metered + std::fmt::Debug> Decide for M {
    type State = Timestamp;

    #[inline]
    fn decide(&self, clear_at: &mut Timestamp, now: Timestamp, ask: Ask) -> Decision {
        let owed = self.debt().clamp(clear_at, now);
        let (verdict, end) = judge(self, owed, now, ask);
        if verdict.is_allowed() {
            *clear_at = end;
            return report(self, verdict, end.since(now), now);
        }
        report(self, verdict, owed, now)
    }

    #[inline]
    fn peek(&self, clear_at: &Timestamp, now: Timestamp, ask: Ask) -> Decision {
        let owed = self.debt().owed(*clear_at, now);
        report(self, judge(self, owed, now, ask).0, owed, now)
    }

    #[inline]
    fn adjust(&self, clear_at: &mut Timestamp, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        self.debt().adjust(clear_at, now, adjustment)
    }

    #[inline]
    fn clear_at(&self, clear_at: &Timestamp) -> Timestamp {
        *clear_at
    }

    #[inline]
    fn receipt(&self, clear_at: &Timestamp, now: Timestamp, cost: Cost) -> Receipt {
        let paid = self.debt().price(cost.get()).unwrap_or(Ticks::ZERO);
        Receipt { paid, ..Receipt::new(cost, now, *clear_at) }
    }

    /// Refunds only the last take, as far as time has not repaid it. Later takes were promised their times; a refund in
    /// front of them would be spent twice.
    #[inline]
    fn give_back(&self, clear_at: &mut Timestamp, now: Timestamp, receipt: Receipt) -> Adjusted {
        if *clear_at != receipt.clear_at {
            return Adjusted::Capped;
        }
        let returned = receipt.paid.min(receipt.clear_at.since(now));
        *clear_at = clear_at.saturating_sub(returned);
        Adjusted::whole_if(returned == receipt.paid)
    }
}

impl<M: Metered + std::fmt::Debug> OneWord for M {
    #[inline]
    fn word_of(&self, clear_at: &Timestamp) -> u64 {
        clear_at.ticks()
    }

    #[inline]
    fn state_of_word(&self, word: u64) -> Timestamp {
        Timestamp::from_ticks(word)
    }

    fn longest_debt(&self) -> Ticks {
        self.debt().depth()
    }

    /// Returns the shared clear time, cut to the deepest debt: the last charge may have come from a caller that read
    /// the clock a little later.
    fn worst_state(&self, clear_at: Timestamp, now: Timestamp) -> Timestamp {
        clear_at.min(now.saturating_add(self.debt().deepest))
    }

    fn decide_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> (Decision, u64) {
        let owed = clear_at.since(now);
        let (verdict, end) = judge(self, owed, now, ask);
        let left = if verdict.is_allowed() { end.since(now) } else { owed };
        (report(self, verdict, left, now), now.saturating_add(left).max(clear_at).ticks())
    }

    fn peek_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> Decision {
        let owed = clear_at.since(now);
        report(self, judge(self, owed, now, ask).0, owed, now)
    }

    fn charge_sharing(&self, clear_at: Timestamp, now: Timestamp, cost: Cost) -> (Adjusted, u64) {
        let mut own = self.worst_state(clear_at, now);
        let adjusted = self.debt().adjust(&mut own, now, Adjustment::Charge(cost));
        (adjusted, own.max(clear_at).ticks())
    }

    /// Refunds a take below later ones, if no allowed request still waits. Without the take, every later take owes less
    /// by the part of it that is still owed. A request that waits keeps its promised time, so another could then act
    /// together with it.
    fn undo(&self, clear_at: &mut Timestamp, now: Timestamp, receipt: Receipt) -> Adjusted {
        let all_acted = clear_at.since(now) <= self.all_acted_within();
        if now < receipt.clear_at && *clear_at > receipt.clear_at && all_acted {
            let returned = receipt.paid.min(receipt.clear_at.since(now));
            *clear_at = clear_at.saturating_sub(returned);
            return Adjusted::whole_if(returned == receipt.paid);
        }
        self.give_back(clear_at, now, receipt)
    }
}

impl<M: Metered + std::fmt::Debug> StateFootprint for M {
    #[inline]
    fn pack(&self) -> Words {
        self.numbers()
    }

    fn carry(&self, old: &M, clear_at: &Timestamp, changed_at: Timestamp) -> Option<Timestamp> {
        let carried = self.debt().carried(old.debt(), clear_at.since(changed_at));
        (carried > Ticks::ZERO).then(|| changed_at.saturating_add(carried))
    }

    fn longest_carried(&self) -> Ticks {
        self.debt().depth()
    }

    fn words_after(&self, _: usize) -> usize {
        1
    }
}

/// Returns the verdict, and the clear time that an allowed ask leaves.
#[inline]
fn judge<M: Metered>(meter: &M, owed: Ticks, now: Timestamp, ask: Ask) -> (Verdict<Ticks>, Timestamp) {
    let start = now.saturating_add(owed);
    let end = meter.debt().price(ask.units()).and_then(|price| start.checked_add(price));
    match end {
        Some(end) => (meter.verdict(owed, end.since(now), ask.max_wait), end),
        None => (Verdict::Impossible, start),
    }
}

/// Builds the decision of a key that owes so much after it.
#[inline]
fn report<M: Metered>(meter: &M, verdict: Verdict<Ticks>, owed: Ticks, now: Timestamp) -> Decision {
    Decision::new(verdict, meter.limit(), meter.debt().room(owed, now), owed)
}

/// The prices of a limit whose state is one clear time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Debt {
    interval: NonZeroU64,
    capacity: Ticks,
    max_debt: Ticks,
    /// The largest debt that spending can cause, including clock readings out of order.
    deepest: Ticks,
}

impl Debt {
    /// Creates prices of one unit per `interval`. Takes may owe up to `burst` units, and charges `max_debt` units more.
    #[inline]
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
        let deepest = capacity.saturating_add(max_debt).saturating_add(OUT_OF_ORDER);
        Ok(Debt { interval, capacity, max_debt, deepest })
    }

    /// Returns the numbers of a limit with these prices, for [`StateFootprint::pack`].
    #[inline]
    pub(super) const fn pack(&self, limit: u64, undelayed: Ticks) -> Words {
        [limit, self.interval.get(), self.capacity.get(), self.max_debt.get(), undelayed.get()]
    }

    /// Returns the largest debt that a take can leave.
    #[inline]
    pub(crate) const fn capacity(&self) -> Ticks {
        self.capacity
    }

    /// Returns the span by which late charges may exceed the capacity.
    #[inline]
    pub(crate) const fn max_debt(&self) -> Ticks {
        self.max_debt
    }

    /// Returns the price of a cost, or `None` if it exceeds the capacity and no take can ever pay it.
    #[inline]
    pub(crate) fn price(&self, cost: u64) -> Option<Ticks> {
        Ticks::new(self.interval.get()).checked_mul(cost).filter(|price| *price <= self.capacity)
    }

    /// Returns the time in which so many units are repaid. Saturates.
    #[inline]
    pub(crate) fn time_of(&self, units: u64) -> Ticks {
        Ticks::new(self.interval.get().saturating_mul(units))
    }

    /// Returns the most units that can act within a closed interval. A debt is within the capacity when it acts.
    /// Earlier actions of the interval were repaid within it or are part of that debt.
    pub(crate) fn worst_case(&self, span: Ticks) -> u128 {
        (u128::from(self.capacity.get()) + u128::from(span.get())) / u128::from(self.interval.get())
    }

    /// Returns the debt at this time, cut to the largest possible debt.
    #[inline]
    pub(crate) fn owed(&self, clear_at: Timestamp, now: Timestamp) -> Ticks {
        let owed = clear_at.since(now);
        if owed > self.deepest { self.depth() } else { owed }
    }

    /// Returns the debt under these prices of a key that owes so much under the old ones.
    ///
    /// A unit stays a unit, even if it is partly repaid. The part of a debt that takes can cause is clamped to the
    /// capacity here, so a lowered limit denies for one interval and not for its `max_debt`. The part beyond, from late
    /// charges and reservations, stays beyond.
    fn carried(&self, old: &Debt, owed: Ticks) -> Ticks {
        let owed = owed.min(old.depth());
        let units = owed.get().div_ceil(old.interval.get());
        let beyond_burst = owed.saturating_sub(old.capacity).get().div_ceil(old.interval.get());
        let most = self.capacity.saturating_add(self.time_of(beyond_burst).min(self.max_debt));
        self.time_of(units).min(most)
    }

    /// Returns the debt. A debt that is too large is written back as a full one; any other state is unchanged.
    #[inline]
    fn clamp(&self, clear_at: &mut Timestamp, now: Timestamp) -> Ticks {
        let owed = clear_at.since(now);
        if owed > self.deepest {
            *clear_at = now.saturating_add(self.depth());
            return self.depth();
        }
        owed
    }

    /// Returns the quota that can still be taken at this instant.
    #[inline]
    pub(crate) fn room(&self, owed: Ticks, now: Timestamp) -> Remaining {
        Remaining::of_amount(self.capacity.min(now.left()).saturating_sub(owed).get(), self.interval)
    }

    /// Charges up to the depth, or refunds down to zero.
    #[inline]
    pub(crate) fn adjust(
        &self,
        clear_at: &mut Timestamp,
        now: Timestamp,
        adjustment: Adjustment,
    ) -> Adjusted {
        let owed = self.owed(*clear_at, now);
        let price =
            |cost: Cost| Ticks::new(self.interval.get()).checked_mul(cost.get()).unwrap_or(Ticks::MAX);
        let (after, whole) = match adjustment {
            Adjustment::Charge(cost) => {
                let room = self.depth().min(now.left()).saturating_sub(owed);
                (owed.saturating_add(price(cost).min(room)), price(cost) <= room)
            }
            Adjustment::Refund(cost) => (owed.saturating_sub(price(cost)), price(cost) <= owed),
        };
        *clear_at = now.saturating_add(after);
        Adjusted::whole_if(whole)
    }

    /// Returns the largest possible debt, from takes and charges together.
    #[inline]
    fn depth(&self) -> Ticks {
        self.capacity.saturating_add(self.max_debt)
    }
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
        assert_eq!((decision.verdict_in_ticks(), decision.remaining()), (Verdict::Impossible, 0));
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
    fn the_last_take_comes_back_as_far_as_it_is_still_owed() {
        let owed_after = |clear_at: u64, now: u64| {
            let receipt = bucket().receipt(&Timestamp::from_ticks(200), Timestamp::EPOCH, Cost::of(2));
            let mut state = Timestamp::from_ticks(clear_at);
            let adjusted = bucket().give_back(&mut state, Timestamp::from_ticks(now), receipt);
            (state.ticks(), adjusted)
        };
        assert_eq!(owed_after(200, 0), (0, Adjusted::Whole));
        assert_eq!(owed_after(200, 50), (50, Adjusted::Capped), "time has repaid a quarter");
        assert_eq!(owed_after(200, 200), (200, Adjusted::Capped), "time has repaid it all");
        assert_eq!(owed_after(300, 0), (300, Adjusted::Capped), "a later take follows");
        assert_eq!(owed_after(100, 0), (100, Adjusted::Capped), "something was given back since");
    }

    #[test]
    fn a_debt_is_cut_only_beyond_what_readings_out_of_order_explain() {
        let deepest = 1000 + OUT_OF_ORDER.get();
        let owed_after_refusal = |owed: u64| {
            let mut clear_at = Timestamp::from_ticks(owed);
            assert!(!bucket().decide(&mut clear_at, Timestamp::EPOCH, Ask::ONE).is_allowed());
            clear_at.ticks()
        };
        assert_eq!(owed_after_refusal(deepest), deepest);
        assert_eq!(owed_after_refusal(deepest + 1), 1000);
    }

    #[test]
    fn readings_out_of_order_forgive_nothing() {
        let strict = TokenBucket::new(NonZeroU64::new(16_000_000).unwrap(), 100, 0).unwrap();
        let mut clear_at = Timestamp::EPOCH;
        let now = 1 << 40;
        let mut passed = 0;
        for call in 0..if cfg!(miri) { 500 } else { 20_000_u64 } {
            let stale = if call % 2 == 0 { 0 } else { OUT_OF_ORDER.get() / 2 };
            let at = Timestamp::from_ticks(now - stale);
            passed += u64::from(strict.decide(&mut clear_at, at, Ask::ONE).is_allowed());
        }
        assert_eq!(passed, 100);
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
