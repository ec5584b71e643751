//! Sliding window: every trailing period, in constant memory.
//!
//! The period is divided into slots that are aligned to the epoch; each has a counter.
//!
//! ```text
//!             |<------------------ W ------------------>|
//!   . . . +---:-----+---------+---------+---------+-----:---+ . . .
//!         | 4 :     |    0    |    2    |    1    |  1  :   |
//!   . . . +---:-----+---------+---------+---------+-----:---+ . . .
//!         oldest slot: partly within W                 now
//! ```
//!
//! `strict` counts the oldest, partly covered slot as a whole. It never admits more than `limit` in any (x, x + W], for
//! every limit, with slots + 1 counters. It denies too long by at most the length of one slot.
//!
//! `estimate` keeps two slots of a whole period. It weighs the older one by its covered part, as if its actions were
//! spread evenly: the method that Cloudflare published. Up to 2 * limit - 1 can pass within one period, and rarely do.
//!
//! The period is rounded up to a whole number of ticks per slot. When the clock steps back, the newest slot stays in
//! force. If the clock is more than a period behind, all slots move back with it.

use std::borrow::Cow;

use super::fixed_window::most_counted;
use super::state::StateFootprint;
use super::{Decide, Words};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, Remaining, Verdict};
use crate::limit::{Problem, WindowMode};
use crate::receipt::Receipt;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The largest number of slots in a period.
pub(crate) const MAX_SLOTS: u64 = 1024;

/// The numbers of a sliding window.
#[doc(alias("sliding window counter", "Cloudflare"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    amount: u64,
    /// The length of a slot in ticks.
    width: u64,
    slots: u64,
    mode: WindowMode,
    most: u64,
}

/// The counters of one key, newest first; empty for a key never seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// The number of the newest slot, counted from the epoch.
    newest: u64,
    /// The length of the slots, in ticks.
    width: u64,
    counts: Box<[u64]>,
}

impl SlidingWindow {
    pub(crate) const fn new(
        amount: u64,
        period: Ticks,
        slots: u64,
        mode: WindowMode,
        max_debt: u64,
    ) -> Result<SlidingWindow, Problem> {
        if slots == 0 || slots > MAX_SLOTS {
            return Err(Problem::SlotsOutOfRange);
        }
        let width = period.get().div_ceil(slots);
        // Rounding the period up to whole ticks per slot must not lengthen it by more than a thousandth.
        if (width * slots - period.get()) > period.get() / 1000 {
            return Err(Problem::SlotsTooFine);
        }
        match most_counted(amount, max_debt) {
            Ok(most) => Ok(SlidingWindow { amount, width, slots, mode, most }),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the longest time for which a count matters.
    pub(crate) const fn memory(&self) -> Ticks {
        Ticks::new(self.width * (self.slots + 1))
    }

    /// Returns the most units that pass within a closed interval.
    ///
    /// An interval touches the most slots if it begins with the last instant of one. `strict` admits the limit once in
    /// any slots + 1 consecutive slots.
    pub(crate) fn worst_case(&self, span: Ticks) -> u128 {
        let later_slots = span.get().div_ceil(self.width);
        match self.mode {
            WindowMode::Strict => u128::from(self.amount) * u128::from(later_slots / (self.slots + 1) + 1),
            WindowMode::Estimate => self.most_by_estimate(later_slots, span),
        }
    }

    /// Returns the most units that pass by `estimate`. The limit passes in the last instant of a slot. At the end of
    /// each whole slot that follows, one unit less passes, because the previous slot still counts. The last slot adds
    /// the quota that its elapsed part releases from the previous one.
    fn most_by_estimate(&self, later_slots: u64, span: Ticks) -> u128 {
        let (amount, later) = (u128::from(self.amount), u128::from(later_slots));
        let reached = |older: u128| {
            let into = u128::from((span.get() - 1) % self.width);
            amount - older + older * into / u128::from(self.width)
        };
        match later_slots {
            0 => amount,
            // With a limit of one, every other slot stays empty.
            _ if self.amount == 1 => later / 2 + 1,
            1 => amount + reached(amount),
            _ => amount + (later - 1) * (amount - 1) + reached(amount - 1),
        }
    }

    /// Returns the counters as of now.
    fn view<'a>(&self, state: &'a Slots, now: Timestamp) -> View<'a> {
        let slot = now.ticks() / self.width;
        if slot < state.newest {
            return View { slot: state.newest, into: 0, age: 0, counts: &state.counts };
        }
        View { slot, into: now.ticks() % self.width, age: slot - state.newest, counts: &state.counts }
    }

