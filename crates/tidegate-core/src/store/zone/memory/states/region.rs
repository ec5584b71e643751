//! The words of a state file after its header.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::super::super::atomic::prefetch;
use super::super::mapping::{MappedPart, Mapping};
use super::block::UNIT_WORDS;
use super::header::{BLOCKS_AT, REWRITE_AT};

/// The words of the blocks. Every store goes through this type.
///
/// A process may be killed between any two stores. All its stores before that are in the file, in program order.
#[derive(Debug)]
pub(super) struct Region {
    words: MappedPart<AtomicU64>,
    /// The rewrite in progress, in the header.
    rewrite: MappedPart<AtomicU64>,
    #[cfg(test)]
    pub(super) watch: Watch,
}

/// A rewrite of a block, while its state is valid in the spare block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    /// The first unit of the block.
    pub(super) block: u32,
    /// The first unit of the spare block.
    pub(super) spare: u32,
}

impl Region {
    pub(super) fn new(mapping: &Arc<Mapping>, bytes: usize) -> Region {
        let words = mapping.part(BLOCKS_AT, bytes / size_of::<u64>());
        Region {
            words,
            rewrite: mapping.part(REWRITE_AT, 1),
            #[cfg(test)]
            watch: Watch::default(),
        }
    }

    /// Returns the number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Relaxed)
    }

    /// Prefetches `lines` cache lines.
    #[inline(always)]
    pub(super) fn prefetch(&self, at: usize, lines: usize) {
        self.words[at..at + lines * UNIT_WORDS].chunks_exact(UNIT_WORDS).for_each(|line| prefetch(&line[0]));
    }

    /// Stores a word that is valid only once another one is published.
    #[inline]
    pub(super) fn set(&self, at: usize, word: u64) {
        #[cfg(test)]
        self.watch.before_store(self);
        self.words[at].store(word, Ordering::Relaxed);
    }

    /// Stores a word that makes the stores before it valid.
    #[inline]
    pub(super) fn publish(&self, at: usize, word: u64) {
        #[cfg(test)]
        self.watch.before_store(self);
        self.words[at].store(word, Ordering::Release);
    }

    /// Returns the rewrite that was started and not completed.
    pub(super) fn rewrite(&self) -> Option<Rewrite> {
        // A block and its spare block differ, so the word is not zero during a rewrite.
        let word = self.rewrite[0].load(Ordering::Relaxed);
        (word != 0).then_some(Rewrite { block: word as u32, spare: (word >> 32) as u32 })
    }

    /// Records the rewrite in progress, or that there is none.
    pub(super) fn publish_rewrite(&self, rewrite: Option<Rewrite>) {
        #[cfg(test)]
        self.watch.before_store(self);
        let word = rewrite.map_or(0, |Rewrite { block, spare }| u64::from(block) | u64::from(spare) << 32);
        self.rewrite[0].store(word, Ordering::Release);
    }

    /// Orders the stores after it behind the stores before it.
    #[inline]
    pub(super) fn then(&self) {
        fence(Ordering::Release);
    }

    /// Stores bytes, padded to whole words.
    pub(super) fn set_bytes(&self, at: usize, bytes: &[u8]) {
        for (at, chunk) in (at..).zip(bytes.chunks(size_of::<u64>())) {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            self.set(at, u64::from_ne_bytes(word));
        }
    }

    /// Reads `count` bytes.
    pub(super) fn bytes(&self, at: usize, count: usize, into: &mut Vec<u8>) {
        into.clear();
        let words = count.div_ceil(size_of::<u64>());
        (at..at + words).for_each(|at| into.extend(self.get(at).to_ne_bytes()));
        into.truncate(count);
    }
}

/// A hook that is called before each store, for tests that end a process at any store.
#[cfg(test)]
#[derive(Default)]
pub(super) struct Watch(std::sync::Mutex<Option<Watcher>>);

#[cfg(test)]
pub(super) type Watcher = Box<dyn FnMut(&Region) + Send>;

#[cfg(test)]
impl Watch {
    pub(super) fn set(&self, watcher: Option<Watcher>) {
        *self.0.lock().expect("no watcher panics") = watcher;
    }

    fn before_store(&self, region: &Region) {
        if let Some(watcher) = &mut *self.0.lock().expect("no watcher panics") {
            watcher(region);
        }
    }
}

#[cfg(test)]
impl std::fmt::Debug for Watch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Watch")
    }
}
