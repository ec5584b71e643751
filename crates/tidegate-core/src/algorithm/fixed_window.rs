//! Fixed window: a counter per period.
//!
//! ```text
//!   limit 3 per W
//!      x x x - -        x x x            x = allowed   - = denied
//!   |---------W--------|--------W--------|---> time
//!           denied ones pass from here on
//! ```
//!
//! At most `limit` units pass per window, so up to twice the limit can pass within one period, around a boundary. Where
//! that matters, use `sliding-window`. Windows are aligned to the epoch, or each opens with the first hit after the
//! previous one has ended.
//!
//! A clock that steps back into an older window must not start a fresh count: the stored window stays in force until
//! time catches up. If the clock is more than a period behind, the count moves to now; otherwise every caller would
//! wait for the length of the step. There it stays for at least a whole period, because a shortened window would admit
//! its limit twice.
//!
//! In the one-word form, the low bits are the count and the rest is the end of the window, in units of about a
//! millisecond and rounded up:
//! ```text
//!   63                                24 23              0
//!   |  end of the window, rounded up    |     count      |
//! ```
//!
//! Windows aligned to the epoch end at a multiple of the period, and only one such multiple is within a unit before the
//! rounded end, so the form is exact. Windows that open with the first hit, periods of a few milliseconds and counts of
//! many millions do not fit.

use super::state::StateFootprint;
use super::{Decide, OneWord, Words};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, Remaining, Verdict};
use crate::limit::{Alignment, Problem};
use crate::receipt::Receipt;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The numbers of a fixed window.
#[doc(alias("window counter", "quota"))]
pub type FixedWindow = WindowCounter<EqualWindows>;

/// A counter per window, and the windows that it counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowCounter<W> {
    pub(super) amount: u64,
    pub(super) windows: W,
    pub(super) most: u64,
}

/// The boundaries of the windows of a [`WindowCounter`].
pub trait Windows: Copy + std::fmt::Debug + PartialEq {
    /// Returns the end of the window that contains `now`. `None` if it is not representable.
    fn end_after(&self, now: Timestamp) -> Option<Timestamp>;

    /// Returns the first end of a window that is at least a whole window away.
    fn whole_end_after(&self, now: Timestamp) -> Option<Timestamp>;

    /// Returns the beginning of the window that contains `now`.
    fn begin_of(&self, now: Timestamp) -> Timestamp;

    /// Returns the length of the longest window.
    fn longest(&self) -> Ticks;

    /// Returns a span of which every end is a multiple.
    fn grain(&self) -> Ticks;

    /// Returns true if a window is open only after a hit.
    fn opens_with_hit(&self) -> bool;

    /// Returns the numbers by which stores and files name the windows.
    fn pack(&self) -> [u64; 2];
}

/// Windows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EqualWindows {
    period: Ticks,
    alignment: Alignment,
}

/// The largest count of a window.
const MAX_COUNT: u64 = 1 << 62;

/// Returns the largest count, with late charges included. Fails if it exceeds `MAX_COUNT`.
pub(super) const fn most_counted(amount: u64, max_debt: u64) -> Result<u64, Problem> {
    match amount.checked_add(max_debt) {
        Some(most) if most <= MAX_COUNT => Ok(most),
        _ => Err(Problem::CountTooLarge),
    }
}

/// The number of bits of a word that hold the count.
const COUNT_BITS: u32 = 24;
/// The granularity of a window's end in a word: the end is a multiple of this.
pub(super) const UNIT: u64 = 1 << COUNT_BITS;

/// The count of one window, and the end of that window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub(super) end: Timestamp,
    pub(super) count: u64,
}

