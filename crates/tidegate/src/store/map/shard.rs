//! One part of a map: entries in many small tables, one of which is split or merged at a time.
//!
//! ```text
//!   entries   0    1    2    3    4        a newcomer too many: table 5 takes half of table 1
//!            [  ] [  ] [  ] [  ] [  ]
//!            halves  wholes    halves      too few left: the last one goes back to where it came from
//! ```
//!
//! Tables are split in order, whichever is fullest (linear hashing), so one call moves a few hundred entries
//! at most, however many there are.
//!
//! All have the same size from the beginning, the first one since the third came, and are taken away in the order
//! opposite to that in which they came. An allocator then gives their memory back to the system piece by piece;
//! otherwise one call would have to hand back hundreds of megabytes that happened to become free below it.
//!
//! An entry whose time is over is the same as none, so it may be dropped whenever somebody passes by.

use hashbrown::HashTable;

use super::budget::Budget;
use crate::algorithm::State;
use crate::limit::Terms;
use crate::store::name::StoredName;
use crate::store::zone::memory::states::{Block, Loaded};
use crate::time::{OUT_OF_ORDER, Timestamp};

/// How many entries a table has on average before another one is added; one that waits for its turn has twice
/// as many.
const ENTRIES_PER_TABLE: usize = 190;
/// The entries for which an added table has room from the beginning: seven eighths of 512 buckets.
const TABLE: usize = 448;
/// The tables for which there is room in the list of them from the first split on.
const TABLES: usize = 128;
/// The table with which the first one gets the size of all others. It is the last one to go, so its memory must not come
/// after theirs; before this table a shard would have too much room for its few entries.
const FIRST_GROWS_WITH: usize = 2;
/// How many buckets are looked at before it is asked whether to go on.
const STRIDE: usize = 8;

/// The most bytes of tables per entry, while entries only come: the first entry of a table has three empty buckets
/// beside it, and right after a split there are four buckets for each again.
pub(super) const MOST_PER_ENTRY: usize = 4 * (size_of::<Entry>() + 1) + 64;

/// What is remembered under one name.
#[derive(Debug)]
pub(super) struct Entry {
    hash: u64,
    /// The time from which on it is worth nothing under its limit.
    clear_at: Timestamp,
    /// The digest of its limit.
    limit: u64,
    name: StoredName,
    state: State,
    /// Where the state is written down, if it survives the process.
    block: Option<Block>,
}

impl Entry {
    /// The state, its clear time and its block, for whoever writes it down.
    #[inline]
    pub(super) fn parts_mut(&mut self) -> (&mut State, Timestamp, &mut Option<Block>) {
        (&mut self.state, self.clear_at, &mut self.block)
    }

    #[inline]
    pub(super) fn block(&self) -> Option<Block> {
        self.block
    }

    pub(super) fn bytes(&self) -> usize {
        self.name.heap_bytes() + self.state.bytes_held()
    }

    fn is_of(&self, StateRef { limit, name }: StateRef<'_>) -> bool {
        self.limit == limit && self.name.as_bytes() == name
    }

    fn is_clear(&self, now: Now) -> bool {
        now.is_long_past(self.clear_at)
    }

    pub(super) fn clear_at(&self) -> Timestamp {
        self.clear_at
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Changes the time from which on it may be dropped. Returns the one before.
    pub(super) fn keep_until(&mut self, clear_at: Timestamp) -> Timestamp {
        std::mem::replace(&mut self.clear_at, clear_at)
    }

    /// Changes the state.
    #[inline]
    pub(super) fn change<R>(&mut self, terms: &Terms, change: impl FnOnce(&mut State) -> R) -> R {
        let answer = change(&mut self.state);
        self.clear_at = terms.clear_at(&self.state);
        answer
    }
}

/// A state that has no entry yet: the hash of its name, the name, and the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer<'a> {
    pub(super) hash: u64,
    pub(super) named: StateRef<'a>,
    pub(super) terms: &'a Terms,
}

/// The name of a state: the digest of its limit, and the bytes of the namespace and the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateRef<'a> {
    pub(super) limit: u64,
    pub(super) name: &'a [u8],
}

/// The time as of which entries are dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) time: Timestamp,
}

impl Now {
    /// Whether a time has come; the end of time never does.
    #[inline]
    pub(super) fn is_past(self, time: Timestamp) -> bool {
        time <= self.time && time < Timestamp::LAST
    }

    /// Whether a time has come for everybody, also for those who have read the clock before others did.
    #[inline]
    pub(super) fn is_long_past(self, time: Timestamp) -> bool {
        self.is_past(time.saturating_add(OUT_OF_ORDER))
    }
}