    /// Returns true if the counters can be read as they are: the slots match this limit, and the clock is not far
    /// behind them.
    fn fits(&self, state: &Slots, now: Timestamp) -> bool {
        let behind = state.newest.saturating_sub(now.ticks() / self.width);
        let stays = self.slots.max(OUT_OF_ORDER.get() / self.width);
        state.width == self.width && state.counts.len() as u64 == self.slots + 1 && behind <= stays
    }

    /// Converts the counters if they cannot be read as they are.
    fn fit(&self, state: &mut Slots, now: Timestamp) {
        if !self.fits(state, now) {
            *state = self.convert(state, now);
        }
    }

    /// Moves each count of other slots to the slot in which the old one ended, or to the current slot if it has not
    /// ended.
    fn convert(&self, state: &Slots, now: Timestamp) -> Slots {
        let newest = now.ticks() / self.width;
        let mut counts = vec![0_u64; self.slots as usize + 1].into_boxed_slice();
        for (age, count) in (0..).zip(&state.counts) {
            let end = state.newest.saturating_sub(age).saturating_add(1).saturating_mul(state.width);
            let age = newest.saturating_sub((end - 1) / self.width);
            if let Some(kept) = usize::try_from(age).ok().and_then(|age| counts.get_mut(age)) {
                *kept = kept.saturating_add(*count);
            }
        }
        Slots { newest, width: self.width, counts }
    }

    /// Returns the verdict; the time at which a denied ask passes depends on the mode.
    fn judge(&self, view: &View<'_>, now: Timestamp, ask: Ask) -> Verdict<Ticks> {
        Verdict::by_count(ask.units(), self.amount, self.remaining(view), || {
            let passes_at = match self.mode {
                WindowMode::Strict => self.strict_passes_at(view, ask.units()),
                WindowMode::Estimate => self.estimate_passes_at(view, ask.units()),
            };
            passes_at.map(|at| at.since(now))
        })
    }

    /// Returns the units that still pass. An estimate is rounded up, so no fraction is admitted too much.
    fn remaining(&self, view: &View<'_>) -> u64 {
        let counted = match self.mode {
            WindowMode::Strict => view.total(),
            WindowMode::Estimate => {
                let covered = u128::from(view.count(1)) * u128::from(self.width - view.into);
                view.count(0) + covered.div_ceil(u128::from(self.width)) as u64
            }
        };
        self.amount.saturating_sub(counted)
    }

    /// Returns the time at which enough of the oldest slots have left the period.
    fn strict_passes_at(&self, view: &View<'_>, units: u64) -> Option<Timestamp> {
        let mut left = view.total();
        for age in (0..=self.slots).rev() {
            left -= view.count(age);
            if left <= self.amount - units {
                return self.leaves_at(view.slot, age);
            }
        }
        None
    }

    /// Returns the time at which the weighted count of the older slot is small enough to admit the units.
    fn estimate_passes_at(&self, view: &View<'_>, units: u64) -> Option<Timestamp> {
        let room = self.amount - units;
        let (slot, older, newer) = if view.count(0) <= room {
            (view.slot, view.count(1), view.count(0))
        } else {
            (view.slot.checked_add(1)?, view.count(0), 0)
        };
        let covered = u128::from(room - newer) * u128::from(self.width) / u128::from(older.max(1));
        let into = self.width - covered.min(u128::from(self.width)) as u64;
        slot.checked_mul(self.width)?.checked_add(into).map(Timestamp::from_ticks)
    }

    /// Returns the time at which the end of the slot `age` before `slot` is a whole period in the past.
    fn leaves_at(&self, slot: u64, age: u64) -> Option<Timestamp> {
        slot.checked_add(1 + self.slots - age)?.checked_mul(self.width).map(Timestamp::from_ticks)
    }

    /// Builds the decision; the key is full when its newest used slot has left.
    fn report(&self, verdict: Verdict<Ticks>, view: &View<'_>, now: Timestamp) -> Decision {
        let newest_used = (0..=self.slots).find(|age| view.count(*age) > 0);
        let reset_after = match newest_used {
            Some(age) => self.leaves_at(view.slot, age).unwrap_or(Timestamp::LAST).since(now),
            None => Ticks::ZERO,
        };
        Decision::new(verdict, self.amount, Remaining::of_units(self.remaining(view)), reset_after)
    }

