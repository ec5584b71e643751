//! The numbers of judged and failed calls within a window of time.
//!
//! The window has ten slots, and the oldest is dropped as a whole. So no counted call is older than the window, and the
//! slots cover at least nine tenths of it.

use super::SLOTS;
use crate::time::{Ticks, Timestamp};

/// The counts of the last window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallWindow {
    slots: [CallTally; SLOTS as usize],
    current: usize,
    /// The start of the current slot.
    began: Timestamp,
}

/// The number of calls that ended, and of those that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTally {
    pub(super) judged: u64,
    pub(super) bad: u64,
}

impl CallTally {
    /// Counts a call that has ended.
    pub(super) fn add(&mut self, is_bad: bool) {
        self.judged = self.judged.saturating_add(1);
        self.bad = self.bad.saturating_add(u64::from(is_bad));
    }

    /// Returns true if more than this percentage failed.
    pub(super) fn hurts(&self, percent: u64) -> bool {
        u128::from(self.bad) * 100 > u128::from(self.judged) * u128::from(percent)
    }
}

impl CallWindow {
    /// Returns a window without any calls.
    pub(super) fn beginning(now: Timestamp) -> CallWindow {
        CallWindow { began: now, ..CallWindow::default() }
    }

    /// Counts a call that ended now. Returns the tally of the whole window.
    pub(super) fn count(&mut self, now: Timestamp, slot: Ticks, is_bad: bool) -> CallTally {
        self.turn(now, slot);
        self.slots[self.current].add(is_bad);
        self.slots.iter().fold(CallTally::default(), |sum, slot| CallTally {
            judged: sum.judged.saturating_add(slot.judged),
            bad: sum.bad.saturating_add(slot.bad),
        })
    }

    /// Advances to the slot of this time. Slots that are reached again are emptied; after a whole window all are empty.
    fn turn(&mut self, now: Timestamp, slot: Ticks) {
        let steps = now.since(self.began).get() / slot.get().max(1);
        if steps >= SLOTS {
            *self = CallWindow::beginning(now);
            return;
        }
        for _ in 0..steps {
            self.current = (self.current + 1) % self.slots.len();
            self.slots[self.current] = CallTally::default();
            self.began = self.began.saturating_add(slot);
        }
    }
}
