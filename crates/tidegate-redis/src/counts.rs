//! The counters of a store.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::Fault;

/// Counters that all threads can increment and read.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) answered: Count,
    pub(crate) cached: Count,
    pub(crate) timed_out: Count,
    pub(crate) lost: Count,
    pub(crate) refused: Count,
    pub(crate) unreachable: Count,
    pub(crate) overloaded: Count,
    pub(crate) unreadable: Count,
    pub(crate) connects: Count,
    pub(crate) scripts_sent: Count,
    pub(crate) redirected: Count,
    pub(crate) given_back: Count,
    pub(crate) not_returned: Count,
}

impl Counts {
    /// Returns the counter for a request with this outcome.
    pub(crate) fn outcome(&self, fault: Option<&Fault>) -> &Count {
        match fault {
            None => &self.answered,
            Some(Fault::TimedOut(_)) => &self.timed_out,
            Some(Fault::Lost(_)) => &self.lost,
            Some(Fault::Refused(_)) => &self.refused,
            Some(Fault::Down(_)) => &self.unreachable,
            Some(Fault::Busy) => &self.overloaded,
            Some(Fault::Unreadable(_)) => &self.unreadable,
        }
    }
}

/// A monotonic counter.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
