//! The limits that a rule has had: since when each was in force, and what a key begins with under the newest.
//!
//! ```text
//!        oldest predecessor      newest predecessor       limit in force
//!   ----+-----------------------+------------------------+---------------> time
//!     since                   since                    since
//!                                   counts are carried ->|
//! ```
//!
//! A state belongs to one limit, so a key has one for each of them. A live state of the limit in force is used as it
//! is. A key without one begins with what [`Limit::carry`] makes of its states under the predecessors. That is a pure
//! function: denials and peeks write nothing, and from one full refill after the change on no predecessor is read.
//!
//! A store forgets a state when it is clear under its own limit. So that no answer depends on when that happens, a
//! carried state ends with the state that it comes from ([`Begun::until`]), and no denial reports a longer wait.

use crate::algorithm::carry::carry;
use crate::algorithm::{Algorithm, State};
use crate::decision::Decision;
use crate::limit::{Limit, Terms};
use crate::time::Timestamp;

/// The most predecessors of a limit that counts are carried from; older ones are dropped.
pub const MAX_PREDECESSORS: usize = 4;

/// A limit that was in force before another one.
///
/// It knows the numbers that decide and not the text that was written, so that a store can keep it as a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    terms: Terms,
    since: Timestamp,
}

impl Predecessor {
    /// A limit that came into force at this time.
    pub fn new(limit: &Limit, since: Timestamp) -> Predecessor {
        Predecessor::of_terms(*limit.terms(), since)
    }

    /// The limit of this algorithm with these [`Limit::numbers`]; `None` if no limit has them.
    ///
    /// ```
    /// use tidegate::{Algorithm, Limit, Predecessor, Timestamp};
    ///
    /// let limit = Limit::per_second(10).burst(20);
    /// let read = Predecessor::from_numbers(limit.algorithm(), limit.numbers(), Timestamp::EPOCH);
    /// assert_eq!(read, Some(Predecessor::new(&limit, Timestamp::EPOCH)));
    /// assert_eq!(Predecessor::from_numbers(Algorithm::FixedWindow, [5, 0, 0, 5, 0], Timestamp::EPOCH), None);
    /// ```
    pub fn from_numbers(algorithm: Algorithm, numbers: [u64; 5], since: Timestamp) -> Option<Predecessor> {
        Terms::checked(algorithm, numbers).map(|terms| Predecessor::of_terms(terms, since))
    }

    pub(crate) const fn of_terms(terms: Terms, since: Timestamp) -> Predecessor {
        Predecessor { terms, since }
    }

    /// The algorithm's name.
    pub const fn algorithm(&self) -> Algorithm {
        self.terms.algorithm()
    }

    /// The numbers that it decides by, as in [`Limit::numbers`].
    pub fn numbers(&self) -> [u64; 5] {
        self.terms.numbers()
    }

    /// The time at which it came into force.
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// The time from which on a state of this limit is worth nothing.
    pub fn clear_at(&self, state: &State) -> Timestamp {
        self.terms.clear_at(state)
    }

    pub(crate) const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns true if a key was decided by this state as it is while the limit was in force.
    fn is_live(&self, state: &State) -> bool {
        self.clear_at(state) > self.since
    }
}

/// The time at which a limit came into force, and the limits before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    since: Timestamp,
    before: Vec<Predecessor>,
}

impl History {
    /// The history of a limit that came into force at `since`. The predecessors are given newest first; of more than
    /// [`MAX_PREDECESSORS`] the oldest are dropped.
    pub fn new(since: Timestamp, mut before: Vec<Predecessor>) -> History {
        before.truncate(MAX_PREDECESSORS);
        History { since, before }
    }

    /// The time at which the limit came into force.
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// The limits before it, newest first.
    pub fn before(&self) -> &[Predecessor] {
        &self.before
    }

    /// Returns true if there was no limit before.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// Returns true while counts of predecessors can matter to a key: until one full refill of the limit after the
    /// change. Holders of permits are one set whatever the numbers, so of those nothing is ever carried.
    pub fn matters_at(&self, limit: &Limit, now: Timestamp) -> bool {
        self.matters_to(limit.terms(), now)
    }

