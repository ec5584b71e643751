//! The maximum size of a map, and its current size.
//!
//! An eighth of the bytes is reserved for tables that are resized, so that a full map can always shrink. A map whose
//! states survive the process is limited by its state file.
//!
//! Keys and bytes are two counters that all shards share. A thread adds first and works afterwards, so the sum of all
//! shards never exceeds the maximum, whatever the number of threads.

use std::sync::Arc;

use super::shard::{Entry, StateRef};
use crate::limit::AlgorithmParams;
use crate::store::zone::memory::states::{BlockName, StateFile};
use crate::sync::{AtomicUsize, Ordering};

/// The limits of a map, and the counters that they apply to.
#[derive(Debug)]
pub(super) struct Budget {
    /// The most keys; a key under two limits counts twice.
    pub(super) max_keys: usize,
    /// The most bytes of tables, names and states together.
    pub(super) max_bytes: usize,
    /// The entries of all shards.
    keys: AtomicUsize,
    /// The bytes of all shards, including what is reserved for a take in progress.
    bytes: AtomicUsize,
    /// The file in which each state has a block, if states survive the process.
    states: Option<Arc<StateFile>>,
}

impl Budget {
    /// Creates the budget of a map in memory, with nothing counted yet.
    pub(super) fn new(max_keys: usize, max_bytes: usize) -> Budget {
        let (keys, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Budget { max_keys, max_bytes, keys, bytes, states: None }
    }

    /// Returns the budget of a map whose states are in a file: only the file limits it.
    pub(super) fn of_file(states: Arc<StateFile>) -> Budget {
        Budget { states: Some(states), ..Budget::new(usize::MAX, usize::MAX) }
    }

    /// Returns the file in which states survive.
    pub(super) fn states(&self) -> Option<&StateFile> {
        self.states.as_deref()
    }

    /// Counts an entry and writes its state to the file. Returns false if there is no room. The block is allocated for
    /// the state after one more take, so that the next take seldom moves it.
    pub(super) fn add(&self, entry: &mut Entry, named: StateRef<'_>, terms: &AlgorithmParams) -> bool {
        let bytes = entry.bytes();
        if !self.add_key(bytes) {
            return false;
        }
        let Some(states) = &self.states else { return true };
        let name = BlockName { digest: named.limit, name: named.name, algorithm: terms.algorithm() };
        let words = terms.words_after(entry.state());
        let (state, clear_at, block) = entry.parts_mut();
        *block = states.insert(name, state, clear_at, words);
        let has_block = block.is_some();
        if !has_block {
            self.remove_key(bytes);
        }
        has_block
    }

    /// Stops counting an entry, and frees its block.
    pub(super) fn remove(&self, mut entry: Entry) {
        self.remove_key(entry.bytes());
        if let (Some(states), Some(block)) = (&self.states, entry.parts_mut().2.take()) {
            states.remove(block);
        }
    }

    /// Reserves a block that holds the state after one more take. Returns false if the file has no room for that.
    #[inline]
    pub(super) fn reserve_block(&self, entry: &mut Entry, terms: &AlgorithmParams) -> bool {
        self.states.is_none() || self.reserve_words(entry, terms.words_after(entry.state()))
    }

    /// Reserves a block for a state of `words` words in place of this one.
    pub(super) fn reserve_words(&self, entry: &mut Entry, words: usize) -> bool {
        let Some(states) = &self.states else { return true };
        let (state, clear_at, block) = entry.parts_mut();
        block.as_mut().is_none_or(|block| states.reserve(block, state, clear_at, words))
    }

    /// Prefetches the block of a state.
    #[inline]
    pub(super) fn prefetch_block(&self, entry: &Entry) {
        if let (Some(states), Some(block)) = (&self.states, entry.block()) {
            states.prefetch(block);
        }
    }

    /// Writes a changed state to the file. In memory this does nothing. In a file the write is a few stores, and is not
    /// synced to disk.
    #[inline]
    pub(super) fn save(&self, entry: &mut Entry) {
        let Some(states) = &self.states else { return };
        let (state, clear_at, block) = entry.parts_mut();
        if let Some(block) = block {
            states.save(*block, state, clear_at);
        }
    }

    /// Returns the number of entries, which may include clear ones that were not dropped yet.
    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Returns the bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts one more key of this size, if there is room for it.
    pub(super) fn add_key(&self, bytes: usize) -> bool {
        if !add_up_to(&self.keys, 1, self.max_keys) {
            return false;
        }
        let fits = self.grow(bytes);
        if !fits {
            self.keys.fetch_sub(1, Ordering::Relaxed);
        }
        fits
    }

    /// Stops counting a key of this size.
    pub(super) fn remove_key(&self, bytes: usize) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of keys and states, if there is room for them.
    pub(super) fn grow(&self, bytes: usize) -> bool {
        add_up_to(&self.bytes, bytes, self.max_bytes - self.max_bytes / 8)
    }

    /// Counts the bytes of a table, if there is room for it.
    pub(super) fn add_table(&self, bytes: usize) -> bool {
        add_up_to(&self.bytes, bytes, self.max_bytes)
    }

    /// Counts a state of `after` bytes where `before` were counted.
    pub(super) fn settle(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(0) => {}
            // Only a changed limit can cause this, by dividing its window into more slots.
            Some(more) => {
                self.bytes.fetch_add(more, Ordering::Relaxed);
            }
            None => self.shrink(before - after),
        }
    }

    /// Stops counting these bytes.
    pub(super) fn shrink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Adds to a sum, unless it would exceed `most`. Returns true if it was added.
fn add_up_to(sum: &AtomicUsize, more: usize, most: usize) -> bool {
    let added = |held: usize| held.checked_add(more).filter(|held| *held <= most);
    more == 0 || sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_and_the_last_byte_fit_and_one_more_does_not() {
        let budget = Budget::new(2, 800);
        assert!(budget.add_key(300));
        assert!(!budget.add_key(401), "700 of the 800 bytes are for keys and states");
        assert!(budget.add_key(400));
        assert_eq!((budget.keys(), budget.bytes()), (2, 700));
        assert!(!budget.add_key(0), "two keys are the most");
        assert!(!budget.grow(1));
        assert!(budget.grow(0));
        assert!(budget.add_table(100));
        assert!(!budget.add_table(1));
        assert!(!budget.add_table(usize::MAX));
        budget.remove_key(300);
        budget.shrink(100);
        assert_eq!((budget.keys(), budget.bytes()), (1, 400));
        assert!(budget.add_key(300));
    }
}