    /// Advances the counters, so that the newest is the current slot.
    fn settle(&self, state: &mut Slots, now: Timestamp) {
        self.fit(state, now);
        let View { slot, age, .. } = self.view(state, now);
        let length = state.counts.len();
        let new = usize::try_from(age).map_or(length, |age| age.min(length));
        state.counts.copy_within(..length - new, new);
        state.counts[..new].fill(0);
        state.newest = slot;
    }
}

impl StateFootprint for SlidingWindow {
    fn pack(&self) -> Words {
        let estimate = u64::from(self.mode == WindowMode::Estimate);
        [self.amount, self.width, self.slots, estimate, self.most]
    }

    /// Returns the counts that the old limit still has, each in the slot here in which the old one ended. The newest
    /// are carried first, up to the largest count here.
    fn carry(&self, old: &SlidingWindow, state: &Slots, changed_at: Timestamp) -> Option<Slots> {
        if old.clear_at(state) <= changed_at {
            return None;
        }
        let fits = old.fits(state, changed_at);
        let state = if fits { Cow::Borrowed(state) } else { Cow::Owned(old.convert(state, changed_at)) };
        let view = old.view(&state, changed_at);
        let counts = (0..=old.slots).map(|age| view.count(age)).collect();
        let mut carried = self.convert(&Slots { newest: view.slot, width: old.width, counts }, changed_at);
        let mut room = self.most;
        for count in &mut carried.counts {
            *count = (*count).min(room);
            // An estimate counts only a part of the older window, so each of the two may be full.
            room -= if self.mode == WindowMode::Strict { *count } else { 0 };
        }
        carried.counts.iter().any(|count| *count > 0).then_some(carried)
    }

    fn longest_carried(&self) -> Ticks {
        self.memory()
    }

    fn growth(&self, state: Option<&Slots>) -> usize {
        if state.is_none() { self.most_held() } else { 0 }
    }

    fn most_held(&self) -> usize {
        (self.slots as usize + 1) * size_of::<u64>()
    }

    fn words_after(&self, words: usize) -> usize {
        words.max(self.slots as usize + 3)
    }
}

impl Decide for SlidingWindow {
    type State = Slots;

    fn decide(&self, state: &mut Slots, now: Timestamp, ask: Ask) -> Decision {
        self.fit(state, now);
        let verdict = self.judge(&self.view(state, now), now, ask);
        if verdict.is_allowed() {
            self.settle(state, now);
            state.counts[0] += ask.units();
        }
        self.report(verdict, &self.view(state, now), now)
    }

    fn peek(&self, state: &Slots, now: Timestamp, ask: Ask) -> Decision {
        let fits = self.fits(state, now);
        let state = if fits { Cow::Borrowed(state) } else { Cow::Owned(self.convert(state, now)) };
        let view = self.view(&state, now);
        self.report(self.judge(&view, now, ask), &view, now)
    }

    fn adjust(&self, state: &mut Slots, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        self.settle(state, now);
        match adjustment {
            Adjustment::Charge(cost) => {
                let total: u64 = state.counts.iter().sum();
                let charged = cost.get().min(self.most.saturating_sub(total));
                state.counts[0] += charged;
                Adjusted::whole_if(charged == cost.get())
            }
            Adjustment::Refund(cost) => {
                let mut left = cost.get();
                for count in &mut state.counts {
                    let refunded = left.min(*count);
                    *count -= refunded;
                    left -= refunded;
                }
                Adjusted::whole_if(left == 0)
            }
        }
    }

    fn clear_at(&self, state: &Slots) -> Timestamp {
        let Some((age, _)) = (0..).zip(&state.counts).find(|(_, count)| **count > 0) else {
            return Timestamp::EPOCH;
        };
        let end = state.newest.saturating_sub(age).saturating_add(1).saturating_mul(state.width);
        let slots = end.div_ceil(self.width).saturating_add(self.slots);
        Timestamp::from_ticks(slots.saturating_mul(self.width))
    }

    fn receipt(&self, state: &Slots, _: Timestamp, cost: Cost) -> Receipt {
        let at = Timestamp::from_ticks(state.newest.saturating_mul(state.width));
        Receipt::new(cost, at, self.clear_at(state))
    }

