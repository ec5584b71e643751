//! The limits that a rule has had: since when each was in force, and what a key begins with under the newest.
//!
//! ```text
//!        oldest predecessor      newest predecessor       limit in force
//!   ----+-----------------------+------------------------+---------------> time
//!     since                   since                    since
//!                                   counts are carried ->|
//! ```
//!
//! A state belongs to one limit, so a key has one for each of them. A state of the limit in force that is not clear is
//! used as it is. A key without one begins with what [`Limit::carry`] makes of its states under the predecessors. That is
//! a pure function: denials and peeks write nothing, and from one full refill after the change on no predecessor is read.
//!
//! A store forgets a state when it is clear under its own limit. So that no answer depends on when that happens, a clear
//! state is the same as none, and a carried state ends with the state that it comes from: no denial reports a longer wait.

use crate::algorithm::carry::carry;
use crate::algorithm::{Algorithm, State};
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::limit::{Limit, Terms};
use crate::time::{Ticks, Timestamp};

/// The most predecessors of a limit that counts are carried from; older ones are dropped.
pub const MAX_PREDECESSORS: usize = 4;

/// How often a wait of several carried states is looked at again.
const MAX_WAITS: usize = 8;

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

    /// The history of the limit `next`, which follows this one's limit at `since`. A limit that comes back is a
    /// predecessor once, and never its own: its state is one.
    #[must_use]
    pub fn followed_by(&self, limit: &Limit, next: &Limit, since: Timestamp) -> History {
        let is_other = |before: &&Predecessor| ![limit.terms(), next.terms()].contains(&before.terms());
        let newest = std::iter::once(Predecessor::new(limit, self.since));
        History::new(since, newest.chain(self.before.iter().filter(is_other).copied()).collect())
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
        now < self.matters_until(limit.terms())
    }

    /// The time from which on counts of predecessors matter to no key.
    pub(crate) fn matters_until(&self, terms: &Terms) -> Timestamp {
        match terms.longest_carried() {
            _ if self.is_empty() => Timestamp::EPOCH,
            Ticks::ZERO => Timestamp::EPOCH,
            longest => self.since.saturating_add(longest),
        }
    }

    /// The states that a key without a live one begins with under this limit.
    ///
    /// `state_of` gives the state of the key under the predecessor of this number, as it is now. Each state that is not
    /// clear is carried through the limits after its own, each at its own time.
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
        let mut begun = Begun::FULL;
        if now >= self.matters_until(terms) {
            return begun;
        }
        for (index, predecessor) in self.before.iter().enumerate() {
            let state = state_of(index, predecessor);
            let until = predecessor.clear_at(&state);
            if until > now {
                begun.carried.push(Carried { state: self.carried(index, state, terms), until });
            }
        }
        begun
    }

    /// The state of one predecessor, carried through those after it to the limit in force.
    fn carried(&self, from: usize, mut state: State, terms: &Terms) -> State {
        let mut old = &self.before[from];
        for new in self.before[..from].iter().rev() {
            state = carry(old.terms(), &state, new.since, new.terms());
            old = new;
        }
        carry(old.terms(), &state, self.since, terms)
    }

    /// The decision about a live state of the limit in force, as it is reported.
    ///
    /// Once that state is clear the key begins anew, and with what servers that still decide by old numbers have
    /// admitted meanwhile. A wait, and the time until the key is full, end after that.
    #[must_use]
    pub fn report(
        &self,
        limit: &Limit,
        own: OwnDecision<'_>,
        state_of: impl FnMut(usize, &Predecessor) -> State,
    ) -> Decision {
        self.report_terms(limit.terms(), own, state_of)
    }

    /// [`History::report`] for stores.
    pub(crate) fn report_terms(
        &self,
        terms: &Terms,
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

/// A decision by a live state of the limit in force alone.
#[derive(Clone, Copy, Debug)]
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

/// The states that a key begins with under a limit: what it used under the limits before.
///
/// Each of them counts until the state that it was carried from is clear. The strictest decides: more than one differ
/// only where servers still decide by old numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Newest first.
    carried: Vec<Carried>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Carried {
    state: State,
    /// The time at which the state that it was carried from is clear.
    until: Timestamp,
}

impl Begun {
    /// Nothing is carried: the key is full.
    pub const FULL: Begun = Begun { carried: Vec::new() };

    /// Returns true if nothing is carried.
    pub fn is_full(&self) -> bool {
        self.carried.is_empty()
    }

    /// The state that decides about an ask. A take that is allowed writes it, with its own cost, as a state of the limit
    /// in force.
    #[must_use]
    pub fn state_for(&self, limit: &Limit, now: Timestamp, ask: Ask) -> State {
        self.state_under(limit.terms(), now, ask)
    }

    /// [`Begun::state_for`] for stores.
    pub(crate) fn state_under(&self, terms: &Terms, now: Timestamp, ask: Ask) -> State {
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

    /// The answer to an ask, without spending. A denial is reported by it, too.
    #[must_use]
    pub fn peek(&self, limit: &Limit, now: Timestamp, ask: Ask) -> Decision {
        self.peek_terms(limit.terms(), now, ask)
    }

    /// [`Begun::peek`] for stores.
    pub(crate) fn peek_terms(&self, terms: &Terms, now: Timestamp, ask: Ask) -> Decision {
        let decision = self.strictest(terms, now, ask);
        if self.carried.len() < 2 {
            return decision;
        }
        // A pacer that warms up gets colder while it waits for another state, and may deny then.
        let mut at = now;
        for _ in 0..MAX_WAITS {
            match self.strictest(terms, at, ask).verdict_in_ticks() {
                Verdict::Denied { retry_after } => at = at.saturating_add(retry_after),
                Verdict::Allowed { .. } if at == now => return decision,
                Verdict::Allowed { .. } => return decision.denied_for(at.since(now)),
                Verdict::Impossible => break,
            }
        }
        decision.impossible()
    }

    /// The strictest of the answers that count at a time.
    fn strictest(&self, terms: &Terms, now: Timestamp, ask: Ask) -> Decision {
        let live = self.carried.iter().filter(|carried| carried.until > now);
        let each = live.map(|carried| carried.peek(terms, now, ask));
        each.reduce(|one, other| one.stricter(&other)).unwrap_or_else(|| terms.peek(&State::FULL, now, ask))
    }
}

impl Carried {
    /// The answer of this state alone: the key is full at `until`, so no wait is longer.
    fn peek(&self, terms: &Terms, now: Timestamp, ask: Ask) -> Decision {
        terms.peek(&self.state, now, ask).at_most(self.until.since(now))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests;
