//! The open receipts of one sixteenth of a store's keys, within their bounds.
//!
//! All bounds are kept on entry: at most 1,024 receipts of one key and 4,096 in the part. The oldest one makes room,
//! because its debt is the most likely to be repaid already.

use std::collections::BTreeMap;

use super::debts::Debts;
use super::{MOST_IN_SHARD, MOST_OF_KEY, ReceiptCounts, StateId};
use crate::algorithm::{Claim, Interval};
use crate::limit::AlgorithmParams;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// Open receipts by state, and in the order of their age.
#[derive(Debug, Default)]
pub(super) struct ReceiptShard {
    /// The open receipts of each state; a state without any has no entry.
    states: BTreeMap<StateId, Debts>,
    /// The state of each open receipt, oldest first.
    open: BTreeMap<u64, StateId>,
    /// The number of the next receipt; numbers are not reused.
    next: u64,
    /// The latest time that was seen here.
    seen: Timestamp,
    /// The number of receipts that became invalid because there were too many.
    dropped: u64,
}

impl ReceiptShard {
    /// Records the time. If the clock has stepped back, debts may have been shortened, and all receipts become invalid.
    /// A difference of a tenth of a second is the usual disorder of readings, and no step.
    pub(super) fn see(&mut self, now: Timestamp) {
        if self.seen.since(now) > OUT_OF_ORDER {
            self.forget_all();
            self.seen = now;
        }
        self.seen = self.seen.max(now);
    }

    /// Enters the last take of a state, and returns its number. `interval` is its place in the queue of debts, if it is
    /// to be found there. If the debts before it contradict its interval, debt was removed without this table, and the
    /// queued receipts of the state become invalid.
    pub(super) fn enter(&mut self, id: StateId, terms: &AlgorithmParams, interval: Option<Interval>) -> u64 {
        let precede = |debts: &Debts| interval.is_none_or(|interval| debts.precede(terms, interval));
        if self.states.get(&id).is_some_and(|debts| !precede(debts)) {
            self.forget_order(id);
        }
        let number = self.next;
        self.next += 1;
        let debts = self.states.entry(id).or_insert_with(|| Debts::new(*terms));
        debts.push(number, terms, interval);
        let oldest_of_key = debts.oldest().filter(|_| debts.len() > MOST_OF_KEY);
        self.open.insert(number, id);
        let oldest = self.open.keys().next().copied().filter(|_| self.open.len() > MOST_IN_SHARD);
        if let Some(worthless) = oldest_of_key.or(oldest) {
            self.dropped += 1;
            self.remove(worthless);
        }
        number
    }

    /// Returns the claim of a take; `None` if its receipt is invalid.
    pub(super) fn claim(&self, number: u64, terms: &AlgorithmParams) -> Option<Claim> {
        self.states.get(self.open.get(&number)?)?.claim(number, terms, self.seen)
    }

    /// Returns true if a receipt is valid.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// Moves the debts after a take, of which `back` was refunded.
    pub(super) fn move_up(&mut self, number: u64, back: Ticks) {
        if let Some(debts) = self.open.get(&number).and_then(|id| self.states.get_mut(id)) {
            debts.move_up(number, back);
        }
    }

    /// Removes one receipt; the take stays charged. A receipt that is already invalid is ignored.
    pub(super) fn remove(&mut self, number: u64) {
        let Some(id) = self.open.remove(&number) else { return };
        let Some(debts) = self.states.get_mut(&id) else { return };
        debts.remove(number);
        if debts.len() == 0 {
            self.states.remove(&id);
        }
    }

    /// Invalidates the receipts that are found by their place in the queue of debts, because it may have moved.
    /// Receipts that locate their units themselves stay valid.
    pub(super) fn forget_order(&mut self, id: StateId) {
        let Some(debts) = self.states.get_mut(&id) else { return };
        for number in debts.remove_queued() {
            self.open.remove(&number);
        }
        if debts.len() == 0 {
            self.states.remove(&id);
        }
    }

    /// Invalidates such receipts of every state.
    pub(super) fn forget_every_order(&mut self) {
        let ids: Vec<_> = self.states.keys().copied().collect();
        ids.into_iter().for_each(|id| self.forget_order(id));
    }

    /// Invalidates all receipts of a state, because its units were forgotten, or removed without a receipt.
    pub(super) fn forget(&mut self, id: StateId) {
        for number in self.states.remove(&id).iter().flat_map(Debts::numbers) {
            self.open.remove(&number);
        }
    }

    /// Invalidates all receipts here. Their takes stay charged.
    pub(super) fn forget_all(&mut self) {
        self.states.clear();
        self.open.clear();
    }

    /// Invalidates the queued receipts of the state of this receipt.
    pub(super) fn forget_order_with(&mut self, number: u64) {
        if let Some(id) = self.open.get(&number).copied() {
            self.forget_order(id);
        }
    }

    /// Invalidates the queued receipts of the state of this receipt, if debts after it have moved.
    pub(super) fn forget_order_behind(&mut self, number: u64) {
        let Some(id) = self.open.get(&number).copied() else { return };
        if self.states.get(&id).is_some_and(|debts| debts.has_queued_behind(number)) {
            self.forget_order(id);
        }
    }

    /// Returns the open and the dropped receipts of this part.
    pub(super) fn counts(&self) -> ReceiptCounts {
        ReceiptCounts { open: self.open.len(), dropped: self.dropped }
    }
}
