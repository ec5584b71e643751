//! The order of takes that need more than one call.
//!
//! Concurrent takes of one key are decided in their order. Their first calls are sent in that order. A take that has to
//! be repeated with an initial state first waits for those before it. Takes that are decided by their first call do not
//! wait.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The number of queues. Two names that share a queue also keep their order.
const LINES: u64 = 4096;

/// The takes in flight that may need more than one call.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The hasher of names. It is seeded, so no caller can choose names that share a queue.
    hasher: RandomState,
    /// The queues.
    waiting: Mutex<Waiting>,
    /// Notified when a take leaves.
    left: Notify,
}

/// The queues, as one ordered set.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the next take. Numbers are never reused.
    next: u64,
    /// The queues, each with the numbers of its takes.
    lines: BTreeSet<(u64, u64)>,
}

/// A take in flight. It leaves its queues on drop.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    /// Its number, which orders it within each queue.
    number: u64,
    /// Its queues; empty if all of its limits need one call.
    lines: Vec<u64>,
}

impl Turns {
    /// Registers a take of states with these names. Without names it costs nothing: no lock is taken.
    pub(crate) fn enter<'n>(&self, names: impl Iterator<Item = &'n [u8]>) -> Turn<'_> {
        let lines: Vec<_> = names.map(|name| self.hasher.hash_one(name) % LINES).collect();
        let mut number = 0;
        if !lines.is_empty() {
            let mut waiting = self.lock();
            number = waiting.next;
            waiting.next += 1;
            waiting.lines.extend(lines.iter().map(|line| (*line, number)));
        }
        Turn { turns: self, number, lines }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Waits until all earlier takes have left.
    pub(crate) async fn wait(&self) {
        loop {
            let left = self.turns.left.notified();
            if self.is_first() {
                return;
            }
            left.await;
        }
    }

    /// Returns true if no earlier take is in any of its queues. Takes enter all their queues at once, so they cannot
    /// wait for each other in a circle.
    fn is_first(&self) -> bool {
        let waiting = self.turns.lock();
        let mut before = self.lines.iter().map(|line| waiting.lines.range((*line, 0)..(*line, self.number)));
        before.all(|mut before| before.next().is_none())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let mut waiting = self.turns.lock();
        for line in &self.lines {
            waiting.lines.remove(&(*line, self.number));
        }
        drop(waiting);
        self.turns.left.notify_waiters();
    }
}
