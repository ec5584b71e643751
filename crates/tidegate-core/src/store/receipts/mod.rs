//! The table of open receipts: the place of each tracked take in the queue of debts.
//!
//! A tracked take of a bucket or a pacer is entered under the lock by which it is taken. A refund looks its interval up
//! under the same lock. The entries of a state are therefore in the order of its debts. Untracked takes need no lock,
//! because they only add debt at the end. A change that removes debt without a receipt holds the lock as well. It
//! invalidates the open receipts of that state, because their intervals may have moved.
//!
//! The receipts of windows, logs and slots locate their units themselves, and so do those of debts that other processes
//! share. They are entered without an interval; a reset invalidates them, too.
//!
//! The table is bounded: 65,536 receipts per store and 1,024 per key. Beyond that the oldest receipt becomes invalid,
//! which is counted in [`ReceiptCounts::dropped`]. Its take stays charged, so a dropped receipt never admits too much.

mod debts;
mod forgotten;
mod holding;
mod open;
mod shard;
mod together;

pub use open::OpenReceipt;
pub(crate) use open::Whereabouts;
pub(crate) use together::take_all_tracked;

use std::fmt;
use std::sync::Arc;

use crate::algorithm::{Claim, Interval, TakenOff};
use crate::limit::AlgorithmParams;
use crate::store::zone::{memory::fresh_seed, sip::Sip};
use crate::sync::{CachePadded, Mutex, MutexGuard};
use crate::time::Timestamp;
use forgotten::Forgotten;
use shard::ReceiptShard;

/// The number of shards of a store's keys, each with a lock of its own.
const SHARDS: usize = 16;
/// The most open receipts in one shard: 65,536 in a store. Beyond that the oldest become invalid.
const MOST_IN_SHARD: usize = 4096;
/// The most open receipts of one key.
const MOST_OF_KEY: usize = 1024;

/// The hash of a state's name under a secret seed: names of any length take the same memory.
type StateId = [u64; 2];

/// The number of receipts of tracked takes in a store.
#[doc(alias = "metrics")]
#[doc(alias = "idempotent refund")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiptCounts {
    /// The receipts that are open now: neither dropped by the caller nor refunded as a whole.
    pub open: usize,
    /// The receipts that became invalid because too many were open. They cannot be refunded, and their takes stay
    /// charged.
    pub dropped: u64,
}

impl ReceiptCounts {
    /// Returns the sum of both.
    pub(crate) fn and(self, other: ReceiptCounts) -> ReceiptCounts {
        ReceiptCounts { open: self.open + other.open, dropped: self.dropped + other.dropped }
    }
}

/// The open receipts of one store.
pub(crate) struct Receipts {
    /// The secret seed of the hashes, so that callers cannot choose names that collide.
    seed: [u64; 2],
    /// True if the order of debts is known; false if other processes use the same states.
    knows_order: bool,
    /// The parts of the table, each on a cache line of its own. Tickets keep them alive.
    shards: Arc<[CachePadded<Mutex<ReceiptShard>>]>,
    /// The states that were recently reset, for receipts that are not in the table.
    forgotten: Forgotten,
}

impl Receipts {
    /// Creates an empty table for the keys of a store.
    pub(crate) fn new() -> Receipts {
        Receipts::of_parts(SHARDS)
    }

    /// Creates an empty table for the keys of a store that other processes use as well.
    pub(crate) fn of_shared() -> Receipts {
        Receipts { knows_order: false, ..Receipts::of_parts(SHARDS) }
    }

    /// Creates an empty table for one state.
    pub(crate) fn of_one() -> Receipts {
        Receipts::of_parts(1)
    }

    /// Creates an empty table of so many parts.
    fn of_parts(parts: usize) -> Receipts {
        let (seed, forgotten) = (fresh_seed(), Forgotten::new());
        let shards = (0..parts).map(|_| CachePadded(Mutex::new(ReceiptShard::default()))).collect();
        Receipts { seed, knows_order: true, shards, forgotten }
    }

