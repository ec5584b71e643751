//! The open receipts of a sixteenth of a store's keys, within their bounds.

use std::collections::BTreeMap;

use super::debts::Debts;
use super::{MOST_IN_SHARD, MOST_OF_KEY, ReceiptCounts, StateId};
use crate::algorithm::{Claim, Interval};
use crate::limit::Terms;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// Open receipts by state, and which of them is the oldest.
#[derive(Debug, Default)]
pub(super) struct Shard {
    states: BTreeMap<StateId, Debts>,
    /// The state of each open receipt, oldest first.
    open: BTreeMap<u64, StateId>,
    next: u64,
    /// The latest time that was seen here.
    seen: Timestamp,
    /// How many became worthless because there were too many.
    dropped: u64,
}

impl Shard {
    /// Notes the time. After a clock has stepped back, debts may have been cut: all receipts are worthless.
    pub(super) fn see(&mut self, now: Timestamp) {
        if self.seen.since(now) > OUT_OF_ORDER {
            self.forget_all();
            self.seen = now;
        }
        self.seen = self.seen.max(now);
    }

    /// Enters the last take of a state, and returns its number; `interval` is its place in the queue of debts, if it is to
    /// be found there.
    pub(super) fn enter(&mut self, id: StateId, terms: &Terms, interval: Option<Interval>) -> u64 {
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

    /// What is known about a take; `None` if its receipt is worthless.
    pub(super) fn claim(&self, number: u64, terms: &Terms) -> Option<Claim> {
        self.states.get(self.open.get(&number)?)?.claim(number, terms, self.seen)
    }

    /// Returns false if a receipt is worthless.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.open.contains_key(&number)
    }

    /// So much of one take came back.
    pub(super) fn move_up(&mut self, number: u64, back: Ticks) {
        if let Some(debts) = self.open.get(&number).and_then(|id| self.states.get_mut(id)) {
            debts.move_up(number, back);
        }
    }

    /// Removes one receipt; the take stays charged.
    pub(super) fn remove(&mut self, number: u64) {
        let Some(id) = self.open.remove(&number) else { return };
        let Some(debts) = self.states.get_mut(&id) else { return };
        debts.remove(number);
        if debts.len() == 0 {
            self.states.remove(&id);
        }
    }

    /// Makes the receipts worthless that are found by their place in the queue of debts: it may have moved.
    pub(super) fn forget_order(&mut self, id: StateId) {
        let Some(debts) = self.states.get_mut(&id) else { return };
        for number in debts.remove_queued() {
            self.open.remove(&number);
        }
        if debts.len() == 0 {
            self.states.remove(&id);
        }
    }

    /// The same for every state.
    pub(super) fn forget_every_order(&mut self) {
        let ids: Vec<_> = self.states.keys().copied().collect();
        ids.into_iter().for_each(|id| self.forget_order(id));
    }

    /// Makes all receipts of a state worthless: its units were forgotten, or taken off without a receipt.
    pub(super) fn forget(&mut self, id: StateId) {
        for number in self.states.remove(&id).iter().flat_map(Debts::numbers) {
            self.open.remove(&number);
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.states.clear();
        self.open.clear();
    }

    /// Forgets the order of the state of this receipt.
    pub(super) fn forget_order_with(&mut self, number: u64) {
        if let Some(id) = self.open.get(&number).copied() {
            self.forget_order(id);
        }
    }

    /// Forgets the order of the state of this receipt if other debts are behind it: they have moved.
    pub(super) fn forget_order_behind(&mut self, number: u64) {
        let Some(id) = self.open.get(&number).copied() else { return };
        if self.states.get(&id).is_some_and(|debts| debts.has_queued_behind(number)) {
            self.forget_order(id);
        }
    }

    pub(super) fn counts(&self) -> ReceiptCounts {
        ReceiptCounts { open: self.open.len(), dropped: self.dropped }
    }
}
