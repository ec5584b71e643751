//! The numbers of a validated limit, in the form that its algorithm uses.

use std::num::NonZeroU64;

use crate::algorithm::debt::{Debt, Metered as _};
use crate::algorithm::state::{StateFootprint, StateSlot};
use crate::algorithm::{Algorithm, Claim, DebtQueue, Decide, Interval, OneWord, State, TakenOff, Words};
use crate::algorithm::{
    Calendar, Concurrency, FixedWindow, LeakyBucket, PacerParams, SlidingLog, SlidingWindow, TokenBucket,
};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::receipt::Receipt;
use crate::time::{CalendarPeriods, Ticks, Timestamp};

use super::{Alignment, DelayAfter, Pay, WindowMode};

/// The longest period of a sliding window: it is rounded up to whole ticks per slot, by less than a thousandth.
const LONGEST_SLOTS: Ticks = Ticks::new(Ticks::TEN_YEARS.get() + Ticks::TEN_YEARS.get() / 1000);

/// An algorithm and its numbers.
///
/// Stores decide through it, so they need no type parameter for the algorithm. A state of another algorithm always
/// counts as that of a key never seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlgorithmParams {
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    FixedWindow(FixedWindow),
    SlidingLog(SlidingLog),
    SlidingWindow(SlidingWindow),
    Pacer(PacerParams),
    Concurrency(Concurrency),
    Calendar(Calendar),
}

/// Evaluates the same expression for each algorithm.
macro_rules! with_terms {
    ($all:expr, $terms:ident => $line:expr) => {
        match $all {
            AlgorithmParams::TokenBucket($terms) => $line,
            AlgorithmParams::LeakyBucket($terms) => $line,
            AlgorithmParams::FixedWindow($terms) => $line,
            AlgorithmParams::SlidingLog($terms) => $line,
            AlgorithmParams::SlidingWindow($terms) => $line,
            AlgorithmParams::Pacer($terms) => $line,
            AlgorithmParams::Concurrency($terms) => $line,
            AlgorithmParams::Calendar($terms) => $line,
        }
    };
}

impl AlgorithmParams {
    pub(crate) const fn algorithm(&self) -> Algorithm {
        match self {
            AlgorithmParams::TokenBucket(_) => Algorithm::TokenBucket,
            AlgorithmParams::LeakyBucket(_) => Algorithm::LeakyBucket,
            AlgorithmParams::FixedWindow(_) => Algorithm::FixedWindow,
            AlgorithmParams::SlidingLog(_) => Algorithm::SlidingLog,
            AlgorithmParams::SlidingWindow(_) => Algorithm::SlidingWindow,
            AlgorithmParams::Pacer(_) => Algorithm::Pacer,
            AlgorithmParams::Concurrency(_) => Algorithm::Concurrency,
            AlgorithmParams::Calendar(_) => Algorithm::Calendar,
        }
    }

    /// Returns the prices of a token bucket or a leaky bucket.
    pub(crate) fn debt(&self) -> Option<&Debt> {
        match self {
            AlgorithmParams::TokenBucket(bucket) => Some(bucket.debt()),
            AlgorithmParams::LeakyBucket(bucket) => Some(bucket.debt()),
            _ => None,
        }
    }

    /// Decides, and spends the cost if the ask is allowed. The nonce is for the permit, if there is one; a store draws
    /// it with [`nonce_for`](crate::store::nonce_for).
    #[inline]
    pub(crate) fn decide(&self, state: &mut State, now: Timestamp, ask: Ask, nonce: u64) -> Decision {
        if let AlgorithmParams::Concurrency(concurrency) = self {
            return concurrency.decide_with_nonce(concurrency.within(state), now, ask, nonce);
        }
        with_terms!(self, terms => terms.decide(terms.within(state), now, ask))
    }