    /// [`History::matters_at`] for stores.
    pub(crate) fn matters_to(&self, terms: &Terms, now: Timestamp) -> bool {
        !self.is_empty() && now < self.since.saturating_add(terms.longest_carried())
    }

    /// Returns true if a key is decided by this state of the limit in force as it is; otherwise it begins with
    /// [`History::begin`].
    pub fn is_live(&self, limit: &Limit, state: &State) -> bool {
        self.is_live_under(limit.terms(), state)
    }

    /// [`History::is_live`] for stores.
    pub(crate) fn is_live_under(&self, terms: &Terms, state: &State) -> bool {
        terms.clear_at(state) > self.since
    }

    /// The state that a key without a live one begins with under this limit.
    ///
    /// `state_of` gives the state of the key under the predecessor of this number, as it is now; newest first, and
    /// only as far back as needed: counts are carried from the newest predecessor under which the key has a live
    /// state, through those after it, each at its own time.
    #[must_use]
    pub fn begin(
        &self,
        limit: &Limit,
        now: Timestamp,
        state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Begun {
        self.begin_terms(limit.terms(), now, state_of)
    }

    /// [`History::begin`] for stores.
    pub(crate) fn begin_terms(
        &self,
        terms: &Terms,
        now: Timestamp,
        mut state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Begun {
        if !self.matters_to(terms, now) {
            return Begun::FULL;
        }
        let mut carried = State::default();
        let (mut from, mut until) = (self.before.len(), Timestamp::EPOCH);
        for (index, predecessor) in self.before.iter().enumerate() {
            carried = state_of(index, predecessor);
            from = index;
            until = predecessor.clear_at(&carried);
            if predecessor.is_live(&carried) {
                break;
            }
        }
        if until <= now {
            return Begun::FULL;
        }
        for (old, new) in (0..from).rev().map(|index| (&self.before[index + 1], &self.before[index])) {
            carried = carry(old.terms(), &carried, new.since, new.terms());
        }
        let state = match self.before.first() {
            Some(newest) => carry(newest.terms(), &carried, self.since, terms),
            None => carried,
        };
        Begun { state, until }
    }
}

/// The state that a key begins with under a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The state. A take that is allowed writes it, with its own cost, as a state of the limit in force.
    pub state: State,
    /// The time at which the state that it was carried from is clear; the key is full from then on. The end of time if
    /// nothing was carried.
    pub until: Timestamp,
}

impl Begun {
    /// The state of a key that nothing is carried for.
    pub const FULL: Begun = Begun { state: State::FULL, until: Timestamp::LAST };

    /// The decision about this state at `now`, as it is reported: a key that was denied is full at `until`, so it
    /// waits no longer.
    #[must_use]
    pub fn reported(&self, decision: Decision, now: Timestamp) -> Decision {
        if decision.is_allowed() || self.until == Timestamp::LAST {
            return decision;
        }
        decision.at_most(self.until.since(now))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, SECOND, Ticks};

    fn limit(text: &str) -> Limit {
        text.parse().expect(text)
    }

    fn at(second: u32) -> Timestamp {
        Timestamp::after_epoch(second * SECOND)
    }

    fn spent(text: &str, units: u64, second: u32) -> State {
        let mut state = State::default();
        assert!(limit(text).decide(&mut state, at(second), Ask::new(Cost::of(units))).is_allowed(), "{text}");
        state
    }

    /// Predecessors by text and time, newest first.
    fn history(since: u32, before: &[(&str, u32)]) -> History {
        let before = before.iter().map(|(text, since)| Predecessor::new(&limit(text), at(*since)));
        History::new(at(since), before.collect())
    }

    fn remaining(history: &History, text: &str, states: &[&State]) -> u64 {
        let begun = history.begin(&limit(text), history.since(), |index, _| states[index].clone());
        limit(text).peek(&begun.state, history.since(), Ask::ONE).remaining()
    }

    #[test]
    fn four_predecessors_are_kept_and_the_fifth_is_dropped() {
        let five: Vec<_> = (0..5).map(|age| Predecessor::new(&limit("9/h"), at(50 - age))).collect();
        assert_eq!(History::new(at(60), five[..4].to_vec()).before(), &five[..4]);
        assert_eq!(History::new(at(60), five.clone()).before(), &five[..4], "the oldest goes");
    }