/// Part of a map's entries.
#[derive(Debug, Default)]
pub(super) struct Shard {
    tables: Vec<HashTable<Entry>>,
    entries: usize,
    /// The table and the bucket to be looked at next.
    cursor: (usize, usize),
    /// How often this shard was asked.
    pub(super) turn: usize,
}

impl Shard {
    #[inline]
    pub(super) fn find(&self, hash: u64, state: StateRef<'_>) -> Option<&Entry> {
        let table = self.tables.get(table_of(hash, self.tables.len()))?;
        table.find(hash, |entry| entry.is_of(state))
    }

    #[inline]
    pub(super) fn find_mut(&mut self, hash: u64, state: StateRef<'_>) -> Option<&mut Entry> {
        let table = table_of(hash, self.tables.len());
        self.tables.get_mut(table)?.find_mut(hash, |entry| entry.is_of(state))
    }

    /// Remembers a state under a new name; gives it back if there is no room for it.
    pub(super) fn insert(
        &mut self,
        Newcomer { hash, named, terms }: Newcomer<'_>,
        state: State,
        clear_at: Timestamp,
        now: Now,
        budget: &Budget,
    ) -> Result<(), State> {
        let Some(table) = self.room(hash, now, budget) else { return Err(state) };
        let StateRef { limit, name } = named;
        let mut entry = Entry { hash, clear_at, limit, name: StoredName::new(name), state, block: None };
        if !budget.add(&mut entry, named, terms) {
            return Err(entry.state);
        }
        self.tables[table].insert_unique(hash, entry, |entry| entry.hash);
        self.entries += 1;
        Ok(())
    }

    /// Takes over a state that was found in the state file. Returns false if a later one of this name is here already.
    pub(super) fn adopt(&mut self, hash: u64, loaded: Loaded<'_>, now: Now, budget: &Budget) -> bool {
        let Loaded { block, digest: limit, name, state, clear_at } = loaded;
        if let Some(known) = self.find_mut(hash, StateRef { limit, name }) {
            let (Some(states), Some(old)) = (budget.states(), known.block) else { return false };
            if !states.is_later(block, old) {
                return false;
            }
            states.remove(old);
            budget.shrink(known.bytes());
            (known.state, known.clear_at, known.block) = (state, clear_at, Some(block));
            return budget.grow(known.bytes());
        }
        let Some(table) = self.room(hash, now, budget) else { return false };
        let entry = Entry { hash, clear_at, limit, name: StoredName::new(name), state, block: Some(block) };
        if !budget.add_key(entry.bytes()) {
            return false;
        }
        self.tables[table].insert_unique(hash, entry, |entry| entry.hash);
        self.entries += 1;
        true
    }

    /// The table that a newcomer belongs to, with room for it.
    fn room(&mut self, hash: u64, now: Now, budget: &Budget) -> Option<usize> {
        if self.entries >= self.tables.len() * ENTRIES_PER_TABLE {
            self.split(now, budget);
        }
        let table = table_of(hash, self.tables.len());
        self.reserve(table, 1, budget).then_some(table)
    }

    /// Forgets what is remembered under a name.
    pub(super) fn remove(&mut self, hash: u64, state: StateRef<'_>, budget: &Budget) {
        let table = table_of(hash, self.tables.len());
        let Some(table) = self.tables.get_mut(table) else { return };
        if let Ok(entry) = table.find_entry(hash, |entry| entry.is_of(state)) {
            budget.remove(entry.remove().0);
            self.entries -= 1;
        }
    }

    /// Looks at a few entries and drops those that are clear; looks at more as long as it pays, up to `most`.
    pub(super) fn tend(&mut self, most: usize, now: Now, budget: &Budget) {
        let mut looked = 0;
        while looked < most && self.sweep(now, budget) {
            looked += STRIDE;
        }
        if self.entries < self.tables.len().saturating_sub(1) * ENTRIES_PER_TABLE / 4 {
            self.merge(now, budget);
        } else if self.tables.len() == 1 {
            self.give_back(budget);
        }
    }

    /// Drops the entries among the next buckets that are clear. Whether there were any.
    fn sweep(&mut self, now: Now, budget: &Budget) -> bool {
        let (mut table, mut bucket) = self.cursor;
        let Some(entries) = self.tables.get_mut(table) else {
            self.cursor = (0, 0);
            return false;
        };
        let before = self.entries;
        let end = entries.num_buckets().min(bucket + STRIDE);
        while bucket < end {
            if entries.get_bucket(bucket).is_some_and(|entry| entry.is_clear(now)) {
                if let Ok(entry) = entries.get_bucket_entry(bucket) {
                    budget.remove(entry.remove().0);
                    self.entries -= 1;
                }
            }
            bucket += 1;
        }
        if bucket >= entries.num_buckets() {
            (table, bucket) = (table + 1, 0);
        }
        self.cursor = (table, bucket);
        self.entries < before
    }