    /// Decides like [`AlgorithmParams::decide`], but does not count a denial, even with `count_denied`.
    pub(crate) fn decide_if_free(&self, state: &mut State, now: Timestamp, ask: Ask, nonce: u64) -> Decision {
        if let AlgorithmParams::SlidingLog(_) = self {
            let looked = self.peek(state, now, ask);
            if !looked.is_allowed() {
                return looked;
            }
        }
        self.decide(state, now, ask, nonce)
    }

    /// Returns the ask of the waiter at the head of a queue. Its turn has come, so it has no max wait for other
    /// requests; it may have to wait only for its own cost.
    #[inline]
    pub(crate) fn in_line(&self, ask: Ask) -> Ask {
        match self {
            AlgorithmParams::Pacer(pacer) if pacer.pays_own() => Ask { max_wait: Ticks::MAX, ..ask },
            _ => ask,
        }
    }

    /// Returns true if the states fit in one word.
    #[inline]
    pub(crate) fn fits_word(&self) -> bool {
        match self {
            AlgorithmParams::TokenBucket(_) | AlgorithmParams::LeakyBucket(_) => true,
            AlgorithmParams::FixedWindow(window) => window.fits_word(),
            AlgorithmParams::Calendar(window) => window.fits_word(),
            _ => false,
        }
    }

    /// Returns true if a denial contains the time at which quota is available. For a concurrency limit that time is
    /// unknown.
    pub(crate) const fn foretells(&self) -> bool {
        !matches!(self, AlgorithmParams::Concurrency(_))
    }

    /// Returns true if so many waiting units exceed the limit's own queue; only a leaky bucket has one.
    pub(crate) fn is_queue_full(&self, now: Timestamp, units: u64, state: impl FnOnce() -> State) -> bool {
        let AlgorithmParams::LeakyBucket(_) = self else { return false };
        let Ok(cost) = Cost::new(units) else { return false };
        !self.peek(&state(), now, Ask { cost, max_wait: Ticks::MAX }).is_allowed()
    }

    /// Decides without spending.
    pub(crate) fn peek(&self, state: &State, now: Timestamp, ask: Ask) -> Decision {
        with_terms!(self, terms => match terms.seen(state) {
            Some(seen) => terms.peek(seen, now, ask),
            None => terms.peek(&Default::default(), now, ask),
        })
    }

    /// Charges or refunds units.
    pub(crate) fn adjust(&self, state: &mut State, now: Timestamp, adjustment: Adjustment) -> Adjusted {
        with_terms!(self, terms => terms.adjust(terms.within(state), now, adjustment))
    }

    /// Returns the time from which the state is clear.
    pub(crate) fn clear_at(&self, state: &State) -> Timestamp {
        with_terms!(self, terms => terms.seen(state).map_or(Timestamp::EPOCH, |seen| terms.clear_at(seen)))
    }

    /// Returns the receipt of a take that was just decided; `None` after a denial.
    pub(crate) fn receipt(
        &self,
        state: &State,
        now: Timestamp,
        ask: Ask,
        decision: &Decision,
    ) -> Option<Receipt> {
        if decision.is_allowed() { self.receipt_of(state, now, ask) } else { None }
    }

    /// Returns the receipt of the last take on a state.
    pub(crate) fn receipt_of(&self, state: &State, now: Timestamp, ask: Ask) -> Option<Receipt> {
        let receipt =
            with_terms!(self, terms => terms.seen(state).map(|seen| terms.receipt(seen, now, ask.cost)));
        receipt.map(|receipt| Receipt { algorithm: Some(self.algorithm()), ..receipt })
    }

    /// Refunds one take. A receipt of another algorithm refunds nothing.
    pub(crate) fn give_back(&self, state: &mut State, now: Timestamp, receipt: Receipt) -> Adjusted {
        if receipt.algorithm.is_some_and(|algorithm| algorithm != self.algorithm()) {
            return Adjusted::Capped;
        }
        with_terms!(self, terms => match terms.seen_mut(state) {
            Some(seen) => terms.give_back(seen, now, receipt),
            None => Adjusted::Capped,
        })
    }