    #[test]
    fn a_history_matters_until_one_full_refill_after_the_change() {
        for (text, seconds) in [
            ("10/s burst 20 max-debt 10", 3),
            ("10/s queue 9 max-debt 10 leaky-bucket", 2),
            ("5/7s fixed-window", 7),
            ("5/7s sliding-log", 7),
            ("5/8s sliding-window slots 4", 10),
        ] {
            let (changed, limit) = (history(100, &[("9/h", 50)]), limit(text));
            let end = at(100 + seconds);
            let before = end.checked_sub(Ticks::new(1)).expect("after the epoch");
            assert!(changed.matters_at(&limit, before) && !changed.matters_at(&limit, end), "{text}");
            assert!(changed.matters_at(&limit, Timestamp::EPOCH), "a clock that stepped back");
            assert!(!history(100, &[]).matters_at(&limit, before), "nothing was before");
        }
        let holders = limit("5/h concurrency");
        assert!(!history(100, &[("9/h concurrency", 50)]).matters_at(&holders, at(100)));
    }

    #[test]
    fn without_predecessors_a_key_begins_full() {
        let begun = history(100, &[]).begin(&limit("9/h"), at(100), |_, _| unreachable!("there is none"));
        assert_eq!(begun, Begun::FULL);
    }

    #[test]
    fn a_live_state_of_the_limit_in_force_is_used_as_it_is() {
        let history = history(100, &[("9/h", 50)]);
        let limit = limit("1/s burst 9");
        for (units, second, live) in [(1, 100, true), (2, 99, true), (1, 99, false), (9, 50, false)] {
            let state = spent("1/s burst 9", units, second);
            assert_eq!(history.is_live(&limit, &state), live, "{units} at {second} s");
        }
        assert!(!history.is_live(&limit, &State::default()));
    }

    #[test]
    fn counts_are_carried_through_each_predecessor_at_its_own_time() {
        // 8 of 9 at 10 s; two of them come back until 70 s, 6 of 20 are used then; one comes back each second.
        let oldest = spent("2/m burst 9", 8, 10);
        let changed = history(73, &[("1/s burst 20", 70), ("2/m burst 9", 0)]);
        let unseen = State::default();
        assert_eq!(remaining(&changed, "1/h burst 9", &[&unseen, &oldest]), 9 - 3);
        // A live state of the newer one says everything, and the older one is not read.
        let newer = spent("1/s burst 20", 15, 71);
        assert_eq!(remaining(&changed, "1/h burst 99", &[&newer, &oldest]), 99 - 13);
        let mut read = Vec::new();
        let _ = changed.begin(&limit("1/h burst 99"), at(73), |index, _| {
            read.push(index);
            newer.clone()
        });
        assert_eq!(read, [0]);
        // One from before the newer limit was in force does not.
        let stale = spent("1/s burst 20", 20, 50);
        assert_eq!(remaining(&changed, "1/h burst 9", &[&stale, &oldest]), 9 - 3);
    }

    #[test]
    fn the_oldest_state_is_used_however_old_it_is() {
        let oldest = spent("9/h burst 9", 5, 10);
        let changed = history(73, &[("9/h burst 9", 60)]);
        assert_eq!(remaining(&changed, "1/h burst 20", &[&oldest]), 15);
        let clear = spent("9/s burst 9", 5, 10);
        let changed = history(73, &[("9/s burst 9", 60)]);
        assert_eq!(remaining(&changed, "1/h burst 20", &[&clear]), 20);
    }

    #[test]
    fn a_carried_state_ends_with_the_one_that_it_comes_from() {
        let spent = spent("5/s", 5, 10);
        let changed = history(10, &[("5/s", 0)]);
        let new = limit("5/h");
        let begun = |now| changed.begin(&new, now, |_, _| spent.clone());
        let last = at(11).checked_sub(Ticks::new(1)).expect("after the epoch");
        for (now, wait) in [(at(10), Ticks::saturating_from(SECOND)), (last, Ticks::new(1))] {
            let denied = begun(now).reported(new.peek(&begun(now).state, now, Ask::ONE), now);
            assert_eq!(denied.verdict_in_ticks(), crate::Verdict::Denied { retry_after: wait });
            assert_eq!(denied.reset_after_in_ticks(), wait);
        }
        assert_eq!(begun(at(11)), Begun::FULL, "the old state is clear");
        let never = Ask::new(Cost::of(6));
        let verdict = begun(at(10)).reported(new.peek(&begun(at(10)).state, at(10), never), at(10));
        assert_eq!(verdict.verdict(), crate::Verdict::Impossible);
    }

