//! The states of a direct limiter: that of the limit in force, and those of the previous limits.

use crate::algorithm::carry::carry;
use crate::algorithm::{Algorithm, State};
use crate::ask::Ask;
use crate::history::{History, MAX_PREDECESSORS, Predecessor};
use crate::limit::{AlgorithmParams, Limit};
use crate::time::Timestamp;

/// The largest number of replaced limits whose states are kept.
///
/// Older ones are forgotten: a limit that then comes back starts with the counts of its predecessors.
const MAX_REPLACED: usize = 256;

/// The limit in force and the limits that were replaced, each with its state.
#[derive(Debug)]
pub(super) struct States {
    limit: Limit,
    /// The time at which the limit came into force.
    since: Timestamp,
    state: State,
    /// True once the state of the first limit is here and not in the word of the limiter.
    pub(super) has_moved: bool,
    /// The replaced limits with their states, newest first.
    replaced: Vec<(Predecessor, State)>,
}

impl States {
    /// Creates the states under a first limit.
    pub(super) fn new(limit: Limit, has_moved: bool) -> States {
        States { limit, since: Timestamp::EPOCH, state: State::default(), has_moved, replaced: Vec::new() }
    }

    /// Returns the limit in force, as it was given.
    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// Moves the state of the first limit here.
    pub(super) fn begin_with(&mut self, state: State) {
        self.state = state;
        self.has_moved = true;
    }

    /// Removes the usage under every limit.
    pub(super) fn forget_all(&mut self) {
        self.state = State::default();
        self.replaced.clear();
    }

    /// Returns the limit in force with its state.
    pub(super) fn in_force(&mut self) -> (AlgorithmParams, &mut State) {
        (*self.limit.terms(), &mut self.state)
    }

    /// Returns true if the state of this limit is kept.
    pub(super) fn knows(&self, terms: &AlgorithmParams) -> bool {
        is_one_state(terms, self.limit.terms()) || self.place_of(terms).is_some()
    }

    /// Returns a limit whose state is kept, with that state. A caller that read the limit before it was replaced
    /// takes from the state of the old limit, as in a store.
    pub(super) fn of(&mut self, terms: &AlgorithmParams) -> (AlgorithmParams, &mut State) {
        let place = if is_one_state(terms, self.limit.terms()) { None } else { self.place_of(terms) };
        (*terms, place.map_or(&mut self.state, |place| &mut self.replaced[place].1))
    }

    /// Replaces the limit, and returns true unless the new one is the same. If the new limit was in force before
    /// and its kept state is live, it continues with that state. Otherwise it starts with the usage under the
    /// previous limits.
    pub(super) fn replace(&mut self, limit: Limit, now: Timestamp) -> bool {
        let (old, new) = (*self.limit.terms(), *limit.terms());
        self.limit = limit;
        if old == new {
            return false;
        }
        let state = std::mem::take(&mut self.state);
        self.keep(old, state, now);
        self.since = now;
        let own = self.place_of(&new).map(|place| self.replaced.remove(place).1);
        let is_one_set = new.algorithm() == Algorithm::Concurrency;
        let own = own.filter(|own| is_one_set || new.clear_at(own) > now);
        self.state = match (own, self.replaced.first_mut()) {
            // As in Guava: a new rate continues with the savings and the debt of the old one, whose state becomes
            // empty.
            (own, Some((newest, state))) if is_pacer(&new) && is_pacer(newest.terms()) => {
                let carried = carry(newest.terms(), &std::mem::take(state), now, &new);
                own.filter(|own| new.clear_at(own) > new.clear_at(&carried)).unwrap_or(carried)
            }
            (Some(own), _) => own,
            _ => self.begun(&new, now),
        };
        true
    }

    /// Keeps the state of a replaced limit: the limit continues with it when it comes into force again. Counts are
    /// carried through the newest limits. Of older limits, only live states are kept.
    fn keep(&mut self, old: AlgorithmParams, state: State, now: Timestamp) {
        self.replaced.retain(|(before, _)| !is_one_state(before.terms(), &old));
        self.replaced.insert(0, (Predecessor::of_terms(old, self.since), state));
        let mut place = 0;
        self.replaced.retain(|(before, state)| {
            place += 1;
            place <= MAX_PREDECESSORS + 1 || before.clear_at(state) > now
        });
        self.replaced.truncate(MAX_REPLACED);
    }