    /// Returns true if the limit grants permits, which are released, not refunded.
    pub(crate) const fn gives_permits(&self) -> bool {
        matches!(self, AlgorithmParams::Concurrency(_))
    }

    /// Returns true if the debts form a queue, so that a refund needs the position of the take in it.
    pub(crate) const fn queues_debts(&self) -> bool {
        matches!(
            self,
            AlgorithmParams::TokenBucket(_) | AlgorithmParams::LeakyBucket(_) | AlgorithmParams::Pacer(_)
        )
    }

    /// Returns the interval of a take among the debts. For a warming pacer only its end is known.
    pub(crate) fn interval(&self, receipt: &Receipt) -> Interval {
        let begin = match self {
            AlgorithmParams::Pacer(pacer) if pacer.warms_up() => receipt.clear_at,
            _ => receipt.clear_at.saturating_sub(receipt.paid),
        };
        Interval { begin, end: receipt.clear_at }
    }

    /// Returns the price of so many units, if their debts form a queue, else zero.
    pub(crate) fn price(&self, units: Cost) -> Ticks {
        match self {
            AlgorithmParams::Pacer(pacer) => pacer.price_in_ticks(units),
            _ => self.debt().map_or(Ticks::ZERO, |debt| debt.time_of(units.get())),
        }
    }

    /// Takes units of one take off a queue of debts, as far as they are still owed; see [`DebtQueue::take_off`].
    pub(crate) fn take_off(
        &self,
        state: &mut State,
        now: Timestamp,
        claim: &Claim,
        units: Cost,
    ) -> Option<TakenOff> {
        match self {
            AlgorithmParams::TokenBucket(terms) => terms.take_off(terms.seen_mut(state)?, now, claim, units),
            AlgorithmParams::LeakyBucket(terms) => terms.take_off(terms.seen_mut(state)?, now, claim, units),
            AlgorithmParams::Pacer(terms) => terms.take_off(terms.seen_mut(state)?, now, claim, units),
            _ => None,
        }
    }

    /// Releases a permit. Returns false for algorithms without permits.
    pub(crate) fn release(&self, state: &mut State, now: Timestamp, permit: PermitId) -> bool {
        let AlgorithmParams::Concurrency(concurrency) = self else { return false };
        concurrency.seen_mut(state).is_some_and(|holders| concurrency.release(holders, now, permit))
    }

    /// Restarts the lease of a permit. Returns false for algorithms without permits.
    pub(crate) fn renew(&self, state: &mut State, now: Timestamp, permit: PermitId) -> bool {
        let AlgorithmParams::Concurrency(concurrency) = self else { return false };
        concurrency.seen_mut(state).is_some_and(|holders| concurrency.renew(holders, now, permit))
    }

    /// Returns the state of a key that begins now.
    pub(crate) fn state_begun_at(&self, now: Timestamp) -> State {
        let mut state = State::default();
        if let AlgorithmParams::Pacer(pacer) = self {
            *pacer.within(&mut state) = pacer.begun_at(now);
        }
        state
    }

    /// Returns the state of a bucket that is clear at this time.
    pub(crate) fn state_of(&self, clear_at: Timestamp) -> State {
        State::of_word(self.algorithm(), clear_at)
    }

    /// Returns the state that a word represents, if the algorithm has a one-word form.
    pub(crate) fn state_of_word(&self, word: u64) -> State {
        let mut state = State::default();
        match self {
            AlgorithmParams::TokenBucket(terms) => *terms.within(&mut state) = terms.state_of_word(word),
            AlgorithmParams::LeakyBucket(terms) => *terms.within(&mut state) = terms.state_of_word(word),
            AlgorithmParams::FixedWindow(terms) => *terms.within(&mut state) = terms.state_of_word(word),
            AlgorithmParams::Calendar(terms) => *terms.within(&mut state) = terms.state_of_word(word),
            _ => {}
        }
        state
    }

