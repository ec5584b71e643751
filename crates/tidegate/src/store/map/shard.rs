//! One part of a map: a table that grows, shrinks and forgets a few entries at a time.
//!
//! ```text
//!   newcomers ---> [ table          ]        grown: twice as large; shrunk: a quarter
//!                        ^  a few entries per call
//!   found here too [ leaving ]------'        dropped when it is empty
//! ```
//!
//! A table that is full or almost empty is not rebuilt: another one takes its place, and entries move over
//! step by step. The steps of one newcomer are enough for the old table to be empty before the new one is
//! full: a new table has room for twice the entries, and at least a quarter of the old one's buckets.
//!
//! An entry whose clear time has come is the same as none, so it may be dropped whenever somebody passes by.

use hashbrown::HashTable;

use super::budget::Budget;
use crate::algorithm::State;
use crate::limit::Terms;
use crate::store::name::{CIRCLES, circle};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// How many buckets a newcomer moves from the table that is leaving.
const STEPS_PER_NEWCOMER: usize = 32;
/// How many buckets are looked at before it is asked whether to go on.
const STRIDE: usize = 16;
/// The smallest table that is worth shrinking.
const SMALLEST: usize = 32;
/// What the allocator needs beside the bytes of a name.
const ALLOCATION: usize = 16;

/// What is remembered under one name.
#[derive(Debug)]
pub(super) struct Entry {
    hash: u64,
    /// When its debt is over; states that depend on a limit's numbers have to be remembered a while longer.
    settled_at: Timestamp,
    name: Box<[u8]>,
    state: State,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.name.len() + ALLOCATION + self.state.bytes_held()
    }

    fn is_clear(&self, now: Now<'_>) -> bool {
        if !self.state.depends_on_limit() {
            return now.is_long_past(self.settled_at);
        }
        // The name is looked at last: it lies elsewhere.
        now.is_past(self.settled_at) && now.is_past(self.settled_at.saturating_add(now.memory.of(&self.name)))
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Changes the state.
    #[inline]
    pub(super) fn change<R>(&mut self, terms: &Terms, change: impl FnOnce(&mut State) -> R) -> R {
        let answer = change(&mut self.state);
        self.settled_at = terms.settled_at(&self.state);
        answer
    }
}

/// The time, and for how long states are remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now<'a> {
    pub(super) time: Timestamp,
    pub(super) memory: &'a Memory,
}

impl Now<'_> {
    /// Whether a time has come; the end of time never does.
    #[inline]
    pub(super) fn is_past(self, time: Timestamp) -> bool {
        time <= self.time && time < Timestamp::LAST
    }

    /// Whether a time has come for everybody, also for those who have read the clock before others did.
    #[inline]
    fn is_long_past(self, time: Timestamp) -> bool {
        self.is_past(time.saturating_add(OUT_OF_ORDER))
    }
}

/// For how long settled states are remembered: by circle of namespaces, the longest that any limit has asked
/// for. A limit may be replaced by one with a longer memory, and two may share a state.
#[derive(Debug)]
pub(super) struct Memory([AtomicU64; CIRCLES]);