impl FixedWindow {
    pub(crate) const fn new(
        amount: u64,
        period: Ticks,
        alignment: Alignment,
        max_debt: u64,
    ) -> Result<FixedWindow, Problem> {
        match most_counted(amount, max_debt) {
            Ok(most) => Ok(FixedWindow { amount, windows: EqualWindows { period, alignment }, most }),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the most units that pass within a closed interval. The worst interval begins with the last instant of a
    /// window. A window that opens with its first hit has spent a unit on that hit by then, unless it opens within the
    /// interval.
    pub(crate) fn worst_case(&self, span: Ticks) -> u128 {
        let (span, period) = (u128::from(span.get()), u128::from(self.windows.period.get()));
        let most = u128::from(self.amount) * (span.div_ceil(period) + 1);
        let opened_before = self.windows.opens_with_hit() && span % period != 0;
        most - u128::from(opened_before)
    }
}

impl Windows for EqualWindows {
    fn end_after(&self, now: Timestamp) -> Option<Timestamp> {
        match self.alignment {
            Alignment::FirstHit => now.checked_add(self.period),
            Alignment::Epoch => {
                let into = Ticks::new(now.ticks() % self.period.get());
                now.checked_add(self.period.saturating_sub(into))
            }
        }
    }

    fn whole_end_after(&self, now: Timestamp) -> Option<Timestamp> {
        match self.alignment {
            Alignment::FirstHit => self.end_after(now),
            Alignment::Epoch => self.end_after(now.checked_add(self.period.saturating_sub(Ticks::new(1)))?),
        }
    }

    fn begin_of(&self, now: Timestamp) -> Timestamp {
        let ticks = now.ticks();
        Timestamp::from_ticks(ticks - ticks % self.period.get())
    }

    fn longest(&self) -> Ticks {
        self.period
    }

    fn grain(&self) -> Ticks {
        self.period
    }

    fn opens_with_hit(&self) -> bool {
        self.alignment == Alignment::FirstHit
    }

    fn pack(&self) -> [u64; 2] {
        [self.period.get(), u64::from(self.opens_with_hit())]
    }
}

impl<W: Windows> WindowCounter<W> {
    /// Returns true if the states fit in one word.
    pub(crate) fn fits_word(&self) -> bool {
        !self.windows.opens_with_hit() && self.most < UNIT && self.windows.grain().get() >= 2 * UNIT
    }

    /// Returns a carried window as the first hit after the change finds it. A window that ended with the period of the
    /// change would be shorter than a period, and three windows would overlap one period.
    pub(crate) fn opened_now(&self, state: Window, now: Timestamp) -> Window {
        match self.windows.end_after(now) {
            Some(end) if self.windows.opens_with_hit() && now < state.end => Window { end, ..state },
            _ => state,
        }
    }

    /// Returns the window in force now, or `None` if it would end after the last timestamp.
    fn window(&self, state: Window, now: Timestamp) -> Option<Window> {
        if now >= state.end {
            return Some(Window { end: self.windows.end_after(now)?, count: 0 });
        }
        let count = state.count.min(self.most);
        let (ahead, longest) = (state.end.since(now), self.windows.longest());
        if ahead.saturating_sub(longest) > longest.max(OUT_OF_ORDER) {
            return Some(Window { end: self.windows.whole_end_after(now)?, count });
        }
        Some(Window { end: state.end, count })
    }

    /// Returns the verdict: a denied ask passes in the next window.
    fn judge(&self, window: Window, now: Timestamp, ask: Ask) -> Verdict<Ticks> {
        let until_next = || self.windows.end_after(window.end).map(|_| window.end.since(now));
        Verdict::by_count(ask.units(), self.amount, self.remaining(window), until_next)
    }

    fn remaining(&self, window: Window) -> u64 {
        self.amount.saturating_sub(window.count)
    }

    /// Builds the decision; an empty window has nothing to reset.
    fn report(&self, verdict: Verdict<Ticks>, window: Window, now: Timestamp) -> Decision {
        let reset_after = if window.count == 0 { Ticks::ZERO } else { window.end.since(now) };
        Decision::new(verdict, self.amount, Remaining::of_units(self.remaining(window)), reset_after)
    }

    /// Delays a denial that comes from a shared word. The shared debt may last for many windows; an ask first passes in
    /// the window in which it ends.
    fn until_shared_ends(&self, refused: Decision, clear_at: Timestamp, now: Timestamp) -> Decision {
        let wait = self.windows.begin_of(clear_at).since(now);
        if wait > Ticks::ZERO { refused.denied_for(wait) } else { refused }
    }

    /// Returns the decision after the last whole window before the end of time: no ask passes any more.
    fn report_end_of_time(&self) -> Decision {
        Decision::new(Verdict::Impossible, self.amount, Remaining::of_units(0), Ticks::ZERO)
    }
}

impl<W: Windows> StateFootprint for WindowCounter<W> {
    fn pack(&self) -> Words {
        let [first, second] = self.windows.pack();
        [self.amount, first, second, self.most, 0]
    }

    /// Returns the count of the window that the old limit had in force, in the window here that contains the change.
    ///
    /// If windows open with a hit, this one opens with the change. If it continued from the hit under the old limit, a
    /// window of this limit, which may have been in force before, would be cut short. Then three of its windows would
    /// overlap one period, and its limit would pass three times.
    fn carry(&self, _: &WindowCounter<W>, state: &Window, changed_at: Timestamp) -> Option<Window> {
        let count = state.count.min(self.most);
        if changed_at >= state.end || count == 0 {
            return None;
        }
        Some(Window { end: self.windows.end_after(changed_at)?, count })
    }

    fn longest_carried(&self) -> Ticks {
        self.windows.longest()
    }

    fn words_after(&self, _: usize) -> usize {
        2
    }
}

impl<W: Windows> Decide for WindowCounter<W> {
    type State = Window;

    fn decide(&self, state: &mut Window, now: Timestamp, ask: Ask) -> Decision {
        let Some(mut window) = self.window(*state, now) else { return self.report_end_of_time() };
        let verdict = self.judge(window, now, ask);
        if verdict.is_allowed() {
            window.count += ask.units();
        }
        if window.count > 0 {
            *state = window;
        }
        self.report(verdict, window, now)
    }

    fn peek(&self, state: &Window, now: Timestamp, ask: Ask) -> Decision {
        match self.window(*state, now) {
            Some(window) => self.report(self.judge(window, now, ask), window, now),
            None => self.report_end_of_time(),
        }
    }

    fn adjust(&self, state: &mut Window, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        let Some(mut window) = self.window(*state, now) else { return Adjusted::Capped };
        let whole = match adjustment {
            Adjustment::Charge(cost) => {
                let charged = cost.get().min(self.most - window.count);
                window.count += charged;
                charged == cost.get()
            }
            Adjustment::Refund(cost) => {
                let refunded = cost.get().min(window.count);
                window.count -= refunded;
                refunded == cost.get()
            }
        };
        // A window of the first hit is not open without a hit. Aligned windows are stored even if empty; otherwise a
        // clock that steps back could spend the previous window once more.
        let closed = window.count == 0 && self.windows.opens_with_hit();
        *state = if closed { Window::default() } else { window };
        Adjusted::whole_if(whole)
    }

    fn clear_at(&self, state: &Window) -> Timestamp {
        state.end
    }

    fn give_back(&self, state: &mut Window, now: Timestamp, receipt: Receipt) -> Adjusted {
        if now >= state.end || state.end != receipt.clear_at {
            return Adjusted::Capped;
        }
        self.adjust(state, now, Adjustment::Refund(receipt.cost))
    }
}

impl<W: Windows> OneWord for WindowCounter<W> {
    /// Returns the count with the rounded end. Near the end of time it cannot be rounded up; it is then the last
    /// multiple.
    fn word_of(&self, state: &Window) -> u64 {
        let count = state.count.min(UNIT - 1);
        match state.end.ticks().checked_next_multiple_of(UNIT) {
            Some(end) => end | count,
            None => (u64::MAX - (UNIT - 1)) | count,
        }
    }

    fn state_of_word(&self, word: u64) -> Window {
        let (rounded, count) = (word & !(UNIT - 1), word & (UNIT - 1));
        let aligned = rounded - rounded % self.windows.grain().get();
        // Under another period the window had another alignment; then the rounded end is used.
        let end = if rounded - aligned < UNIT { aligned } else { rounded };
        Window { end: Timestamp::from_ticks(end), count }
    }

    fn longest_debt(&self) -> Ticks {
        self.never_cut().saturating_add(Ticks::new(2 * UNIT))
    }

    fn never_cut(&self) -> Ticks {
        Ticks::new(self.windows.longest().get().saturating_mul(2))
    }

    /// Returns the largest count in the window that is open now, or nothing if everything is repaid before that window
    /// ends. For a caller that read the clock a little later, the next window may already be open.
    fn worst_state(&self, clear_at: Timestamp, now: Timestamp) -> Window {
        let open = [now.saturating_add(OUT_OF_ORDER), now].map(|now| self.windows.end_after(now));
        let end = open.into_iter().flatten().find(|end| clear_at >= *end);
        end.map_or_else(Window::default, |end| Window { end, count: self.most })
    }

    fn decide_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> (Decision, u64) {
        let mut state = self.worst_state(clear_at, now);
        let decision = self.decide(&mut state, now, ask);
        if decision.is_allowed() {
            return (decision, self.word_of(&state).max(clear_at.ticks()));
        }
        (self.until_shared_ends(decision, clear_at, now), clear_at.ticks())
    }

    fn peek_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> Decision {
        let decision = self.peek(&self.worst_state(clear_at, now), now, ask);
        if decision.is_allowed() { decision } else { self.until_shared_ends(decision, clear_at, now) }
    }

    fn charge_sharing(&self, clear_at: Timestamp, now: Timestamp, cost: Cost) -> (Adjusted, u64) {
        let mut state = self.worst_state(clear_at, now);
        let adjusted = self.adjust(&mut state, now, Adjustment::Charge(cost));
        (adjusted, self.word_of(&state).max(clear_at.ticks()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Ticks = Ticks::new(1000);

    #[test]
    fn a_window_that_would_end_after_time_never_opens() {
        for (alignment, last_start) in
            [(Alignment::FirstHit, u64::MAX - 1000), (Alignment::Epoch, u64::MAX / 1000 * 1000 - 1)]
        {
            let limit = FixedWindow::new(3, PERIOD, alignment, 3).unwrap();
            let mut state = Window::default();
            let last = limit.decide(&mut state, Timestamp::from_ticks(last_start), Ask::ONE);
            assert!(last.is_allowed(), "{alignment:?}");
            let mut state = Window::default();
            let later = Timestamp::from_ticks(last_start + 1);
            let refused = limit.decide(&mut state, later, Ask::ONE);
            assert_eq!(
                (refused.verdict_in_ticks(), refused.remaining(), refused.limit()),
                (Verdict::Impossible, 0, 3)
            );
            assert_eq!(limit.peek(&state, later, Ask::ONE), refused);
            assert_eq!(limit.adjust(&mut state, later, Adjustment::Charge(Cost::ONE)), Adjusted::Capped);
            assert_eq!(state, Window::default());
        }
    }

    #[test]
    fn counts_out_of_range_are_rejected_when_the_limit_is_built() {
        let build = |max_debt: u64| FixedWindow::new(2, PERIOD, Alignment::Epoch, max_debt);
        assert_eq!(build(u64::MAX), Err(Problem::CountTooLarge));
        assert_eq!(build(MAX_COUNT - 1), Err(Problem::CountTooLarge));
        assert!(build(MAX_COUNT - 2).is_ok());
    }

    #[test]
    fn a_window_comes_out_of_its_word_as_it_went_in() {
        let period = 60 * 16_000_000_000;
        let limit = FixedWindow::new(1000, Ticks::new(period), Alignment::Epoch, 1000).unwrap();
        assert!(limit.fits_word());
        for windows in (1..2000).chain([1 << 20, u64::MAX / period]) {
            for count in [0, 1, 999, 2000] {
                let state = Window { end: Timestamp::from_ticks(windows * period), count };
                let word = limit.word_of(&state);
                assert_eq!(limit.state_of_word(word), state);
                assert!(word >= state.end.ticks() && (word - state.end.ticks()) < 2 * UNIT);
            }
        }
    }

    #[test]
    fn after_a_change_of_period_a_window_ends_within_a_millisecond_of_its_end() {
        let minute = FixedWindow::new(5, Ticks::new(60 * 16_000_000_000), Alignment::Epoch, 5).unwrap();
        let odd = FixedWindow::new(5, Ticks::new(7 * 16_000_000_007), Alignment::Epoch, 5).unwrap();
        for windows in 1..2000 {
            let state = Window { end: Timestamp::from_ticks(windows * 60 * 16_000_000_000), count: 3 };
            let seen = odd.state_of_word(minute.word_of(&state));
            assert_eq!(seen.count, 3);
            assert!(seen.end.ticks().abs_diff(state.end.ticks()) < UNIT);
            assert_eq!(odd.state_of_word(odd.word_of(&seen)), seen);
        }
    }

    #[test]
    fn a_shared_debt_of_many_windows_reports_the_first_window_that_passes() {
        let period = 60 * 16_000_000_000;
        let limit = FixedWindow::new(5, Ticks::new(period), Alignment::Epoch, 5).unwrap();
        let now = Timestamp::from_ticks(period / 2);
        let clear_at = Timestamp::from_ticks(10 * period + period / 2);
        let (refused, word) = limit.decide_sharing(clear_at, now, Ask::ONE);
        assert_eq!(
            refused.verdict_in_ticks(),
            Verdict::Denied { retry_after: Ticks::new(10 * period - period / 2) }
        );
        assert_eq!(word, clear_at.ticks());
        let before = Timestamp::from_ticks(10 * period - 1);
        assert!(!limit.decide_sharing(clear_at, before, Ask::ONE).0.is_allowed());
        let (allowed, word) = limit.decide_sharing(clear_at, Timestamp::from_ticks(10 * period), Ask::ONE);
        assert!(allowed.is_allowed());
        assert_eq!(limit.state_of_word(word), Window { end: Timestamp::from_ticks(11 * period), count: 1 });
        let too_much = Ask { cost: Cost::of(6), ..Ask::ONE };
        assert_eq!(limit.decide_sharing(clear_at, now, too_much).0.verdict_in_ticks(), Verdict::Impossible);
    }
}