    /// Returns the word of a state, if the algorithm has a one-word form, else zero.
    pub(crate) fn word_of(&self, state: &State) -> u64 {
        match self {
            AlgorithmParams::TokenBucket(terms) => terms.seen(state).map_or(0, |seen| terms.word_of(seen)),
            AlgorithmParams::LeakyBucket(terms) => terms.seen(state).map_or(0, |seen| terms.word_of(seen)),
            AlgorithmParams::FixedWindow(terms) => terms.seen(state).map_or(0, |seen| terms.word_of(seen)),
            AlgorithmParams::Calendar(terms) => terms.seen(state).map_or(0, |seen| terms.word_of(seen)),
            _ => 0,
        }
    }

    /// Returns the algorithm as a number, and the numbers, from which [`AlgorithmParams::checked`] restores them.
    pub(crate) fn pack(&self) -> [u64; 6] {
        let [a, b, c, d, e] = with_terms!(self, terms => terms.pack());
        [self.algorithm() as u64, a, b, c, d, e]
    }

    /// Restores an algorithm with the numbers of [`AlgorithmParams::pack`].
    ///
    /// Returns `None` unless a valid limit has exactly these numbers: they may come from a damaged file.
    pub(crate) fn checked(algorithm: Algorithm, numbers: Words) -> Option<AlgorithmParams> {
        let [a, b, c, d, e] = numbers;
        let period = || (1..=Ticks::TEN_YEARS.get()).contains(&b).then(|| Ticks::new(b));
        let terms = match algorithm {
            Algorithm::TokenBucket => {
                let interval = NonZeroU64::new(b)?;
                AlgorithmParams::TokenBucket(TokenBucket::new(interval, a, d / interval).ok()?)
            }
            Algorithm::LeakyBucket => {
                let interval = NonZeroU64::new(b)?;
                let after = if e == u64::MAX { DelayAfter::All } else { DelayAfter::Units(e / interval) };
                let queue = a.checked_sub(1)?;
                AlgorithmParams::LeakyBucket(
                    LeakyBucket::new(interval, queue, after, Some(d / interval)).ok()?,
                )
            }
            Algorithm::FixedWindow => {
                let alignment = if c == 0 { Alignment::Epoch } else { Alignment::FirstHit };
                let max_debt = d.checked_sub(a)?;
                AlgorithmParams::FixedWindow(FixedWindow::new(a, period()?, alignment, max_debt).ok()?)
            }
            Algorithm::SlidingLog => AlgorithmParams::SlidingLog(SlidingLog::new(a, period()?, c != 0).ok()?),
            Algorithm::SlidingWindow => {
                let whole = period()?.checked_mul(c).filter(|whole| *whole <= LONGEST_SLOTS)?;
                let mode = if d == 0 { WindowMode::Strict } else { WindowMode::Estimate };
                AlgorithmParams::SlidingWindow(SlidingWindow::new(a, whole, c, mode, e.checked_sub(a)?).ok()?)
            }
            Algorithm::Pacer => {
                let (interval, pay) = (NonZeroU64::new(a), if b == 0 { Pay::Next } else { Pay::Own });
                AlgorithmParams::Pacer(match e {
                    0 => PacerParams::steady(interval, Ticks::new(c), pay).ok()?,
                    _ => PacerParams::warming_up(interval, Ticks::new(d), e, pay).ok()?,
                })
            }
            Algorithm::Concurrency => AlgorithmParams::Concurrency(Concurrency::new(a, period()?).ok()?),
            Algorithm::Calendar => {
                let periods = CalendarPeriods::unpack([b, c])?;
                let max_debt = d.checked_sub(a).filter(|_| a > 0)?;
                AlgorithmParams::Calendar(Calendar::new(a, periods, max_debt).ok()?)
            }
        };
        (terms.numbers() == numbers).then_some(terms)
    }

