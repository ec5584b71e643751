//! The open receipts of one state; its debts in the order in which time repays them.
//!
//! ```text
//!   debt   |--a--|--b--|.....|--c--|        each interval: when time begins and ends to repay this take
//!          begin                   last end
//! ```
//!
//! A refund of `b` moves `c` and everything after it to the front by the refunded time. The dots are untracked takes,
//! which have no entry.

use std::collections::VecDeque;

use crate::algorithm::{Claim, Interval};
use crate::limit::AlgorithmParams;
use crate::time::{Ticks, Timestamp};

/// The tracked takes of one state, oldest first. Untracked takes are between and after them.
#[derive(Debug)]
pub(super) struct Debts {
    /// The limit by which the debts were taken.
    terms: AlgorithmParams,
    entries: VecDeque<Entry>,
}

/// The receipt of one take.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The number of the receipt, which grows with every entry.
    number: u64,
    /// The interval of the take in the queue of debts; `None` if the receipt itself locates its units.
    interval: Option<Interval>,
}

impl Debts {
    /// Creates an empty queue of a limit.
    pub(super) fn new(terms: AlgorithmParams) -> Debts {
        Debts { terms, entries: VecDeque::new() }
    }

    /// Returns true if the intervals before a take by this limit are still valid: the same limit has made them, and the
    /// take begins after them. If not, debt was removed without this queue.
    pub(super) fn precede(&self, terms: &AlgorithmParams, interval: Interval) -> bool {
        self.terms == *terms && self.last_end() <= interval.begin
    }

    /// Appends the last take.
    pub(super) fn push(&mut self, number: u64, terms: &AlgorithmParams, interval: Option<Interval>) {
        if interval.is_some() {
            self.terms = *terms;
        }
        self.entries.push_back(Entry { number, interval });
    }

    /// Returns the claim of a take; `None` if it was dropped, or another limit has made the queue.
    pub(super) fn claim(&self, number: u64, terms: &AlgorithmParams, seen: Timestamp) -> Option<Claim> {
        let own = self.entries[self.find(number)?].interval?;
        (self.terms == *terms).then_some(Claim::Queued { own, last_end: self.last_end(), seen })
    }

    /// Moves the end of one take, and all takes after it, to the front by the refunded time `back`.
    pub(super) fn move_up(&mut self, number: u64, back: Ticks) {
        let Some(index) = self.find(number) else { return };
        let Some(own) = &mut self.entries[index].interval else { return };
        own.end = own.end.saturating_sub(back);
        // Of a pacer in its warm-up only the end is known.
        own.begin = own.begin.min(own.end);
        for behind in self.entries.range_mut(index + 1..).filter_map(|entry| entry.interval.as_mut()) {
            behind.begin = behind.begin.saturating_sub(back);
            behind.end = behind.end.saturating_sub(back);
        }
    }

    /// Removes one take, and returns true if it was there. The intervals of the others stay, because its debt stays.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let found = self.find(number);
        found.and_then(|index| self.entries.remove(index)).is_some()
    }

    /// Removes all takes whose place in the queue is no longer known, and returns their numbers.
    pub(super) fn remove_queued(&mut self) -> Vec<u64> {
        let queued = self.entries.iter().filter(|entry| entry.interval.is_some());
        let numbers = queued.map(|entry| entry.number).collect();
        self.entries.retain(|entry| entry.interval.is_none());
        numbers
    }

    /// Returns true if a later take is in the queue, which a refund of this one would move.
    pub(super) fn has_queued_behind(&self, number: u64) -> bool {
        let last = self.entries.iter().rev().find(|entry| entry.interval.is_some());
        last.is_some_and(|entry| entry.number > number)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.number)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().map(|entry| entry.number)
    }

    /// Returns the end of the last tracked interval, or the epoch if there is none.
    fn last_end(&self) -> Timestamp {
        let last = self.entries.iter().rev().find_map(|entry| entry.interval);
        last.map_or(Timestamp::EPOCH, |interval| interval.end)
    }

    /// Finds a take by binary search. Numbers are assigned in order, under the lock of the take.
    fn find(&self, number: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}
