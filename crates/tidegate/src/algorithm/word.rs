//! States that fit one word, for stores that keep nothing else.
//!
//! Read as a time, the word of any algorithm says when it is worth nothing: whoever finds it may throw it away
//! then, without knowing whose it was. That also lets subjects share a word: of a subject whose own word was
//! lost among others it is still known that it owes nothing after that time.

use super::{Decide, fixed_window};
use crate::ask::{Adjusted, Ask, Cost};
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::time::{Ticks, Timestamp};

/// The worst word that is worth nothing from about this time on, whosever it is: where a part of it is a count, that
/// is the largest.
pub(crate) fn worst_word(clear_at: Timestamp) -> u64 {
    clear_at.ticks() | (fixed_window::UNIT - 1)
}

/// An algorithm whose states can be kept in one word.
pub(crate) trait OneWord: Decide {
    /// The word that stands for a state, at least its clear time.
    fn word_of(&self, state: &Self::State) -> u64;

    /// The state that a word stands for.
    fn state_of_word(&self, word: u64) -> Self::State;

    /// The longest time for which taking and charging can make a word worth something.
    fn longest_debt(&self) -> Ticks;

    /// A debt up to this is never taken for the trace of a clock that was set back.
    fn never_cut(&self) -> Ticks {
        self.longest_debt()
    }

    /// The worst state of a subject that owes nothing after `clear_at`.
    fn worst_state(&self, clear_at: Timestamp, now: Timestamp) -> Self::State;

    /// Decides about a subject of which only is known that it owes nothing after `clear_at`, which may be much
    /// later than it could ever owe by itself. With the word that an allowed ask leaves.
    fn decide_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> (Decision, u64);

    /// What [`OneWord::decide_sharing`] would say, and what is left as it is.
    fn peek_sharing(&self, clear_at: Timestamp, now: Timestamp, ask: Ask) -> Decision;

    /// Charges such a subject. With the word that it leaves.
    fn charge_sharing(&self, clear_at: Timestamp, now: Timestamp, cost: Cost) -> (Adjusted, u64);

    /// Gives back a take that others have followed, as if it had never been, if nobody can have been told
    /// anything because of it that would then be wrong.
    fn undo(&self, state: &mut Self::State, now: Timestamp, receipt: Receipt) -> Adjusted {
        self.give_back(state, now, receipt)
    }
}