    fn give_back(&self, state: &mut Slots, now: Timestamp, receipt: Receipt) -> Adjusted {
        self.settle(state, now);
        let age = state.newest.checked_sub(receipt.at.ticks() / self.width);
        let age = age.and_then(|age| usize::try_from(age).ok());
        let Some(count) = age.and_then(|age| state.counts.get_mut(age)) else { return Adjusted::Capped };
        let returned = receipt.cost.get().min(*count);
        *count -= returned;
        Adjusted::whole_if(returned == receipt.cost.get())
    }
}

impl Slots {
    /// Restores the counters. Returns `None` if there is no slot, or if a slot has no length.
    pub(super) fn from_words(words: &[u64]) -> Option<Slots> {
        let [newest, width, counts @ ..] = words else { return None };
        if *width == 0 || counts.is_empty() {
            return None;
        }
        Some(Slots { newest: *newest, width: *width, counts: counts.into() })
    }

    #[inline]
    pub(super) fn each_word(&self, put: &mut impl FnMut(u64)) {
        put(self.newest);
        put(self.width);
        self.counts.iter().for_each(|count| put(*count));
    }

    pub(super) fn word_count(&self) -> usize {
        2 + self.counts.len()
    }

    /// Returns the heap memory, in bytes.
    pub(super) fn bytes_held(&self) -> usize {
        size_of_val(&*self.counts)
    }
}

/// The counters at one instant.
struct View<'a> {
    /// The slot in force.
    slot: u64,
    /// The elapsed part of that slot, in ticks.
    into: u64,
    /// The number of slots by which the counters are older.
    age: u64,
    counts: &'a [u64],
}