    /// Returns the numbers alone, in the order of [`Limit::numbers`](super::Limit::numbers).
    pub(crate) fn numbers(&self) -> Words {
        let [_, numbers @ ..] = self.pack();
        numbers
    }

    /// Returns a carried state as an ask finds it now: a window that opens with a hit opens now, with its carried
    /// count.
    pub(crate) fn opened_now(&self, mut state: State, now: Timestamp) -> State {
        if let AlgorithmParams::FixedWindow(window) = self {
            if let Some(carried) = window.seen_mut(&mut state) {
                *carried = window.opened_now(*carried, now);
            }
        }
        state
    }

    /// Returns the longest time after a change to this limit for which earlier usage can matter.
    pub(crate) fn longest_carried(&self) -> Ticks {
        with_terms!(self, terms => terms.longest_carried())
    }

    /// Returns the largest growth of the state's heap memory by one take.
    #[inline]
    pub(crate) fn growth(&self, state: &State) -> usize {
        with_terms!(self, terms => terms.growth(terms.seen(state)))
    }

    /// Returns the largest heap memory of a state.
    pub(crate) fn most_held(&self) -> usize {
        with_terms!(self, terms => terms.most_held())
    }

    /// Returns the largest number of [words](State::words) of a state after one more take.
    #[inline]
    pub(crate) fn words_after(&self, state: &State) -> usize {
        with_terms!(self, terms => terms.words_after(state.word_count()))
    }

    /// Returns the largest number of words of a state, including the reservation for one more take.
    pub(crate) fn most_words(&self) -> usize {
        with_terms!(self, terms => terms.most_words())
    }

    /// Returns the wait of a new waiter at the end of a queue, from the time at which the head may pass, if it is a
    /// sum. `head` units wait at the head, `all` in the whole queue.
    pub(crate) fn wait_in_line(&self, head: u64, all: u64, ask: Ask) -> Option<Ticks> {
        match self {
            AlgorithmParams::TokenBucket(bucket) => {
                Some(bucket.debt().time_of(all.saturating_sub(head).saturating_add(ask.units())))
            }
            AlgorithmParams::LeakyBucket(bucket) if bucket.delays_all() => Some(bucket.debt().time_of(all)),
            _ => None,
        }
    }

    /// Returns true if the limit guarantees spacing, so that a head that is served late must not delay the waiters
    /// behind it.
    pub(crate) const fn spaces(&self) -> bool {
        matches!(self, AlgorithmParams::LeakyBucket(_) | AlgorithmParams::Pacer(_))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::Limit;

    #[test]
    fn packed_numbers_restore_the_same_limit() {
        let texts = [
            "10/s burst 20 max-debt 3",
            "10/s queue 5 delay-after 2",
            "10/s queue 5 delay-after all",
            "7/60s fixed-window align first-hit max-debt 9",
            "7/60s fixed-window",
            "5/m sliding-log count-denied",
            "5/m sliding-log",
            "5/m sliding-window slots 7 max-debt 2",
            "5/m sliding-window mode estimate",
            "5/s pacer burst 3s pay self",
            "5/s pacer burst 0s",
            "5/s pacer warm-up 4s cold-factor 5",
            "unlimited pacer",
            "8/30s concurrency",
            "5/hour calendar",
            "5/week calendar from sunday max-debt 3",
            "5/year calendar from 04-06",
        ];
        for text in texts {
            let text = if text.contains("queue") { format!("{text} leaky-bucket") } else { text.to_owned() };
            let limit: Limit = text.parse().unwrap();
            assert_eq!(
                AlgorithmParams::checked(limit.algorithm(), limit.terms().numbers()),
                Some(*limit.terms()),
                "{text}"
            );
            assert_eq!(limit.terms().algorithm(), limit.algorithm());
        }
    }
}
