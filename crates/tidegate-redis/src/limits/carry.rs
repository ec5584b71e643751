//! Carries counts over to a limit from its predecessors.
//!
//! ```text
//!   take, only if there is a live state  ->  there is: decided in one call, as ever
//!                                        ->  there is none: the states under previous limits are read,
//!                                            the library carries them, and the take is repeated with the result
//! ```
//!
//! This happens only until one full refill after a change. Later nothing is carried over.

use tidegate_core::{Ask, Begun, Decision, Key, OwnDecision, State, StoreError, Timestamp, Verdict};
use tokio::time::Instant;

use super::StoredLimit;
use crate::script::{self, Begin};
use crate::store::{Inner, read};

/// The states of a key under the previous limits, in the order of the history. A missing state, and one under a limit
/// of another algorithm, is that of an unused key.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatesBefore(Vec<State>);

impl StatesBefore {
    /// Returns the state under the previous limit with this index.
    fn get(&self, index: usize) -> State {
        self.0.get(index).cloned().unwrap_or_default()
    }
}

impl StoredLimit {
    /// Computes the counts that are carried over at this time.
    fn begun(&self, before: &StatesBefore, now: Timestamp) -> Begun {
        let Some(known) = self.history.get() else { return Begun::FULL };
        known.history.begin(&self.limit, now, |index, _| before.get(index))
    }

    /// Returns the initial state of a key without a live state. The state is valid until the first previous state
    /// expires, because the carried counts change then. The script rejects it later than that.
    pub(crate) fn begin(&self, before: &StatesBefore, now: Timestamp, ask: Ask) -> Begin {
        let begun = self.begun(before, now);
        let state = begun.state_for(&self.limit, now, ask);
        let history = self.history.get().map(|known| known.history.before()).unwrap_or_default();
        let ends = history.iter().enumerate().map(|(index, limit)| limit.clear_at(&before.get(index)));
        let until = ends.filter(|end| !begun.is_full() && *end > now).min();
        Begin { state, until: until.unwrap_or(Timestamp::from_ticks(u64::MAX)) }
    }

    /// Returns the decision about a key without a live state, without spending. `None` if nothing is carried over. It
    /// is what the take would decide with the initial state.
    pub(crate) fn peek_begun(&self, before: &StatesBefore, now: Timestamp, ask: Ask) -> Option<Decision> {
        let begun = self.begun(before, now);
        (!begun.is_full()).then(|| begun.peek(&self.limit, now, ask))
    }

    /// Returns the decision about a live state as it is reported: counts of previous limits may follow it.
    pub(crate) fn report(&self, before: &StatesBefore, own: OwnDecision<'_>) -> Decision {
        let Some(known) = self.history.get() else { return own.decision };
        let denied = self.denied_until_clear(own.state, &own.decision, own.now);
        let own = OwnDecision::new(own.state, denied.unwrap_or(own.decision), own.now, own.ask);
        known.history.report(&self.limit, own, |index, _| before.get(index))
    }

    /// Returns true if counts of previous limits may matter once the debt of this live state is repaid. Only then
    /// previous states are read for a denial.
    pub(crate) fn may_be_followed(&self, state: &State) -> bool {
        self.matters_at(self.limit.clear_at(state))
    }

    /// Returns the decision if it is a denial that lasts at least until the debt of this state is repaid.
    ///
    /// A server uses whole microseconds: a wait that ends within the last of them ends when the debt is repaid. Other
    /// decisions may depend on previous limits before that.
    pub(crate) fn denied_until_clear(
        &self,
        state: &State,
        decision: &Decision,
        now: Timestamp,
    ) -> Option<Decision> {
        let Verdict::Denied { retry_after } = decision.verdict_in_ticks() else { return None };
        let left = self.limit.clear_at(state).since(now);
        let verdict = Verdict::Denied { retry_after: retry_after.max(left) };
        let (limit, remaining) = (decision.limit(), decision.remaining());
        let denied = || Decision::from_remote(verdict, limit, remaining, decision.reset_after_in_ticks());
        (script::whole_micros(retry_after) >= left).then(denied)
    }

    /// Returns true if counts of previous limits matter at this time.
    pub(crate) fn matters_at(&self, now: Timestamp) -> bool {
        self.history.get().is_some_and(|known| known.history.matters_at(&self.limit, now))
    }
}

impl Inner {
    /// Returns the time, and the states of keys, which share a slot, under the predecessors of their limits. Without
    /// any previous limit of the same algorithm no call is made.
    pub(crate) async fn states_before(
        &self,
        asked: &[(&StoredLimit, &Key)],
        due: Instant,
    ) -> Result<(Timestamp, Vec<StatesBefore>), StoreError> {
        let (mut names, mut algorithms) = (Vec::new(), Vec::new());
        for (limit, key) in asked {
            for (name, _) in limit.alike() {
                names.push(name.state(self.prefix(), key));
                algorithms.push(limit.limit.algorithm());
            }
        }
        if names.is_empty() {
            return Ok((self.reckoned_now(), asked.iter().map(|_| StatesBefore::default()).collect()));
        }
        let answer = self.run(script::states(names, &algorithms, self.time()), due).await?;
        let mut states = read(script::read_states(&answer, &algorithms))?.into_iter();
        let each = asked.iter().map(|(limit, _)| {
            let count = limit.history.get().map_or(0, |known| known.names.len());
            let mut before = vec![State::default(); count];
            for ((_, place), state) in limit.alike().zip(&mut states) {
                before[place] = state;
            }
            StatesBefore(before)
        });
        Ok((read(script::read_time(&answer))?, each.collect()))
    }
}

impl StoredLimit {
    /// Returns the previous limits of the same algorithm, with their indexes. Nothing is carried over from others.
    fn alike(&self) -> impl Iterator<Item = (&super::LimitName, usize)> {
        let known = self.history.get().into_iter();
        known.flat_map(|known| known.names.iter().zip(known.history.before()).enumerate()).filter_map(
            |(place, (name, limit))| (limit.algorithm() == self.limit.algorithm()).then_some((name, place)),
        )
    }
}
