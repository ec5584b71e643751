//! One shard of a map: entries in many small tables, one of which is split or merged at a time.
//!
//! ```text
//!   entries   0    1    2    3    4        a newcomer too many: table 5 takes half of table 1
//!            [  ] [  ] [  ] [  ] [  ]
//!            halves  wholes    halves      too few left: the last one goes back to where it came from
//! ```
//!
//! Tables are split in order, whichever is fullest (linear hashing). One call therefore moves a few hundred entries at
//! most, whatever the size of the map.
//!
//! All added tables have the same size from the start; the first table gets it when the third is added. Tables are
//! removed in the reverse order of their creation. The allocator then returns their memory to the system piece by
//! piece. Otherwise one call would have to return hundreds of megabytes that became free below it.
//!
//! An entry whose time has passed equals no entry, so any call may drop it.

use hashbrown::HashTable;

use super::budget::Budget;
use crate::algorithm::State;
use crate::limit::AlgorithmParams;
use crate::store::state_key::StoredName;
use crate::store::zone::memory::states::{Block, Loaded};
use crate::time::{OUT_OF_ORDER, Timestamp};

/// The average number of entries per table at which another table is added. A table that is not split yet has twice as
/// many.
const ENTRIES_PER_TABLE: usize = 190;
/// The entries that an added table can hold from the start: seven eighths of 512 buckets.
const TABLE: usize = 448;
/// The capacity of the list of tables from the first split on.
const TABLES: usize = 128;
/// The added table with which the first table grows to the size of all others. The first table is removed last, so its
/// memory must not be allocated after theirs. Before this point a shard would reserve too much for its few entries.
const FIRST_GROWS_WITH: usize = 2;
/// The number of buckets that are checked before the sweep decides whether to continue.
const STRIDE: usize = 8;

/// The most bytes of tables per entry while entries are only added. The first entry of a table has three empty buckets
/// beside it, and right after a split there are again four buckets per entry.
pub(super) const MOST_PER_ENTRY: usize = 4 * (size_of::<Entry>() + 1) + 64;

/// The state stored under one name.
#[derive(Debug)]
pub(super) struct Entry {
    /// The hash of the name and the limit, kept so that a split needs no key.
    hash: u64,
    /// The time from which on the state is clear under its limit.
    clear_at: Timestamp,
    /// The digest of its limit.
    limit: u64,
    /// The namespace and the key; up to 30 bytes are stored in place, longer ones on the heap.
    name: StoredName,
    /// The state, which may hold memory of its own: a log, slots or holders.
    state: State,
    /// The block of the state file that holds the state, if it survives the process.
    block: Option<Block>,
}

impl Entry {
    /// Returns the state, its clear time and its block, for the state file.
    #[inline]
    pub(super) fn parts_mut(&mut self) -> (&mut State, Timestamp, &mut Option<Block>) {
        (&mut self.state, self.clear_at, &mut self.block)
    }

    /// Returns the block of the state file that holds the state, if the map is in a file.
    #[inline]
    pub(super) fn block(&self) -> Option<Block> {
        self.block
    }

    /// Returns the heap bytes of the name and the state, which the budget counts beside the tables.
    pub(super) fn bytes(&self) -> usize {
        self.name.heap_bytes() + self.state.bytes_held()
    }

    /// Compares the digest first: names of different limits on one key are equal.
    fn is_of(&self, StateRef { limit, name }: StateRef<'_>) -> bool {
        self.limit == limit && self.name.as_bytes() == name
    }

    /// A state is dropped only once it is clear for every reading of the clock that may still be in use.
    fn is_clear(&self, now: Now) -> bool {
        now.is_long_past(self.clear_at)
    }

    pub(super) fn clear_at(&self) -> Timestamp {
        self.clear_at
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Changes the time from which on the entry may be dropped. Returns the previous one. With [`Timestamp::LAST`] the
    /// entry is pinned, because that time never passes.
    pub(super) fn keep_until(&mut self, clear_at: Timestamp) -> Timestamp {
        std::mem::replace(&mut self.clear_at, clear_at)
    }

    /// Changes the state, and updates its clear time.
    #[inline]
    pub(super) fn change<R>(&mut self, terms: &AlgorithmParams, change: impl FnOnce(&mut State) -> R) -> R {
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
    pub(super) terms: &'a AlgorithmParams,
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
    /// Returns true if a time has passed. [`Timestamp::LAST`] never does.
    #[inline]
    pub(super) fn is_past(self, time: Timestamp) -> bool {
        time <= self.time && time < Timestamp::LAST
    }

    /// Returns true if a time has passed for every thread, including those that read the clock earlier.
    #[inline]
    pub(super) fn is_long_past(self, time: Timestamp) -> bool {
        self.is_past(time.saturating_add(OUT_OF_ORDER))
    }
}

/// A part of a map's entries.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// The tables; an empty shard has none.
    tables: Vec<HashTable<Entry>>,
    /// The number of entries of all tables.
    entries: usize,
    /// The table and the bucket to be swept next.
    cursor: (usize, usize),
    /// The number of calls on this shard.
    pub(super) turn: usize,
}

impl Shard {
    /// Returns the entry of a state, clear or not.
    #[inline]
    pub(super) fn find(&self, hash: u64, state: StateRef<'_>) -> Option<&Entry> {
        let table = self.tables.get(table_of(hash, self.tables.len()))?;
        table.find(hash, |entry| entry.is_of(state))
    }

