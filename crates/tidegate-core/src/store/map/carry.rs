//! The state that a key starts with after the limit of its rule was changed: counts from its states under earlier
//! limits, which are in the same shard.
//!
//! Nothing is written when a limit changes. A key pays for the change with its first take under the new limit: the
//! states under earlier limits are read, converted to units of the new limit, and the result becomes its new state. The
//! earlier states are left as they are and expire by themselves, because another server may still decide by them.
//!
//! A change that only gives back a take, releases a permit or renews one has no ask. It concerns a state under its own
//! limit, so nothing is carried for it. An adjustment concerns the carried counts. It refunds nothing if no debt would
//! be left: a clear state is not kept, so the same counts would be carried again.

use super::shard::{Entry, Shard, StateRef};
use super::states::{Moment, named};
use super::{Inner, StateLocation};
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::history::{Begun, OwnDecision};
use crate::store::Reported;
use crate::store::state_key::StateKey;
use crate::time::Timestamp;

impl Inner {
    /// Changes the state of an account while counts of earlier limits matter. A denial writes nothing, and reports the
    /// wait of the strictest carried state. A change of a live state has only its reported values corrected.
    #[cold]
    pub(super) fn change_carrying<R: Reported>(
        &self,
        shard: &mut Shard,
        account: &StateKey,
        moment: Moment,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let (terms, Moment { place, now, at, ask, .. }) = (account.terms(), moment);
        let begun = if ask.is_some() { shard.begun(place, account, at) } else { Begun::FULL };
        let ask = ask.unwrap_or(Ask::ONE);
        if begun.is_full() {
            let answer = self.change_own(shard, account, moment, change, full);
            return answer.report(&mut |decision| shard.report_own(place, account, at, ask, decision));
        }
        let first = begun.state_under(terms, at, ask);
        let mut state = first.clone();
        let answer = change(&mut state, at);
        if state == first {
            return answer.report(&mut |decision| {
                if decision.is_allowed() { decision } else { begun.peek_terms(terms, at, ask) }
            });
        }
        // A refund that leaves no debt would be forgotten, and the counts carried again.
        if terms.clear_at(&state) <= at {
            return answer.not_kept();
        }
        // A clear state of its own is replaced by the carried one.
        shard.remove(place.hash, named(account), &self.budget);
        if self.remember(shard, place.hash, account, state, now) { answer } else { full(&first, at) }
    }
}

impl Shard {
    /// Returns the decision that an ask would get, without spending. The clock was read by the caller, so that several
    /// peeks of one request are as of one time.
    pub(super) fn peek(
        &self,
        place: StateLocation,
        account: &StateKey,
        now: Timestamp,
        ask: Ask,
    ) -> Decision {
        let own = self.find(place.hash, named(account)).map(Entry::state);
        let decision = match own {
            Some(state) => account.terms().peek(state, now, ask),
            None => account.terms().peek(&State::default(), now, ask),
        };
        if !account.limit().carries_at(now) {
            return decision;
        }
        let begun = self.begun(place, account, now);
        if begun.is_full() {
            return self.report_own(place, account, now, ask, decision);
        }
        begun.peek_terms(account.terms(), now, ask)
    }

    /// Returns the states that a key starts with, from those under earlier limits; [`Begun::FULL`] if it has a live
    /// one. All of these are in this shard, because the shard is selected by the name alone.
    fn begun(&self, place: StateLocation, account: &StateKey, now: Timestamp) -> Begun {
        let own = self.find(place.hash, named(account));
        if own.is_some_and(|own| own.clear_at() > now) {
            return Begun::FULL;
        }
        let limit = account.limit();
        limit.history().begin_terms(limit.terms(), now, |before, _| self.state_before(place, account, before))
    }

    /// Returns the state of a key under one of the earlier limits. `before` is the index in the list of predecessors. A
    /// key without such a state gets an empty one.
    fn state_before(&self, place: StateLocation, account: &StateKey, before: usize) -> State {
        let limit = account.limit().name_before(before).digest;
        let state = StateRef { limit, name: account.name().bytes() };
        let entry = self.find(place.hash_under(limit), state);
        entry.map_or_else(State::default, |entry| entry.state().clone())
    }

    /// Returns the decision on a live state, corrected for the counts of earlier limits that apply once that state is
    /// clear. Without it a caller would be promised quota at a time at which a carried count still blocks it.
    fn report_own(
        &self,
        place: StateLocation,
        account: &StateKey,
        now: Timestamp,
        ask: Ask,
        decision: Decision,
    ) -> Decision {
        let Some(own) = self.find(place.hash, named(account)) else { return decision };
        let limit = account.limit();
        let own = OwnDecision { state: own.state(), decision, now, ask };
        limit
            .history()
            .report_terms(limit.terms(), own, |before, _| self.state_before(place, account, before))
    }
}
