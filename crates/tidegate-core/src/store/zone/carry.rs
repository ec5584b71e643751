//! The state that a key starts with after the limit of its rule was changed: counts from its cells under earlier
//! limits.
//!
//! All of this is off the hot path. A cell whose word is later than all carried counts is decided without it.
//!
//! ```text
//!   own cell       live: decides, and only its reported wait is corrected
//!                  clear or none: the states under earlier limits are read and converted
//!   shared cell    its time is an upper bound; the later one of both counts
//!   written        as the key's own cell under the new limit, with its first take
//! ```
//!
//! States of more than one word are in the map beside the zone. Nothing is carried from one to the other.

use super::WhenFull;
use super::cell::Content;
use super::change::Change;
use super::core::{CellOp, Core, change_own};
use super::subjects::FindUnder;
use super::table::{CellSnapshot, View};
use crate::algorithm::{OneWord, State};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::history::{Begun, OwnDecision, Predecessor};
use crate::limit::AlgorithmParams;
use crate::store::Reported as _;
use crate::store::bound::BoundLimit;
use crate::time::Timestamp;

impl Core {
    /// Changes the key's own state, which may be clear while counts of earlier limits are not. Returns `None` if the
    /// cell has changed since it was read; the caller then starts again.
    pub(super) fn change_carrying<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        view: &View<'_>,
        own: CellSnapshot,
        now: Timestamp,
    ) -> Option<C::Answer> {
        let content = own.content;
        let state = who.terms.state_of_word(content.word);
        let is_clear = who.terms.clear_at(&state) <= now;
        let begun = if is_clear { self.begun_by(who, change, now) } else { Begun::FULL };
        let (answer, after) = if begun.is_full() {
            let (answer, after) = change_own(content, who, now, change);
            let (left, ask) = (who.terms.state_of_word(after.word), change.ask().unwrap_or(Ask::ONE));
            (answer.report(&mut |decision| self.report_own(who, &left, decision, now, ask)), after)
        } else {
            let (answer, word) = begin_carried(who, change, &begun, Timestamp::EPOCH, now);
            let written = |word| Content::own(who.spot.fingerprint, who.kind(), word);
            (answer, word.map_or(content, written))
        };
        if after == content {
            return Some(answer);
        }
        if who.limit.is_unnoted(after.word) {
            self.note(who, after.word, now);
        }
        view.replace(own, after).then_some(answer)
    }

    /// Returns the states that a change of a key without a live state starts with. A change without an ask, such as a
    /// refund, concerns only takes under this limit, so nothing is carried for it.
    pub(super) fn begun_by<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        now: Timestamp,
    ) -> Begun {
        if change.ask().is_some() { self.begun(who, now) } else { Begun::FULL }
    }

    /// Returns the states that a key without a live state starts with, from its cells under earlier limits.
    /// [`Begun::FULL`] if nothing is carried, which is decided by one comparison with the clock.
    pub(super) fn begun<W: OneWord>(&self, who: &CellOp<'_, W>, now: Timestamp) -> Begun {
        match who.key {
            Some(key) if who.limit.carries_at(now) => {
                who.limit.history().begin_terms(who.limit.terms(), now, |place, before| {
                    self.state_before(key, who.limit, place, before)
                })
            }
            _ => Begun::FULL,
        }
    }

    /// Returns the state of a key under one of the earlier limits. One more search of the table per earlier limit;
    /// there are at most four.
    fn state_before(
        &self,
        key: &dyn FindUnder,
        limit: &BoundLimit,
        place: usize,
        before: &Predecessor,
    ) -> State {
        let spot = key.spot_under(&self.table, limit.name_before(place));
        let terms = before.terms();
        let word = match terms {
            AlgorithmParams::TokenBucket(bucket) => self.word(&spot, bucket),
            AlgorithmParams::LeakyBucket(bucket) => self.word(&spot, bucket),
            AlgorithmParams::FixedWindow(window) if window.fits_word() => self.word(&spot, window),
            AlgorithmParams::Calendar(window) if window.fits_word() => self.word(&spot, window),
            // The map beside the zone has it, and nothing is carried from one to the other.
            _ => None,
        };
        word.map_or_else(State::default, |word| terms.state_of_word(word))
    }

    /// Returns the decision on a live state, corrected for the counts of earlier limits that apply once that state is
    /// clear. The wait that a denial reports would otherwise be too short: at its end the carried counts would deny
    /// again.
    pub(super) fn report_own<W: OneWord>(
        &self,
        who: &CellOp<'_, W>,
        state: &W::State,
        decision: Decision,
        now: Timestamp,
        ask: Ask,
    ) -> Decision {
        let Some(key) = who.key else { return decision };
        let word = who.terms.word_of(state);
        if !who.limit.may_carry_to(word) {
            return decision;
        }
        let state = who.limit.terms().state_of_word(word);
        let before = |place, before: &Predecessor| self.state_before(key, who.limit, place, before);
        let own = OwnDecision { state: &state, decision, now, ask };
        who.limit.history().report_terms(who.limit.terms(), own, before)
    }
}

/// Applies a change to a key that starts with counts of earlier limits and with the possible debt of shared cells.
/// Returns the new word too, if it differs. The key is decided by the strictest carried state, and by the shared cells
/// if its rule shares. A denial reports the wait of the carried states, unless shared cells are the cause.
pub(super) fn begin_carried<W: OneWord, C: Change<W>>(
    who: &CellOp<'_, W>,
    change: &C,
    begun: &Begun,
    shared_until: Timestamp,
    now: Timestamp,
) -> (C::Answer, Option<u64>) {
    let (terms, ask) = (who.limit.terms(), change.ask().unwrap_or(Ask::ONE));
    let carried = begun.state_under(terms, now, ask);
    let is_shared = shared_until > now && who.when_full == WhenFull::Share;
    let mut state = if is_shared {
        who.terms.worst_state(shared_until.max(terms.clear_at(&carried)), now)
    } else {
        who.terms.state_of_word(terms.word_of(&carried))
    };
    let before = who.terms.word_of(&state);
    let answer = change.change(who.terms, &mut state, now);
    let word = who.terms.word_of(&state);
    // A refund that leaves no debt would be forgotten, and the counts carried again.
    if !begun.is_full() && word != before && who.terms.clear_at(&state) <= now {
        return (answer.not_kept(), None);
    }
    let answer = if begun.is_full() || is_shared || word != before {
        answer
    } else {
        answer.report(&mut |decision| {
            if decision.is_allowed() { decision } else { begun.peek_terms(terms, now, ask) }
        })
    };
    (answer, (word != before).then_some(word))
}
