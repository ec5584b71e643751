//! Counters per thread.
//!
//! A thread adds to its own counters with a load and a store. No other thread writes them, so no atomic
//! read-modify-write is needed, and no cache line is contended.
//!
//! The sum over all threads is computed when metrics are read. Counters wrap after 2^64 events.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of all threads.
#[derive(Debug)]
pub(crate) struct Meters(Box<[Meter]>);

/// The counters of one thread, on their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    /// Allowed takes under limits that came with the request. Rules have counters of their own.
    pub(crate) allowed: Count,
    /// Denied takes under such limits.
    pub(crate) denied: Count,
    /// Takes whose cost exceeds the limit, so that no retry can succeed.
    pub(crate) impossible: Count,
    /// Denied because the store had no room for another key.
    pub(crate) store_full: Count,
    /// Accepted RESP connections.
    pub(crate) resp_connections: Count,
    /// Accepted HTTP connections.
    pub(crate) http_connections: Count,
    /// Executed RESP commands, including rejected ones.
    pub(crate) resp_commands: Count,
    /// HTTP requests with a complete head.
    pub(crate) http_requests: Count,
    /// Requests with an error of the caller.
    pub(crate) bad_requests: Count,
    /// Connections that the server closed: for invalid input, for sending too slowly, or for not reading replies.
    pub(crate) cut_off: Count,
    /// Connections of both fronts that have ended. Opened minus closed is the number of open connections.
    pub(crate) closed: Count,
}

/// A counter that one thread increments and all threads read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds to the counter. Only the thread that owns the meter may call this: concurrent calls lose counts.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Returns the count. Another thread may be one event behind.
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Meters {
    /// Creates the counters of this many threads, all 0.
    pub(crate) fn new(threads: usize) -> Meters {
        Meters((0..threads).map(|_| Meter::default()).collect())
    }

    /// Returns the meter of a thread.
    ///
    /// # Panics
    ///
    /// Panics if there is no thread of this number.
    pub(crate) fn of(&self, thread: usize) -> &Meter {
        &self.0[thread]
    }

    /// Returns the sum of one counter over all threads.
    pub(crate) fn sum(&self, which: impl Fn(&Meter) -> &Count) -> u64 {
        self.0.iter().fold(0, |sum, meter| sum.wrapping_add(which(meter).get()))
    }
}

impl Meter {
    /// Counts a decision by its verdict.
    #[inline]
    pub(crate) fn decided(&self, decision: &tidegate::Decision) {
        let count = match decision.verdict_in_ticks() {
            tidegate::Verdict::Allowed { .. } => &self.allowed,
            tidegate::Verdict::Denied { .. } if decision.is_store_full() => &self.store_full,
            tidegate::Verdict::Denied { .. } => &self.denied,
            tidegate::Verdict::Impossible => &self.impossible,
        };
        count.add(1);
    }
}
