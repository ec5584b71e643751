//! The previous limits of a rule, the time at which each came into force, and the state that a key starts with
//! under the newest.
//!
//! ```text
//!        oldest predecessor      newest predecessor       limit in force
//!   ----+-----------------------+------------------------+---------------> time
//!     since                   since                    since
//!                                   counts are carried ->|
//! ```
//!
//! A state belongs to one limit, so a key has one state per limit. A live state of the limit in force is used as it
//! is. A key without one starts with the result of [`Limit::carry`] on its states under the predecessors. That is a
//! pure function: denials and peeks write nothing. One full refill after the change, no predecessor is read any
//! more.
//!
//! A store removes a state when it is clear (fully repaid) under its own limit. No decision may depend on when that
//! happens. So a clear state counts as none, and a carried state ends with the state that it comes from: no denial
//! reports a longer wait.

use crate::algorithm::carry::carry;
use crate::algorithm::{Algorithm, State};
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::limit::{AlgorithmParams, Limit};
use crate::time::{Ticks, Timestamp};

/// The largest number of predecessors from which counts are carried; older ones are dropped.
pub const MAX_PREDECESSORS: usize = 4;

/// The largest number of waits that are added up when several carried states deny one after the other.
const MAX_WAITS: usize = 8;

/// A limit that was in force before another one.
///
/// It holds the numbers that decide, not the text of the limit, so that a store can keep it in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    terms: AlgorithmParams,
    since: Timestamp,
}

impl Predecessor {
    /// Creates the predecessor of a limit that came into force at this time.
    pub fn new(limit: &Limit, since: Timestamp) -> Predecessor {
        Predecessor::of_terms(*limit.terms(), since)
    }

    /// Returns the limit of this algorithm with these [`Limit::numbers`]; `None` if no valid limit has them.
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
        AlgorithmParams::checked(algorithm, numbers).map(|terms| Predecessor::of_terms(terms, since))
    }

    pub(crate) const fn of_terms(terms: AlgorithmParams, since: Timestamp) -> Predecessor {
        Predecessor { terms, since }
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.terms.algorithm()
    }

    /// Returns the numbers by which it decides, as in [`Limit::numbers`].
    pub fn numbers(&self) -> [u64; 5] {
        self.terms.numbers()
    }

    /// Returns the time at which it came into force.
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns the time from which on a state of this limit is clear.
    pub fn clear_at(&self, state: &State) -> Timestamp {
        self.terms.clear_at(state)
    }

    pub(crate) const fn terms(&self) -> &AlgorithmParams {
        &self.terms
    }
}

/// The time at which a limit came into force, and its predecessors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    since: Timestamp,
    before: Vec<Predecessor>,
}

impl History {
    /// Creates the history of a limit that came into force at `since`. The predecessors are given newest first. The
    /// oldest are dropped if there are more than [`MAX_PREDECESSORS`].
    pub fn new(since: Timestamp, mut before: Vec<Predecessor>) -> History {
        before.truncate(MAX_PREDECESSORS);
        History { since, before }
    }

    /// Returns the history of the limit `next`, which replaces `limit` at `since`. A limit that comes back is a
    /// predecessor only once, and never its own, because it has one state.
    #[must_use]
    pub fn followed_by(&self, limit: &Limit, next: &Limit, since: Timestamp) -> History {
        let is_other = |before: &&Predecessor| ![limit.terms(), next.terms()].contains(&before.terms());
        let newest = std::iter::once(Predecessor::new(limit, self.since));
        History::new(since, newest.chain(self.before.iter().filter(is_other).copied()).collect())
    }

    /// Returns the time at which the limit came into force.
    pub const fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns the previous limits, newest first.
    pub fn before(&self) -> &[Predecessor] {
        &self.before
    }

    /// Returns true if there is no predecessor.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// Returns true while counts of predecessors can affect a key: until one full refill of the limit after the
    /// change. Concurrency limits carry nothing, because the permits of a key are one set whatever the numbers.
    pub fn matters_at(&self, limit: &Limit, now: Timestamp) -> bool {
        now < self.matters_until(limit.terms())
    }

    /// Returns the time from which on counts of predecessors affect no key.
    pub(crate) fn matters_until(&self, terms: &AlgorithmParams) -> Timestamp {
        match terms.longest_carried() {
            _ if self.is_empty() => Timestamp::EPOCH,
            Ticks::ZERO => Timestamp::EPOCH,
            longest => self.since.saturating_add(longest),
        }
    }

