//! The states of a single limiter: that of the limit in force, and those of the limits before it.

use crate::algorithm::carry::carry;
use crate::algorithm::{Algorithm, State};
use crate::ask::Ask;
use crate::history::{History, MAX_PREDECESSORS, Predecessor};
use crate::limit::{Limit, Terms};
use crate::time::Timestamp;

/// The limit in force and the limits that were replaced, each with its state.
#[derive(Debug)]
pub(super) struct States {
    limit: Limit,
    /// The time at which the limit came into force.
    since: Timestamp,
    state: State,
    /// True once the state of the first limit is here and not in the word of the limiter.
    pub(super) has_moved: bool,
    /// Newest first.
    replaced: Vec<(Predecessor, State)>,
}

impl States {
    /// The states under a first limit.
    pub(super) fn new(limit: Limit, has_moved: bool) -> States {
        States { limit, since: Timestamp::EPOCH, state: State::default(), has_moved, replaced: Vec::new() }
    }

    /// The limit in force, as it was given.
    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// Moves the state of the first limit here.
    pub(super) fn begin_with(&mut self, state: State) {
        self.state = state;
        self.has_moved = true;
    }

    /// Forgets what was used under every limit.
    pub(super) fn forget_all(&mut self) {
        self.state = State::default();
        self.replaced.clear();
    }

    /// The limit in force with its state.
    pub(super) fn in_force(&mut self) -> (Terms, &mut State) {
        (*self.limit.terms(), &mut self.state)
    }

    /// A limit that is or was in force, with its state.
    ///
    /// A caller that read the limit before it was replaced takes from the state of the old limit, as in a store. If
    /// the limit was replaced too often since, it begins again with what was used under the others.
    pub(super) fn of(&mut self, terms: &Terms, now: Timestamp) -> (Terms, &mut State) {
        if is_one_state(terms, self.limit.terms()) {
            return (*terms, &mut self.state);
        }
        let place = match self.place_of(terms) {
            Some(place) => place,
            None => {
                let state = self.begun(terms, now);
                self.replaced.push((Predecessor::of_terms(*terms, self.since), state));
                self.replaced.len() - 1
            }
        };
        (*terms, &mut self.replaced[place].1)
    }

    /// Puts another limit in force. Its own state, kept since it was in force before, goes on if it is live; else the
    /// limit begins with what was used under the limits before.
    pub(super) fn replace(&mut self, limit: Limit, now: Timestamp) {
        let (old, new) = (*self.limit.terms(), *limit.terms());
        self.limit = limit;
        if old == new {
            return;
        }
        let state = std::mem::take(&mut self.state);
        self.keep(old, state);
        self.since = now;
        let own = self.place_of(&new).map(|place| self.replaced.remove(place).1);
        self.state = match (own, self.replaced.first()) {
            // As in Guava: a new rate goes on from what is saved and owed at the old one.
            (_, Some((newest, state))) if is_pacer(&new) && is_pacer(newest.terms()) => {
                carry(newest.terms(), state, now, &new)
            }
            (Some(own), _) if new.clear_at(&own) > now => own,
            _ => self.begun(&new, now),
        };
    }

    /// Keeps the state of a limit that was replaced: it is that limit's own when it comes into force again.
    fn keep(&mut self, old: Terms, state: State) {
        self.replaced.retain(|(before, _)| !is_one_state(before.terms(), &old));
        self.replaced.insert(0, (Predecessor::of_terms(old, self.since), state));
        // One more than counts are carried from: one of them may be the limit that comes into force.
        let is_like = |(before, _): &(Predecessor, State)| before.algorithm() == old.algorithm();
        if self.replaced.iter().filter(|past| is_like(past)).count() > MAX_PREDECESSORS + 1 {
            if let Some(oldest) = self.replaced.iter().rposition(is_like) {
                self.replaced.remove(oldest);
            }
        }
    }

    /// The state that a limit begins with: what was used under the limits before.
    fn begun(&self, terms: &Terms, now: Timestamp) -> State {
        let before = self.replaced.iter().map(|(before, _)| *before).collect();
        let begun =
            History::new(now, before).begin_terms(terms, now, |place, _| self.replaced[place].1.clone());
        begun.state_under(terms, now, Ask::ONE)
    }

    fn place_of(&self, terms: &Terms) -> Option<usize> {
        self.replaced.iter().position(|(before, _)| is_one_state(before.terms(), terms))
    }
}

/// Returns true for one limit, and for two concurrency limits: their holders are one set, whatever the numbers.
fn is_one_state(one: &Terms, other: &Terms) -> bool {
    let are_holders = |terms: &Terms| terms.algorithm() == Algorithm::Concurrency;
    one == other || (are_holders(one) && are_holders(other))
}

fn is_pacer(terms: &Terms) -> bool {
    terms.algorithm() == Algorithm::Pacer
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::SECOND;
    use crate::ask::Cost;

    fn limit(text: &str) -> Limit {
        text.parse().expect("a limit")
    }

    fn now() -> Timestamp {
        Timestamp::after_epoch(1000 * SECOND)
    }

    fn take((terms, state): (Terms, &mut State), units: u64) -> bool {
        terms.decide(state, now(), Ask::new(Cost::of(units)), 0).is_allowed()
    }

    #[test]
    fn a_caller_of_a_replaced_limit_takes_from_the_state_of_that_limit() {
        let (slow, fast) = (limit("2/h"), limit("1/s"));
        let mut states = States::new(slow, true);
        assert!(take(states.in_force(), 2));
        states.replace(fast, now());
        assert!(
            !take(states.of(slow.terms(), now()), 1),
            "the debt of the fast limit is small for the slow one"
        );
        assert!(!take(states.of(fast.terms(), now()), 1), "what was used is carried over");
    }

    #[test]
    fn a_limit_that_was_replaced_too_often_begins_with_what_was_used_since() {
        let limits = ["1/h", "2/h", "3/h", "4/h", "5/h", "6/h", "7/h"].map(limit);
        let mut states = States::new(limits[0], true);
        for next in &limits {
            states.replace(*next, now());
            assert!(take(states.in_force(), 1));
        }
        assert!(!take(states.of(limits[0].terms(), now()), 1));
        assert!(states.replaced.len() <= MAX_PREDECESSORS + 2);
    }
}