    #[test]
    fn another_algorithm_between_two_starts_full() {
        let oldest = spent("9/h burst 9", 5, 10);
        let changed = history(73, &[("9/h sliding-log", 60), ("9/h burst 9", 0)]);
        assert_eq!(remaining(&changed, "1/h burst 20", &[&State::default(), &oldest]), 20);
    }

    #[test]
    fn a_predecessor_is_made_of_its_numbers_again() {
        for text in [
            "10/s burst 20 max-debt 3",
            "10/s queue 5 delay-after 2 leaky-bucket",
            "10/s queue 5 delay-after all leaky-bucket",
            "7/60s fixed-window align first-hit max-debt 9",
            "7/60s fixed-window",
            "5/m sliding-log count-denied",
            "5/m sliding-window slots 7 max-debt 2",
            "5/3650d sliding-window slots 1000",
            "5/m sliding-window mode estimate",
            "5/s pacer burst 3s pay self",
            "5/s pacer burst 0s",
            "5/s pacer warm-up 4s cold-factor 5",
            "unlimited pacer",
            "8/30s concurrency",
        ] {
            let known = Predecessor::new(&limit(text), at(9));
            let read = Predecessor::from_numbers(known.algorithm(), known.numbers(), known.since());
            assert_eq!(read, Some(known), "{text}");
        }
    }

    #[test]
    fn numbers_that_no_limit_has_are_no_predecessor() {
        let year = 365 * 86_400 * 16_000_000_000;
        for (algorithm, numbers) in [
            (Algorithm::TokenBucket, [1, 0, 0, 0, 0]),
            (Algorithm::TokenBucket, [0, 100, 0, 0, 0]),
            (Algorithm::TokenBucket, [2, 100, 300, 0, 0]),
            (Algorithm::TokenBucket, [2, 100, 200, 50, 0]),
            (Algorithm::TokenBucket, [2, 100, 200, 0, 1]),
            (Algorithm::TokenBucket, [11, year, 11 * year, 0, 0]),
            (Algorithm::LeakyBucket, [0, 100, 0, 0, 0]),
            (Algorithm::LeakyBucket, [2, 100, 200, 0, 50]),
            (Algorithm::FixedWindow, [5, 0, 0, 5, 0]),
            (Algorithm::FixedWindow, [5, 1000, 2, 5, 0]),
            (Algorithm::FixedWindow, [5, 1000, 0, 4, 0]),
            (Algorithm::FixedWindow, [5, 11 * year, 0, 5, 0]),
            (Algorithm::SlidingLog, [u64::MAX, 1000, 0, 0, 0]),
            (Algorithm::SlidingLog, [5, 1000, 0, 1, 0]),
            (Algorithm::SlidingWindow, [5, 0, 4, 0, 5]),
            (Algorithm::SlidingWindow, [5, 1000, 0, 0, 5]),
            (Algorithm::SlidingWindow, [5, 1000, u64::MAX, 0, 5]),
            (Algorithm::SlidingWindow, [5, year, 11, 0, 5]),
            (Algorithm::Pacer, [5, 0, u64::MAX, 0, 0]),
            (Algorithm::Pacer, [5, 2, 1000, 0, 0]),
            (Algorithm::Pacer, [5, 0, 1000, 0, 3]),
            (Algorithm::Pacer, [5, 0, 0, 1000, 101]),
            (Algorithm::Concurrency, [1 << 21, 1000, 0, 0, 0]),
            (Algorithm::Concurrency, [5, 0, 0, 0, 0]),
        ] {
            let read = Predecessor::from_numbers(algorithm, numbers, at(9));
            assert_eq!(read, None, "{algorithm} {numbers:?}");
        }
    }
}