    /// Gives back room of the first table, if it is almost empty.
    fn give_back(&mut self, budget: &Budget) {
        let Some(table) = self.tables.first_mut() else { return };
        if table.len() < table.num_buckets() / 4 {
            let before = table.allocation_size();
            table.shrink_to(table.len() * 2, |entry| entry.hash);
            budget.shrink(before - table.allocation_size());
        }
    }

    /// Makes room for so many more entries in a table. Whether there was room for that.
    fn reserve(&mut self, table: usize, more: usize, budget: &Budget) -> bool {
        let table = &mut self.tables[table];
        if table.len() + more <= table.capacity() {
            return true;
        }
        let before = table.allocation_size();
        let growth = table_bytes(table.len() + more, table.num_buckets()).saturating_sub(before);
        if !budget.add_table(growth) {
            return false;
        }
        table.reserve(more, |entry| entry.hash);
        budget.settle(before + growth, table.allocation_size());
        true
    }

    /// Adds a table, to which half of another one moves; the first is for everybody.
    fn split(&mut self, now: Now, budget: &Budget) {
        let added = self.tables.len();
        if added == 1 {
            self.tables.reserve_exact(TABLES);
        }
        self.tables.push(HashTable::new());
        let Some(origin) = origin_of(added) else { return };
        let moving = |entry: &Entry| table_of(entry.hash, added + 1) == added;
        if !self.reserve(added, TABLE, budget) {
            self.tables.pop();
            return;
        }
        let [origin_table, added_table] = {
            let (before, after) = self.tables.split_at_mut(added);
            [&mut before[origin], &mut after[0]]
        };
        for entry in origin_table.extract_if(|entry| moving(entry)) {
            move_to(added_table, entry, &mut self.entries, now, budget);
        }
        if added == FIRST_GROWS_WITH {
            let more = TABLE.saturating_sub(self.tables[0].len());
            // Without room for that it grows when it has to.
            let _ = self.reserve(0, more, budget);
        }
    }

    /// Takes the last table away; what is in it goes back to where it came from.
    fn merge(&mut self, now: Now, budget: &Budget) {
        let Some(origin) = self.tables.len().checked_sub(1).and_then(origin_of) else { return };
        let Some(last) = self.tables.pop() else { return };
        if !self.reserve(origin, last.len(), budget) {
            self.tables.push(last);
            return;
        }
        budget.shrink(last.allocation_size());
        for entry in last {
            move_to(&mut self.tables[origin], entry, &mut self.entries, now, budget);
        }
        if self.tables.len() == 1 {
            self.tables.shrink_to_fit();
        }
    }
}

/// Moves an entry to another table, unless it is clear.
fn move_to(table: &mut HashTable<Entry>, entry: Entry, entries: &mut usize, now: Now, budget: &Budget) {
    if entry.is_clear(now) {
        budget.remove(entry);
        *entries -= 1;
    } else {
        table.insert_unique(entry.hash, entry, |entry| entry.hash);
    }
}

/// Which of so many tables an entry belongs to.
#[inline]
fn table_of(hash: u64, tables: usize) -> usize {
    // Shards are told apart by higher bits, buckets by lower ones and the highest.
    let bits = (hash >> 16) as usize & 0x00ff_ffff;
    let whole = tables.next_power_of_two();
    let table = bits & (whole - 1);
    if table < tables { table } else { table - whole / 2 }
}

/// The table from which another one took half; the first one took from none.
fn origin_of(table: usize) -> Option<usize> {
    table.checked_ilog2().map(|highest| table - (1 << highest))
}

/// What a table takes at most that has so many buckets and makes room for so many entries.
fn table_bytes(entries: usize, buckets: usize) -> usize {
    let buckets = (entries * 8 / 7 + 1).max(buckets + 1).next_power_of_two().max(16);
    buckets * (size_of::<Entry>() + 1) + 64
}

#[cfg(test)]
impl Shard {
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries, self.tables.iter().map(HashTable::len).sum::<usize>());
        self.entries
    }

    /// The bytes of the tables.
    pub(super) fn bytes(&self) -> usize {
        self.tables.iter().map(HashTable::allocation_size).sum()
    }

    /// The most entries in one table: what one call may have to move.
    pub(super) fn largest(&self) -> usize {
        self.tables.iter().map(HashTable::len).max().unwrap_or(0)
    }

    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The buckets of the first table.
    pub(super) fn buckets_of_first(&self) -> Option<usize> {
        self.tables.first().map(HashTable::num_buckets)
    }
}