    /// Returns the states with which a key without a live state starts under this limit.
    ///
    /// `state_of` returns the current state of the key under the predecessor with this index. Each state that is
    /// not clear is carried through the limits after its own, each at its own time.
    #[must_use]
    pub fn begin(
        &self,
        limit: &Limit,
        now: Timestamp,
        state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Begun {
        self.begin_terms(limit.terms(), now, state_of)
    }

    /// Does the same as [`History::begin`], for stores.
    pub(crate) fn begin_terms(
        &self,
        terms: &AlgorithmParams,
        now: Timestamp,
        mut state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Begun {
        let mut begun = Begun::FULL;
        if now >= self.matters_until(terms) {
            return begun;
        }
        for (index, predecessor) in self.before.iter().enumerate() {
            let state = state_of(index, predecessor);
            let until = predecessor.clear_at(&state);
            let live = (until > now).then_some(state);
            if let Some(state) = live.and_then(|state| self.carried(index, state, terms)) {
                begun.carried.push(Carried { state, until });
            }
        }
        begun
    }

    /// Carries the state of one predecessor through those after it to the limit in force. Returns `None` if the algorithm
    /// has changed since, which carries nothing: the key is then as one never seen, and not one whose state is carried.
    fn carried(&self, from: usize, mut state: State, terms: &AlgorithmParams) -> Option<State> {
        let mut old = &self.before[from];
        let algorithm = old.algorithm();
        let is_same = self.before[..from].iter().all(|between| between.algorithm() == algorithm);
        if !is_same || terms.algorithm() != algorithm {
            return None;
        }
        for new in self.before[..from].iter().rev() {
            state = carry(old.terms(), &state, new.since, new.terms());
            old = new;
        }
        Some(carry(old.terms(), &state, self.since, terms))
    }

    /// Returns the decision of a live state of the limit in force, as it is reported.
    ///
    /// Once that state is clear, the key starts again with the counts that servers with old numbers have admitted
    /// meanwhile. So the reported wait and the time until the key is full include those counts.
    #[must_use]
    pub fn report(
        &self,
        limit: &Limit,
        own: OwnDecision<'_>,
        state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Decision {
        self.report_terms(limit.terms(), own, state_of)
    }

    /// Does the same as [`History::report`], for stores.
    pub(crate) fn report_terms(
        &self,
        terms: &AlgorithmParams,
        OwnDecision { state, decision, now, ask }: OwnDecision<'_>,
        state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Decision {
        let clear_at = terms.clear_at(state).max(now);
        if clear_at >= self.matters_until(terms) {
            return decision;
        }
        let begun = self.begin_terms(terms, clear_at, state_of);
        if begun.is_full() {
            return decision;
        }
        let then = begun.peek_terms(terms, clear_at, ask);
        decision.followed_by(&then, clear_at.since(now))
    }
}

/// A decision that is based only on a live state of the limit in force.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OwnDecision<'a> {
    /// The state after the decision.
    pub state: &'a State,
    /// The decision.
    pub decision: Decision,
    /// The time of the decision.
    pub now: Timestamp,
    /// The ask that was decided.
    pub ask: Ask,
}

impl<'a> OwnDecision<'a> {
    /// Creates the decision of the limit in force about this ask, by its own state.
    pub const fn new(state: &'a State, decision: Decision, now: Timestamp, ask: Ask) -> OwnDecision<'a> {
        OwnDecision { state, decision, now, ask }
    }
}

/// The states with which a key starts under a limit: its usage under the previous limits.
///
/// Each of them counts until the state that it was carried from is clear. The strictest one decides. Several of
/// them differ only while some servers still decide by old numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The carried states, newest first.
    carried: Vec<Carried>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Carried {
    state: State,
    /// The time at which the state that it was carried from is clear.
    until: Timestamp,
}

impl Begun {
    /// No carried state: the key is full.
    pub const FULL: Begun = Begun { carried: Vec::new() };

    /// Returns true if there is no carried state.
    pub fn is_full(&self) -> bool {
        self.carried.is_empty()
    }

    /// Returns the state that decides about an ask. An allowed take writes it, with its own cost, as a state of the
    /// limit in force.
    #[must_use]
    pub fn state_for(&self, limit: &Limit, now: Timestamp, ask: Ask) -> State {
        self.state_under(limit.terms(), now, ask)
    }

    /// Does the same as [`Begun::state_for`], for stores.
    pub(crate) fn state_under(&self, terms: &AlgorithmParams, now: Timestamp, ask: Ask) -> State {
        let strictest = match &*self.carried {
            [] => State::FULL,
            [only] => only.state.clone(),
            all => {
                let strictness = |carried: &&Carried| carried.peek(terms, now, ask).strictness();
                // Of equals the newest, which `max_by_key` finds last.
                all.iter().rev().max_by_key(strictness).map_or(State::FULL, |found| found.state.clone())
            }
        };
        terms.opened_now(strictest, now)
    }

    /// Decides about an ask without spending. A denial is also reported with this decision.
    #[must_use]
    pub fn peek(&self, limit: &Limit, now: Timestamp, ask: Ask) -> Decision {
        self.peek_terms(limit.terms(), now, ask)
    }

    /// Does the same as [`Begun::peek`], for stores.
    pub(crate) fn peek_terms(&self, terms: &AlgorithmParams, now: Timestamp, ask: Ask) -> Decision {
        let decision = self.strictest(terms, now, ask);
        if self.carried.len() < 2 {
            return decision;
        }
        // A pacer with a warm-up gets colder while it waits for another state, and can deny then.
        let mut at = now;
        for _ in 0..MAX_WAITS {
            match self.strictest(terms, at, ask).verdict_in_ticks() {
                Verdict::Denied { retry_after } => at = at.saturating_add(retry_after),
                Verdict::Allowed { .. } if at == now => return decision,
                Verdict::Allowed { .. } => return decision.with_retry_after(at.since(now)),
                Verdict::Impossible => break,
            }
        }
        decision.impossible()
    }

    /// Returns the strictest decision of the states that count at this time.
    fn strictest(&self, terms: &AlgorithmParams, now: Timestamp, ask: Ask) -> Decision {
        let live = self.carried.iter().filter(|carried| carried.until > now);
        let each = live.map(|carried| carried.peek(terms, now, ask));
        each.reduce(|one, other| one.stricter(&other)).unwrap_or_else(|| terms.peek(&State::FULL, now, ask))
    }
}

impl Carried {
    /// Returns the decision of this state alone. The key is full at `until`, so no wait is longer.
    fn peek(&self, terms: &AlgorithmParams, now: Timestamp, ask: Ask) -> Decision {
        terms.peek(&self.state, now, ask).at_most(self.until.since(now))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests;