impl Memory {
    pub(super) fn new() -> Memory {
        Memory(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn of(&self, name: &[u8]) -> Ticks {
        Ticks::new(self.0[circle(name)].load(Ordering::Relaxed))
    }

    /// Remembers states of this circle for at least this long from now on.
    #[inline]
    pub(super) fn lengthen(&self, circle: usize, memory: Ticks) {
        if memory > Ticks::new(self.0[circle].load(Ordering::Relaxed)) {
            self.0[circle].fetch_max(memory.get(), Ordering::Relaxed);
        }
    }
}

/// Part of a map's entries.
#[derive(Debug, Default)]
pub(super) struct Shard {
    table: HashTable<Entry>,
    leaving: HashTable<Entry>,
    /// The next bucket to look at: of the table that is leaving, if there is one.
    cursor: usize,
    /// How often this shard was asked.
    pub(super) turn: usize,
}

impl Shard {
    pub(super) fn find(&self, hash: u64, name: &[u8]) -> Option<&Entry> {
        let is_it = |entry: &Entry| *entry.name == *name;
        self.table.find(hash, is_it).or_else(|| self.leaving.find(hash, is_it))
    }

    #[inline]
    pub(super) fn find_mut(&mut self, hash: u64, name: &[u8]) -> Option<&mut Entry> {
        let is_it = |entry: &Entry| *entry.name == *name;
        match self.table.find_mut(hash, is_it) {
            Some(entry) => Some(entry),
            None => self.leaving.find_mut(hash, is_it),
        }
    }

    /// Remembers a state under a new name; gives it back if there is no room for it.
    pub(super) fn insert(
        &mut self,
        (hash, name): (u64, &[u8]),
        (state, settled_at): (State, Timestamp),
        now: Now<'_>,
        budget: &Budget,
    ) -> Result<(), State> {
        self.move_over(STEPS_PER_NEWCOMER, now, budget);
        if self.table.len() == self.table.capacity() && !self.change_size(now, budget) {
            return Err(state);
        }
        let bytes = name.len() + ALLOCATION + state.bytes_held();
        if !budget.add_key(bytes) {
            return Err(state);
        }
        let entry = Entry { hash, settled_at, name: name.into(), state };
        self.table.insert_unique(hash, entry, |entry| entry.hash);
        Ok(())
    }

    /// Forgets what is remembered under a name.
    pub(super) fn remove(&mut self, hash: u64, name: &[u8], budget: &Budget) {
        for table in [&mut self.table, &mut self.leaving] {
            if let Ok(entry) = table.find_entry(hash, |entry| *entry.name == *name) {
                budget.remove_key(entry.remove().0.bytes());
                return;
            }
        }
    }

    /// Looks at a few entries and drops those that are clear; looks at more as long as it pays, up to `most`.
    pub(super) fn tend(&mut self, most: usize, now: Now<'_>, budget: &Budget) {
        let mut looked = 0;
        while looked < most {
            looked += STRIDE;
            let pays = if self.leaving.num_buckets() > 1 {
                self.move_over(STRIDE, now, budget);
                true
            } else {
                self.sweep(STRIDE, now, budget)
            };
            if !pays {
                break;
            }
        }
        let buckets = self.table.num_buckets();
        if self.leaving.is_empty() && buckets > SMALLEST && self.table.len() < buckets / 8 {
            self.change_size(now, budget);
        }
    }

    /// Drops the entries among the next buckets that are clear. Whether there were any.
    fn sweep(&mut self, steps: usize, now: Now<'_>, budget: &Budget) -> bool {
        let buckets = self.table.num_buckets();
        let mut found = false;
        for _ in 0..steps.min(buckets) {
            self.cursor = if self.cursor + 1 < buckets { self.cursor + 1 } else { 0 };
            if !self.table.get_bucket(self.cursor).is_some_and(|entry| entry.is_clear(now)) {
                continue;
            }
            if let Ok(entry) = self.table.get_bucket_entry(self.cursor) {
                budget.remove_key(entry.remove().0.bytes());
                found = true;
            }
        }
        found
    }

    /// Puts a table of another size in the place of this one. Whether there was room for it.
    fn change_size(&mut self, now: Now<'_>, budget: &Budget) -> bool {
        // The steps of each newcomer have seen to it that nothing is left; if not, the rest moves now.
        self.move_over(usize::MAX, now, budget);
        let buckets = self.table.num_buckets();
        let capacity = (2 * (self.table.len() + 1)).max(buckets / 32 * 7);
        if !budget.add_table(table_bytes(capacity)) {
            return false;
        }
        let table = HashTable::with_capacity(capacity);
        budget.shrink(table_bytes(capacity) - table.allocation_size());
        self.leaving = std::mem::replace(&mut self.table, table);
        self.cursor = 0;
        true
    }

    /// Moves what is in the next buckets of the table that is leaving, but for what is clear.
    fn move_over(&mut self, steps: usize, now: Now<'_>, budget: &Budget) {
        let buckets = self.leaving.num_buckets();
        if buckets <= 1 {
            return;
        }
        let end = buckets.min(self.cursor.saturating_add(steps));
        for index in self.cursor..end {
            let Ok(entry) = self.leaving.get_bucket_entry(index) else { continue };
            let (entry, _) = entry.remove();
            if entry.is_clear(now) {
                budget.remove_key(entry.bytes());
            } else {
                self.table.insert_unique(entry.hash, entry, |entry| entry.hash);
            }
        }
        self.cursor = end;
        if end == buckets {
            budget.shrink(self.leaving.allocation_size());
            self.leaving = HashTable::new();
            self.cursor = 0;
        }
    }
}

/// What a table for so many entries takes, at most.
fn table_bytes(capacity: usize) -> usize {
    let buckets = (capacity * 8 / 7 + 1).next_power_of_two().max(16);
    buckets * (size_of::<Entry>() + 1) + 64
}

#[cfg(test)]
impl Shard {
    pub(super) fn len(&self) -> usize {
        self.table.len() + self.leaving.len()
    }

    /// The bytes of the tables.
    pub(super) fn bytes(&self) -> usize {
        self.table.allocation_size() + self.leaving.allocation_size()
    }

    /// Whether the old table will be empty before the new one is full.
    pub(super) fn is_moving_in_time(&self) -> bool {
        let steps_left = self.leaving.num_buckets().saturating_sub(self.cursor).div_ceil(STEPS_PER_NEWCOMER);
        let room = self.table.capacity() - self.table.len();
        self.leaving.num_buckets() <= 1 || room >= self.leaving.len() + steps_left
    }
}
