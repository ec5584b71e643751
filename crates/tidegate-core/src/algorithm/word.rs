//! States that fit in one word, for stores that keep one word per key.
//!
//! For every algorithm the word, read as a time, is an upper bound of the state's expiry. A store can drop an expired
//! word without its limit or its key. Keys can also share a word: if a key's own word was merged with others, the
//! shared time is still an upper bound of its debt.

use super::{Decide, fixed_window};
use crate::ask::{Adjusted, Ask, Cost};
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::time::{Ticks, Timestamp};

/// Returns the largest word, of any algorithm, that expires at about this time. A part of it that is a count is the
/// largest count.
pub(crate) fn worst_word(clear_at: Timestamp) -> u64 {
    clear_at.ticks() | (fixed_window::UNIT - 1)
}

/// An algorithm whose states fit in one word.
pub(crate) trait OneWord: Decide {
    /// Returns the word of a state. Read as a time, it is at least the state's clear time.
    fn word_of(&self, state: &Self::State) -> u64;

    /// Returns the state that a word represents.
    fn state_of_word(&self, word: u64) -> Self::State;

    /// Returns the longest time for which takes and charges can keep a word from expiring.
    fn longest_debt(&self) -> Ticks;

    /// Returns the debt up to which a state is never treated as the trace of a clock that was set back.
    fn never_cut(&self) -> Ticks {
        self.longest_debt()
    }

    /// Returns the worst state of a key that owes nothing after `clear_at`.
    fn worst_state(&self, clear_at: Timestamp, now: Timestamp) -> Self::State;

    /// Decides for a key whose debt is known only by its upper bound `clear_at`, which may be much later than the key
    /// could owe by itself. Returns the decision, and the word that an allowed ask leaves.
    fn decide_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> (Decision, u64);

    /// Returns the decision that [`OneWord::decide_sharing`] would make, with the remaining quota of the unchanged
    /// state.
    fn peek_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> Decision;

    /// Charges a key whose debt is known only by its upper bound `clear_at`. Returns the word that the charge leaves.
    fn charge_sharing(&self, clear_at: Timestamp, now: Timestamp, cost: Cost) -> (Adjusted, u64);

    /// Refunds a take that later takes have followed, as if it had never happened. Nothing is refunded this way if the
    /// refund could invalidate a time that a later request was promised.
    fn undo(&self, state: &mut Self::State, now: Timestamp, receipt: Receipt) -> Adjusted {
        self.give_back(state, now, receipt)
    }
}