    /// Returns the entry of a state for a change; the caller updates the budget.
    #[inline]
    pub(super) fn find_mut(&mut self, hash: u64, state: StateRef<'_>) -> Option<&mut Entry> {
        let table = table_of(hash, self.tables.len());
        self.tables.get_mut(table)?.find_mut(hash, |entry| entry.is_of(state))
    }

    /// Stores a state under a new name. Returns the state if there is no room for it. The caller has checked that the
    /// name has no entry yet. The budget counts the entry only if both the key and its bytes fit.
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

    /// Adopts a state from the state file. Returns false if a later one of this name is already here. A name occurs
    /// twice if the process was killed while a state moved to a larger block; the block with the later sequence is
    /// kept.
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

    /// Returns the table for a new entry, with room reserved for it. At most one table is split per call, so the cost
    /// of an insertion is bounded by the size of a table.
    fn room(&mut self, hash: u64, now: Now, budget: &Budget) -> Option<usize> {
        if self.entries >= self.tables.len() * ENTRIES_PER_TABLE {
            self.split(now, budget);
        }
        let table = table_of(hash, self.tables.len());
        self.reserve(table, 1, budget).then_some(table)
    }

    /// Removes the state under a name. A name without an entry is ignored. The table keeps its capacity until it is
    /// merged or swept.
    pub(super) fn remove(&mut self, hash: u64, state: StateRef<'_>, budget: &Budget) {
        let table = table_of(hash, self.tables.len());
        let Some(table) = self.tables.get_mut(table) else { return };
        if let Ok(entry) = table.find_entry(hash, |entry| entry.is_of(state)) {
            budget.remove(entry.remove().0);
            self.entries -= 1;
        }
    }

    /// Sweeps a few entries and drops those that are clear. Continues while each step finds some, up to `most` buckets.
    /// A sweep that finds nothing stops after [`STRIDE`] buckets, which is the usual cost. A shard that has become too
    /// empty loses one table per call.
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

    /// Drops the clear entries among the next buckets. Returns true if there were any. The cursor goes through all
    /// tables in turn and starts again at the first one.
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

    /// Shrinks the first table, if it is almost empty.
    fn give_back(&mut self, budget: &Budget) {
        let Some(table) = self.tables.first_mut() else { return };
        if table.len() < table.num_buckets() / 4 {
            let before = table.allocation_size();
            table.shrink_to(table.len() * 2, |entry| entry.hash);
            budget.shrink(before - table.allocation_size());
        }
    }

    /// Reserves room for `more` entries in a table. Returns false if the budget does not allow it. The budget is asked
    /// for the most that the allocation can take, and gets the difference back afterwards.
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

    /// Adds a table, to which half of another one moves. The first table starts empty. Without room for the new table
    /// nothing changes, and the other tables become fuller than planned. Clear entries are dropped on the way.
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
            // If there is no room for that, the table grows later, when it has to.
            let _ = self.reserve(0, more, budget);
        }
    }

    /// Removes the last table, and moves its entries back to the table that they came from. Without room for the
    /// entries in the origin, the table stays.
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

/// Returns the index of the table that an entry belongs to, among `tables` tables.
#[inline]
fn table_of(hash: u64, tables: usize) -> usize {
    // Shards are selected by higher bits, buckets by lower ones and the highest.
    let bits = (hash >> 16) as usize & 0x00ff_ffff;
    let whole = tables.next_power_of_two();
    let table = bits & (whole - 1);
    if table < tables { table } else { table - whole / 2 }
}

/// Returns the table from which another one took half; `None` for the first.
fn origin_of(table: usize) -> Option<usize> {
    table.checked_ilog2().map(|highest| table - (1 << highest))
}

/// Returns the most bytes of a table that has `buckets` buckets and reserves room for `entries` entries.
fn table_bytes(entries: usize, buckets: usize) -> usize {
    let buckets = (entries * 8 / 7 + 1).max(buckets + 1).next_power_of_two().max(16);
    buckets * (size_of::<Entry>() + 1) + 64
}

#[cfg(test)]
impl Shard {
    /// Returns the number of entries, after it was compared with the tables.
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries, self.tables.iter().map(HashTable::len).sum::<usize>());
        self.entries
    }

    /// Returns the bytes of the tables.
    pub(super) fn bytes(&self) -> usize {
        self.tables.iter().map(HashTable::allocation_size).sum()
    }

    /// Returns the most entries in one table, which is the most that one call may have to move.
    pub(super) fn largest(&self) -> usize {
        self.tables.iter().map(HashTable::len).max().unwrap_or(0)
    }

    /// Returns the number of tables.
    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Returns the number of buckets of the first table.
    pub(super) fn buckets_of_first(&self) -> Option<usize> {
        self.tables.first().map(HashTable::num_buckets)
    }
}
