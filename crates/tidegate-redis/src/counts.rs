//! The counters of a store.
//!
//! One counter is incremented per request, by its outcome. [`Status`](crate::Status) is the public view.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::Fault;

/// Counters that all threads can increment and read.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Requests with a reply.
    pub(crate) answered: Count,
    /// Denials from the cache.
    pub(crate) cached: Count,
    /// Requests without a reply before their deadline.
    pub(crate) timed_out: Count,
    /// Requests whose connection was lost before the reply.
    pub(crate) lost: Count,
    /// Requests with an error reply.
    pub(crate) rejected: Count,
    /// Requests that were not sent for want of a connection, or of time.
    pub(crate) unreachable: Count,
    /// Requests that were not sent because too many were in flight.
    pub(crate) overloaded: Count,
    /// Replies that could not be parsed.
    pub(crate) unreadable: Count,
    /// Attempts to connect to a server.
    pub(crate) connects: Count,
    /// Calls that contained the text of their script.
    pub(crate) scripts_sent: Count,
    /// Redirections by cluster nodes.
    pub(crate) redirected: Count,
    /// Takes that were given back across slots or scripts.
    pub(crate) given_back: Count,
    /// Permits that were left to expire.
    pub(crate) not_returned: Count,
}

impl Counts {
    /// Returns the counter for a request with this outcome.
    pub(crate) fn outcome(&self, fault: Option<&Fault>) -> &Count {
        match fault {
            None => &self.answered,
            Some(Fault::TimedOut(_)) => &self.timed_out,
            Some(Fault::Lost(_)) => &self.lost,
            Some(Fault::Refused(_)) => &self.rejected,
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
    /// Adds one.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
