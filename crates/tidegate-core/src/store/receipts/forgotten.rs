//! The states whose units were most recently forgotten, or removed without a receipt.

use std::collections::VecDeque;

use super::StateId;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The number of states that are kept. A plain receipt is invalid after as many more.
const MOST: usize = 4096;

/// The recently forgotten states, for receipts that no table holds: these contain the count at the time of their take.
#[derive(Debug)]
pub(super) struct Forgotten {
    /// The number of states forgotten so far, which is the era of a new take.
    count: AtomicU64,
    /// The last of them, at most [`MOST`], oldest first.
    recent: Mutex<VecDeque<StateId>>,
}

impl Forgotten {
    pub(super) fn new() -> Forgotten {
        Forgotten { count: AtomicU64::new(0), recent: Mutex::new(VecDeque::new()) }
    }

    /// Returns the number of forgotten states so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Adds one state, and drops the oldest if there are too many.
    pub(super) fn note(&self, id: StateId) {
        let mut recent = self.recent.lock();
        if recent.len() == MOST {
            recent.pop_front();
        }
        recent.push_back(id);
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes every state.
    pub(super) fn note_all(&self) {
        let mut recent = self.recent.lock();
        recent.clear();
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns true if a state is certainly not among those that were noted since the count was `since`. If too many
    /// were noted to know, it returns false: a take that may be gone must not be refunded.
    pub(super) fn spared(&self, id: StateId, since: u64) -> bool {
        let recent = self.recent.lock();
        let newer = usize::try_from(self.count() - since).unwrap_or(usize::MAX);
        newer <= recent.len() && !recent.iter().rev().take(newer).any(|forgotten| *forgotten == id)
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_spared_until_it_is_noted_or_too_many_others_are() {
        let forgotten = Forgotten::new();
        let since = forgotten.count();
        assert!(forgotten.spared([7, 7], since));
        for other in 1..=MOST as u64 {
            forgotten.note([other, 0]);
        }
        assert!(forgotten.spared([7, 7], since) && !forgotten.spared([1, 0], since));
        assert!(forgotten.spared([1, 0], since + 1), "it was taken after that");
        forgotten.note([0, 0]);
        assert!(!forgotten.spared([7, 7], since), "no record of it is left");
        let since = forgotten.count();
        forgotten.note_all();
        assert!(!forgotten.spared([7, 7], since));
        assert!(forgotten.spared([7, 7], forgotten.count()));
    }
}
