//! The states of a single limiter: that of the limit in force, and those of the limits before it.

use crate::algorithm::carry::carry;
use crate::algorithm::{Algorithm, State};
use crate::ask::Ask;
use crate::history::{History, MAX_PREDECESSORS, Predecessor};
use crate::limit::Terms;
use crate::time::Timestamp;

/// The states that are not one word, by algorithm, and the limits that were replaced, each with its state.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    pub(super) current: [State; Algorithm::ALL.len()],
    /// The time at which the limit in force came into force.
    since: Timestamp,
    /// Newest first.
    replaced: Vec<(Predecessor, State)>,
}

impl States {
    /// Keeps the state of a limit that is replaced now: it is that limit's own when it comes into force again.
    pub(super) fn replace(&mut self, old: &Terms, state: State, now: Timestamp) {
        self.replaced.retain(|(before, _)| before.terms() != old);
        self.replaced.insert(0, (Predecessor::of_terms(*old, self.since), state));
        // One more than counts are carried from: one of them may be the limit that comes into force.
        let is_like = |(before, _): &(Predecessor, State)| before.algorithm() == old.algorithm();
        if self.replaced.iter().filter(|past| is_like(past)).count() > MAX_PREDECESSORS + 1 {
            if let Some(oldest) = self.replaced.iter().rposition(is_like) {
                self.replaced.remove(oldest);
            }
        }
        self.since = now;
    }

    /// The state that begins under a limit now: its own if it is live, else what was used under the limits before.
    pub(super) fn begin(&mut self, new: &Terms, now: Timestamp) -> State {
        let own = self.replaced.iter().position(|(before, _)| before.terms() == new);
        let own = own.map(|place| self.replaced.remove(place).1);
        if let (Terms::Pacer(_), Some((newest, state))) = (new, self.replaced.first()) {
            // As in Guava: a new rate goes on from what is saved and owed at the old one.
            if newest.algorithm() == Algorithm::Pacer {
                return carry(newest.terms(), state, now, new);
            }
        }
        if let Some(state) = own.filter(|state| new.clear_at(state) > now) {
            return state;
        }
        let before = self.replaced.iter().map(|(before, _)| *before).collect();
        let begun =
            History::new(now, before).begin_terms(new, now, |place, _| self.replaced[place].1.clone());
        begun.state_under(new, now, Ask::ONE)
    }
}