impl View<'_> {
    /// Returns the count of the slot so many before the one in force.
    fn count(&self, age: u64) -> u64 {
        let index = age.checked_sub(self.age).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.counts.get(index)).copied().unwrap_or(0)
    }

    /// Returns the sum of the counters that are still within the slots.
    fn total(&self) -> u64 {
        let live = usize::try_from(self.age).ok().and_then(|age| self.counts.len().checked_sub(age));
        self.counts[..live.unwrap_or(0)].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    fn limit(amount: u64, period: u64, slots: u64) -> SlidingWindow {
        SlidingWindow::new(amount, Ticks::new(period), slots, WindowMode::Strict, amount).unwrap()
    }

    #[test]
    fn a_slot_that_outlasts_time_never_leaves() {
        for mode in [WindowMode::Strict, WindowMode::Estimate] {
            let slots = if mode == WindowMode::Strict { 4 } else { 1 };
            let limit = SlidingWindow::new(1, Ticks::new(1 << 62), slots, mode, 0).unwrap();
            let mut state = Slots::default();
            assert!(limit.decide(&mut state, Timestamp::LAST, Ask::ONE).is_allowed());
            let refused = limit.decide(&mut state, Timestamp::LAST, Ask::ONE);
            assert_eq!(
                (refused.verdict_in_ticks(), refused.remaining()),
                (Verdict::Impossible, 0),
                "{mode:?}"
            );
            assert_eq!(limit.clear_at(&state), Timestamp::LAST);
        }
    }

    #[test]
    fn a_state_is_kept_until_its_newest_used_slot_has_left() {
        let limit = limit(5, 1000, 4);
        let mut state = Slots::default();
        assert_eq!(limit.clear_at(&state), Timestamp::EPOCH);
        let _ = limit.decide(&mut state, at(300), Ask::ONE);
        assert_eq!(limit.clear_at(&state), at(1500));
        let _ = limit.decide(&mut state, at(600), Ask::ONE);
        assert_eq!(limit.clear_at(&state), at(1750));
        limit.adjust(&mut state, at(900), Adjustment::Refund(Cost::ONE));
        assert_eq!(limit.clear_at(&state), at(1500), "the newest slot is empty again");
    }

    #[test]
    fn counts_move_to_the_slot_in_which_the_old_one_ended() {
        let old = limit(10, 1000, 4);
        let mut state = Slots::default();
        for (now, units) in [(0, 1), (250, 2), (999, 3)] {
            assert!(old.decide(&mut state, at(now), Ask::new(Cost::of(units))).is_allowed());
        }
        let new = limit(10, 1000, 10);
        let converted = new.convert(&state, at(999));
        assert_eq!((converted.newest, converted.width), (9, 100));
        assert_eq!(*converted.counts, [3, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0]);
        let shorter = limit(10, 300, 3);
        let converted = shorter.convert(&state, at(999));
        assert_eq!(*converted.counts, [3, 0, 0, 0], "what the shorter period no longer covers has left");
    }

    #[test]
    fn a_period_behind_the_newest_slot_stays_and_beyond_it_everything_moves_back() {
        const SLOT: u64 = 1 << 32;
        let limit = limit(1, 4 * SLOT, 4);
        let mut state = Slots::default();
        assert!(limit.decide(&mut state, at(400 * SLOT), Ask::ONE).is_allowed());
        let wait = |now: u64| limit.peek(&state, at(now), Ask::ONE).verdict_in_ticks();
        assert_eq!(wait(396 * SLOT), Verdict::Denied { retry_after: Ticks::new(9 * SLOT) });
        assert_eq!(wait(396 * SLOT - 1), Verdict::Denied { retry_after: Ticks::new(4 * SLOT + 1) });
        assert_eq!(wait(0), Verdict::Denied { retry_after: Ticks::new(5 * SLOT) });
    }

    #[test]
    fn readings_out_of_order_are_no_step_however_short_the_period() {
        let slot = OUT_OF_ORDER.get() / 100;
        let limit = limit(1, 4 * slot, 4);
        let mut state = Slots::default();
        assert!(limit.decide(&mut state, at(1000 * slot), Ask::ONE).is_allowed());
        let wait = |now: u64| limit.peek(&state, at(now), Ask::ONE).verdict_in_ticks();
        assert_eq!(wait(900 * slot), Verdict::Denied { retry_after: Ticks::new(105 * slot) });
        assert_eq!(wait(899 * slot), Verdict::Denied { retry_after: Ticks::new(5 * slot) });
    }

    #[test]
    fn a_period_too_short_for_its_slots_makes_no_window() {
        let build = |period: u64, slots: u64| {
            SlidingWindow::new(1, Ticks::new(period), slots, WindowMode::Strict, 0).map(|window| window.width)
        };
        assert_eq!(build(16_000, 1024), Err(Problem::SlotsTooFine));
        assert_eq!(build(16_000, 1000), Ok(16));
        assert_eq!(build(16_000, 999), Err(Problem::SlotsTooFine), "16,983 ticks instead of 16,000");
        assert_eq!(build(16_000, 3), Ok(5334), "two ticks more");
    }

    #[test]
    fn a_take_is_given_back_from_its_own_slot() {
        let limit = limit(5, 1000, 4);
        let mut state = Slots::default();
        let _ = limit.decide(&mut state, at(100), Ask::new(Cost::of(2)));
        let first = limit.receipt(&state, at(100), Cost::of(2));
        let _ = limit.decide(&mut state, at(300), Ask::new(Cost::of(3)));
        assert_eq!(limit.give_back(&mut state, at(600), first), Adjusted::Whole);
        assert_eq!(*state.counts, [0, 3, 0, 0, 0]);
        let receipt = |ticks: u64| Receipt::new(Cost::of(9), at(ticks), at(9999));
        assert_eq!(limit.give_back(&mut state, at(600), receipt(300)), Adjusted::Capped);
        assert_eq!(*state.counts, [0, 0, 0, 0, 0], "at most what the slot holds");
        assert_eq!(
            limit.give_back(&mut state, at(600), receipt(900)),
            Adjusted::Capped,
            "a slot yet to come"
        );
        assert_eq!(
            limit.give_back(&mut state, at(9000), receipt(300)),
            Adjusted::Capped,
            "a slot that has left"
        );
    }

    #[test]
    fn a_state_under_another_cut_is_kept_until_it_has_left_there_too() {
        let (old, new) = (limit(10, 1000, 4), limit(10, 1000, 10));
        let mut state = Slots::default();
        let _ = old.decide(&mut state, at(100), Ask::new(Cost::of(10)));
        assert_eq!(
            new.clear_at(&state),
            at(1300),
            "a slot that ended at 250 lies in the one that ends at 300"
        );
        assert!(!new.peek(&state, at(1299), Ask::ONE).is_allowed());
        assert!(new.peek(&state, at(1300), Ask::ONE).is_allowed());
    }

    #[test]
    fn an_idle_time_of_any_length_leaves_nothing() {
        let limit = limit(2, 1000, 4);
        let mut state = Slots::default();
        for now in [0, 1_000_000, 1 << 40, u64::MAX / 2, u64::MAX - 5000] {
            let decision = limit.decide(&mut state, at(now), Ask::new(Cost::of(2)));
            assert_eq!((decision.is_allowed(), decision.remaining()), (true, 0), "at {now}");
        }
    }
}
