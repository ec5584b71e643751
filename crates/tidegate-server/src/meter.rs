//! What was counted, by each thread for itself.
//!
//! A thread adds to its own counters with a load and a store: nobody else writes them, so no exchange is needed,
//! and no line of memory is fought over.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of all threads.
#[derive(Debug)]
pub(crate) struct Meters(Box<[Meter]>);

/// The counters of one thread, in lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    pub(crate) allowed: Count,
    pub(crate) denied: Count,
    pub(crate) impossible: Count,
    /// Refused because the store had no room for another subject.
    pub(crate) store_full: Count,
    pub(crate) resp_connections: Count,
    pub(crate) http_connections: Count,
    pub(crate) resp_commands: Count,
    pub(crate) http_requests: Count,
    /// Requests that were answered by an error of the caller's.
    pub(crate) bad_requests: Count,
    /// Connections that were cut off: for what they sent, for sending too slowly, for not reading.
    pub(crate) cut_off: Count,
    pub(crate) closed: Count,
}

/// A number that one thread counts up and all may read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// By the thread whose meter it is.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Meters {
    pub(crate) fn new(threads: usize) -> Meters {
        Meters((0..threads).map(|_| Meter::default()).collect())
    }

    /// The meter of a thread.
    pub(crate) fn of(&self, thread: usize) -> &Meter {
        &self.0[thread]
    }

    /// What all threads counted together.
    pub(crate) fn sum(&self, which: impl Fn(&Meter) -> &Count) -> u64 {
        self.0.iter().fold(0, |sum, meter| sum.wrapping_add(which(meter).get()))
    }
}

impl Meter {
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