    /// Returns the state that a limit starts with: the usage under the previous limits.
    fn begun(&self, terms: &AlgorithmParams, now: Timestamp) -> State {
        let before = self.replaced.iter().map(|(before, _)| *before).collect();
        let begun =
            History::new(now, before).begin_terms(terms, now, |place, _| self.replaced[place].1.clone());
        begun.state_under(terms, now, Ask::ONE)
    }

    /// Returns the index of a replaced limit whose state is kept.
    fn place_of(&self, terms: &AlgorithmParams) -> Option<usize> {
        self.replaced.iter().position(|(before, _)| is_one_state(before.terms(), terms))
    }
}

/// Returns true for equal limits, and for two concurrency limits: their permits are one set, whatever the numbers.
fn is_one_state(one: &AlgorithmParams, other: &AlgorithmParams) -> bool {
    let are_holders = |terms: &AlgorithmParams| terms.algorithm() == Algorithm::Concurrency;
    one == other || (are_holders(one) && are_holders(other))
}

/// Returns true for pacers, which have one state across changes of the rate.
fn is_pacer(terms: &AlgorithmParams) -> bool {
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

    fn take((terms, state): (AlgorithmParams, &mut State), units: u64) -> bool {
        terms.decide(state, now(), Ask::new(Cost::of(units)), 0).is_allowed()
    }

    #[test]
    fn a_caller_of_a_replaced_limit_takes_from_the_state_of_that_limit() {
        let (slow, fast) = (limit("2/h"), limit("1/s"));
        let mut states = States::new(slow, true);
        assert!(take(states.in_force(), 2));
        assert!(states.replace(fast, now()) && !states.replace(fast, now()));
        assert!(!take(states.of(slow.terms()), 1), "the debt of the fast limit is small for the slow one");
        assert!(!take(states.of(fast.terms()), 1), "what was used is carried over");
    }

    #[test]
    fn a_live_state_outlasts_any_number_of_other_limits_up_to_a_bound() {
        for (others, is_kept) in [(5, true), (MAX_REPLACED - 1, true), (MAX_REPLACED, false)] {
            let first = limit("10/d");
            let mut states = States::new(first, true);
            assert!(take(states.in_force(), 10));
            for amount in 0..others as u64 {
                states.replace(Limit::per_hour(amount + 1), now());
                *states.in_force().1 = State::default();
                assert!(take(states.in_force(), 1));
            }
            states.replace(limit("1/s"), now());
            assert_eq!(states.knows(first.terms()), is_kept, "{others}");
            assert!(states.replaced.len() <= MAX_REPLACED);
        }
    }

    #[test]
    fn a_limit_that_comes_back_after_many_others_finds_its_own_state() {
        let first = limit("10/h");
        let mut states = States::new(first, true);
        assert!(take(states.in_force(), 10));
        for amount in 1..20 {
            states.replace(Limit::per_second(amount), now());
            *states.in_force().1 = State::default();
        }
        states.replace(first, now());
        assert!(!take(states.in_force(), 1));
    }

    #[test]
    fn clear_states_of_limits_long_ago_are_not_kept() {
        let mut states = States::new(limit("1/s"), true);
        for amount in 2..100 {
            states.replace(Limit::per_second(amount), now());
        }
        assert_eq!(states.replaced.len(), MAX_PREDECESSORS + 1);
    }

    #[test]
    fn a_pacer_that_comes_back_keeps_its_debt() {
        let (slow, fast) = (limit("1/h pacer burst 0s"), limit("2/h pacer burst 0s"));
        let mut states = States::new(slow, true);
        assert!(take(states.in_force(), 1));
        for next in [limit("1/h"), fast, slow] {
            states.replace(next, now());
        }
        assert!(!take(states.in_force(), 1));
    }
}
