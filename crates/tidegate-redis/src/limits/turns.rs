//! The order of takes that need more than one call.
//!
//! Takes that share a state are decided in their order. A take needs more than one call if one of its limits has to be
//! listed first, or if it has to be repeated with the initial state of a key. Such a take enters the queues of all its
//! states. A later take with one of these states enters all of its own queues, behind it.
//!
//! The request queue sends a take when those before it have left, or are in the same call. A script decides the takes
//! of a call in order, and repeats the reply "unknown" for those that share a state with an unknown one. Takes that
//! share no state with an open turn do not wait.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The takes in flight that may need more than one call, and those behind them.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The hasher of names. It is seeded, so no caller can choose names that share a queue.
    hasher: RandomState,
    /// The queues.
    waiting: Mutex<Waiting>,
    /// The number of entries in all queues. It is read without the lock.
    open: AtomicUsize,
    /// Notified when a take leaves.
    left: Notify,
    /// Notified when a take leaves, for the thread that sends requests.
    pub(crate) is_ready: Arc<Notify>,
}

/// The queues, as one ordered set.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the next take. Numbers are never reused.
    next: u64,
    /// The queues by the hash of a name, each with the numbers of its takes.
    lines: BTreeSet<(u64, u64)>,
}

/// A take in flight. It leaves its queues on drop.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Place>);

/// The place of a take in its queues. The request queue keeps it with the ask.
#[derive(Debug)]
pub(crate) struct Place {
    turns: Arc<Turns>,
    /// Its number, which orders it within each queue.
    number: u64,
    /// Its queues.
    lines: Vec<u64>,
    /// True if one ask has all bids of the take.
    is_one_ask: bool,
}

impl Turns {
    /// Registers a take of states with these names: always if it `may_repeat`, otherwise only behind a take of one of
    /// these states. Without any such take it costs nothing: no lock is taken.
    pub(crate) fn enter<'n>(
        self: &Arc<Self>,
        names: impl Iterator<Item = &'n [u8]>,
        may_repeat: bool,
        is_one_ask: bool,
    ) -> Option<Turn> {
        if !may_repeat && self.open.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let lines: Vec<_> = names.map(|name| self.line(name)).collect();
        let mut waiting = self.lock();
        if !may_repeat && lines.iter().all(|line| waiting.before(*line, u64::MAX).next().is_none()) {
            return None;
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.lines.extend(lines.iter().map(|line| (*line, number)));
        self.open.store(waiting.lines.len(), Ordering::Relaxed);
        drop(waiting);
        Some(Turn(Arc::new(Place { turns: self.clone(), number, lines, is_one_ask })))
    }

    /// Returns the queue of a name.
    fn line(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Returns the takes of a queue before this number.
    fn before(&self, line: u64, number: u64) -> impl Iterator<Item = u64> {
        self.lines.range((line, 0)..(line, number)).map(|(_, number)| *number)
    }
}

impl Turn {
    /// Returns the place in the queues.
    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.0
    }

    /// Waits until all earlier takes of these states have left.
    pub(crate) async fn wait<'n>(&self, names: impl Iterator<Item = &'n [u8]>) {
        let lines: Vec<_> = names.map(|name| self.0.turns.line(name)).collect();
        loop {
            let left = self.0.turns.left.notified();
            if self.0.is_behind_only(&lines, &[]) {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Place {
    /// Returns the number, which grows from take to take.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns true if no other takes are before it than these. Takes enter all their queues at once, so they cannot
    /// wait for each other in a circle.
    pub(crate) fn may_go_with(&self, takes: &[u64]) -> bool {
        self.is_behind_only(&self.lines, takes)
    }

    /// Leaves the queues when the only ask of the take is sent, if the script certainly decides it: it does not repeat,
    /// and nothing is before it. Returns true if it has left.
    pub(crate) fn leaves_when_sent(&self, may_repeat: bool) -> bool {
        let leaves = !may_repeat && self.is_one_ask && self.may_go_with(&[]);
        if leaves {
            self.leave();
        }
        leaves
    }

    /// Returns true if one of its queues is among these.
    pub(crate) fn is_in(&self, lines: &HashSet<u64>) -> bool {
        self.lines.iter().any(|line| lines.contains(line))
    }

    /// Returns its queues.
    pub(crate) fn lines(&self) -> &[u64] {
        &self.lines
    }

    fn is_behind_only(&self, lines: &[u64], takes: &[u64]) -> bool {
        let waiting = self.turns.lock();
        lines.iter().all(|line| waiting.before(*line, self.number).all(|before| takes.contains(&before)))
    }

    /// Leaves all queues. It may have left them before.
    fn leave(&self) {
        let mut waiting = self.turns.lock();
        for line in &self.lines {
            waiting.lines.remove(&(*line, self.number));
        }
        self.turns.open.store(waiting.lines.len(), Ordering::Relaxed);
        drop(waiting);
        self.turns.left.notify_waiters();
        self.turns.is_ready.notify_one();
    }
}