    /// Locks the receipts of the state with this name under the limit with this digest.
    pub(crate) fn lock(&self, limit: u64, name: &[u8]) -> Locked<'_> {
        let id = self.id(limit, name);
        let (index, shard) = self.shard(id);
        Locked { receipts: self, id, index, shard: shard.0.lock() }
    }

    /// Returns the sum over all parts, which are locked one after the other.
    pub(crate) fn counts(&self) -> ReceiptCounts {
        let each = self.shards.iter().map(|shard| shard.0.lock().counts());
        each.fold(ReceiptCounts::default(), ReceiptCounts::and)
    }

    /// Returns the hash of a state's name. Two names with one hash would share receipts; with 128 secret bits that does
    /// not happen.
    fn id(&self, limit: u64, name: &[u8]) -> StateId {
        let mut sip = Sip::new(self.seed);
        sip.write(&limit.to_le_bytes());
        sip.write(name);
        sip.finish()
    }

    /// Returns the part of the table for a state, and its index.
    fn shard(&self, [hash, _]: StateId) -> (usize, &CachePadded<Mutex<ReceiptShard>>) {
        let index = (hash % self.shards.len() as u64) as usize;
        (index, &self.shards[index])
    }

    /// Returns the ticket of an entry, which removes the entry when it is dropped.
    fn ticket(&self, index: usize, number: u64) -> ReceiptEntry {
        ReceiptEntry { shards: Arc::clone(&self.shards), index, number }
    }
}

impl fmt::Debug for Receipts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReceiptCounts { open, dropped } = self.counts();
        out.debug_struct("Receipts").field("open", &open).field("dropped", &dropped).finish()
    }
}

/// The locked receipts of one state.
pub(crate) struct Locked<'a> {
    receipts: &'a Receipts,
    id: StateId,
    index: usize,
    shard: MutexGuard<'a, ReceiptShard>,
}

impl Locked<'_> {
    /// Enters the take that was made under this lock.
    fn enter(&mut self, terms: &AlgorithmParams, at: Timestamp, interval: Option<Interval>) -> ReceiptEntry {
        self.shard.see(at);
        let number = self.shard.enter(self.id, terms, interval);
        self.receipts.ticket(self.index, number)
    }

    /// Invalidates the receipts of this state, because its units were forgotten, or removed without a receipt.
    pub(crate) fn forget(&mut self) {
        self.receipts.forgotten.note(self.id);
        self.shard.forget(self.id);
    }

    /// Returns true if nothing of this state was forgotten since that era.
    fn is_of_era(&self, era: u64) -> bool {
        self.receipts.forgotten.spared(self.id, era)
    }

    /// Invalidates the receipts of all states under this lock. In a table of one state, these are all.
    pub(crate) fn forget_all(&mut self) {
        self.receipts.forgotten.note_all();
        self.shard.forget_all();
    }

    /// Invalidates the receipts of this state that are found by their place among the debts, because the debts have
    /// moved.
    fn forget_order(&mut self) {
        self.shard.forget_order(self.id);
    }

    /// Invalidates such receipts of all states under this lock.
    pub(crate) fn forget_every_order(&mut self) {
        self.shard.forget_every_order();
    }
}

/// The entry of one open receipt, which is removed when the ticket is dropped.
pub(crate) struct ReceiptEntry {
    shards: Arc<[CachePadded<Mutex<ReceiptShard>>]>,
    index: usize,
    number: u64,
}

impl ReceiptEntry {
    /// Removes the debt that is still owed of the take. `take_off` removes it from the state, by the claim of the take.
    pub(crate) fn settle(
        &self,
        terms: &AlgorithmParams,
        now: impl FnOnce() -> Timestamp,
        take_off: impl FnOnce(&Claim) -> Option<TakenOff>,
    ) -> TakenOff {
        let mut shard = self.shards[self.index].0.lock();
        shard.see(now());
        let Some(claim) = shard.claim(self.number, terms) else { return TakenOff::NOTHING };
        match take_off(&claim) {
            Some(taken_off) => {
                shard.move_up(self.number, taken_off.back);
                taken_off
            }
            None => {
                shard.forget_order_with(self.number);
                TakenOff::NOTHING
            }
        }
    }

    /// Gives units back by `give_back`, unless the receipt is invalid. Debt that it removes from a queue moves the
    /// debts after it. Returns `None` if the receipt is invalid; then nothing is given back.
    fn give_back<R>(
        &self,
        terms: &AlgorithmParams,
        now: impl FnOnce() -> Timestamp,
        give_back: impl FnOnce() -> R,
    ) -> Option<R> {
        let mut shard = self.shards[self.index].0.lock();
        shard.see(now());
        let answer = shard.is_open(self.number).then(give_back)?;
        if terms.queues_debts() {
            shard.forget_order_behind(self.number);
        }
        Some(answer)
    }
}

impl Drop for ReceiptEntry {
    fn drop(&mut self) {
        self.shards[self.index].0.lock().remove(self.number);
    }
}

impl fmt::Debug for ReceiptEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Ticket({})", self.number)
    }
}
