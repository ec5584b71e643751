//! The state file: states of more than one word that survive a process, in a file beside the zone's.
//!
//! ```text
//!  header.rs  the first page, as bytes          halves.rs  windows and pacers: two copies
//!  region.rs  the words behind it; every store  ring.rs    logs: entries one behind the other
//!  block.rs   what a block begins with          table.rs   permits: holders, each in its place
//!  blocks.rs  which blocks are free             load.rs    all states, when the file is opened
//!  open.rs    the file itself
//! ```
//!
//! The map beside the zone holds each state. It writes every change through to its block, under the lock of the shard,
//! before the caller gets the reply. A change becomes valid by one store of one word. A process that is killed between
//! two stores leaves the state before the change or the state after it.
//!
//! One process owns the file, by a lock for as long as it has the file open.
//!
//! After a kill the file is valid, because writes to mapped memory survive the process. After a restart of the machine
//! pages may have been written in any order, so the blocks are checked, and a damaged file is emptied or rejected by
//! the caller.

mod block;
mod blocks;
#[cfg(fuzzing)]
mod fuzz;
mod halves;
mod header;
mod load;
#[cfg(target_os = "linux")]
mod open;
mod region;
mod ring;
mod table;
#[cfg(all(test, not(tidegate_models)))]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use block::Block;
#[cfg(fuzzing)]
pub use fuzz::state_file;
pub(super) use header::VERSION;
pub(crate) use load::Loaded;

use super::error::{ZoneError, ZoneProblem, beside};
use super::header::Flaw;
use super::mapping::{MappedPart, Mapping};
use crate::algorithm::{Algorithm, State};
use crate::sync::Mutex;
use crate::time::Timestamp;
use crate::time::boot::boot_id;
use block::{DIGEST, HEAD_WORDS, Layout, META, Meta, PUBLISH, PublishWord, UNIT_WORDS, class_of, name_words};
use blocks::Blocks;
use region::{Region, Rewrite};

/// The fewest bytes of the blocks of a state file.
const LEAST_BYTES: usize = 1 << 16;
/// The most units of a block that are prefetched.
const MOST_PREFETCHED: usize = 4;
/// The bytes of the smallest block.
const UNIT_BYTES: usize = UNIT_WORDS * size_of::<u64>();

/// A state file that this process owns.
#[derive(Debug)]
pub(crate) struct StateFile {
    /// The path, for messages.
    path: PathBuf,
    /// The file, which holds the lock.
    file: Option<File>,
    /// All bytes of the file.
    mapping: Arc<Mapping>,
    /// The process that owns the file, and the boot of the machine under which it was last opened.
    owner: MappedPart<AtomicU64>,
    /// The words of all blocks.
    region: Region,
    /// The allocator of blocks, the only lock that is shared by all shards of the map.
    blocks: Mutex<Blocks>,
}

/// A state file that was opened, or that another process owns.
///
/// A process that is not the owner decides states of one word in the zone as usual. Rules whose states are in this file
/// are not supported there.
#[derive(Debug)]
pub(crate) enum Opened {
    /// This process owns it.
    Own(Arc<StateFile>),
    /// The process with this id owns it.
    OwnedBy(u64),
}

/// The name of a state, as its block stores it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockName<'a> {
    /// The digest of its limit.
    pub(crate) digest: u64,
    /// The namespace and the key.
    pub(crate) name: &'a [u8],
    /// The algorithm, which determines the layout of the block.
    pub(crate) algorithm: Algorithm,
}

/// Returns the bytes of the blocks of the state file beside a zone of `zone_bytes` bytes.
pub(crate) fn bytes_beside(zone_bytes: usize) -> u64 {
    (zone_bytes.max(LEAST_BYTES) / UNIT_BYTES * UNIT_BYTES) as u64
}

/// Returns the path of the state file beside a zone's file.
pub(crate) fn path_beside(zone: &Path) -> PathBuf {
    beside(zone, ".states")
}

/// Returns the bytes in a state file of a state of `words` words, whose name has `name_bytes` bytes. Returns `None` if
/// no block is as large.
pub(crate) fn bytes_of(algorithm: Algorithm, words: usize, name_bytes: usize) -> Option<usize> {
    class_for(algorithm, words, name_bytes).map(|class| UNIT_BYTES << class)
}

/// Returns the class of the smallest block for a state: its head, its name and its body.
fn class_for(algorithm: Algorithm, words: usize, name_bytes: usize) -> Option<u8> {
    class_of(HEAD_WORDS + name_words(name_bytes) + Layout::of(algorithm).body_words(words))
}

impl StateFile {
    /// Uses a mapping as a state file, without a free block: the blocks are found by [`StateFile::load`].
    fn over(path: &Path, file: Option<File>, mapping: Arc<Mapping>, bytes: usize) -> StateFile {
        let region = Region::new(&mapping, bytes);
        let units = u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX - 1);
        let blocks = Mutex::new(Blocks::new(units));
        let owner = mapping.part(header::OWNER_AT, header::OWNER_WORDS);
        StateFile { path: path.to_owned(), file, mapping, owner, region, blocks }
    }

    /// Returns true if the machine has restarted since the file was last opened. Blocks may then be torn, because
    /// memory is written to disk in any order. If the boot id of the machine is unknown, it returns true, which is the
    /// safe answer.
    pub(crate) fn has_restarted(&self) -> bool {
        let [_, first, second] = [0, 1, 2].map(|at| self.owner[at].load(Ordering::Relaxed));
        boot_words().is_none_or(|boot| boot != [first, second])
    }

    /// Records that this process owns the file.
    fn note_process(&self) {
        self.owner[0].store(u64::from(std::process::id()), Ordering::Relaxed);
    }

    /// Records that the blocks are valid under this boot of the machine. It is called once all blocks were loaded, or
    /// emptied.
    pub(crate) fn note_whole(&self) {
        for (word, value) in self.owner[1..].iter().zip(boot_words().unwrap_or_default()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the error for a file with this flaw.
    pub(crate) fn flawed(&self, flaw: Flaw) -> ZoneError {
        ZoneError::new(&self.path, ZoneProblem::Flaw(flaw)).of_states()
    }

    /// Returns the bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.region.len() * size_of::<u64>()
    }

    /// Returns the bytes of the blocks in use.
    pub(crate) fn used_bytes(&self) -> usize {
        self.blocks.lock().used_units() as usize * UNIT_BYTES
    }

    /// Waits until everything is on disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.mapping.flush()
    }

    /// Allocates a block for a state that may grow to `words` words, and writes the state there unless it is empty.
    /// Returns `None` if there is no room for it. The block has no state until the write is published, so a kill in
    /// between leaves a free block.
    pub(crate) fn insert(
        &self,
        name: BlockName<'_>,
        state: &mut State,
        clear_at: Timestamp,
        words: usize,
    ) -> Option<Block> {
        let block = self.allocate(name, words)?;
        self.save(block, state, clear_at);
        Some(block)
    }

    /// Allocates a block with a name, and without a state. A log or a table also needs a spare block of its class, or a
    /// later rewrite could fail.
    fn allocate(&self, BlockName { digest, name, algorithm }: BlockName<'_>, words: usize) -> Option<Block> {
        let class = class_for(algorithm, words, name.len())?;
        let mut blocks = self.blocks.lock();
        if Layout::of(algorithm) != Layout::Halves && !blocks.keep_spare(&self.region, class) {
            return None;
        }
        let unit = blocks.allocate(&self.region, class);
        let block = unit.and_then(|unit| Block::new(unit, class, algorithm, name.len()));
        match (block, unit) {
            (Some(block), _) if block.layout() != Layout::Halves => blocks.count_user(class),
            (Some(_), _) => {}
            (None, unit) => {
                unit.iter().for_each(|unit| blocks.give_back(&self.region, *unit, class));
                blocks.shrink_spare(&self.region);
            }
        }
        let block = block?;
        drop(blocks);
        self.name(block, BlockName { digest, name, algorithm });
        Some(block)
    }

    /// Writes the words before the body of a block that is not valid.
    fn name(&self, block: Block, BlockName { digest, name, algorithm }: BlockName<'_>) {
        let start = block.start();
        let (algorithm, name_bytes) = (algorithm as u8, name.len() as u32);
        self.region.set(start + META, Meta { class: block.class(), algorithm, name_bytes }.encode());
        self.region.set(start + DIGEST, digest);
        self.region.set_bytes(start + HEAD_WORDS, name);
    }

    /// Ensures that the block of a state has room for `words` words; the state may move to another block. Returns false
    /// if there is no room for that, and changes nothing then.
    #[inline]
    pub(crate) fn reserve(
        &self,
        block: &mut Block,
        state: &mut State,
        clear_at: Timestamp,
        words: usize,
    ) -> bool {
        block.layout().body_words(words) <= block.body_words() || self.move_to(block, state, clear_at, words)
    }

    /// The new block gets a later sequence before the old one is freed. A kill in between leaves both, and the later
    /// one is loaded.
    #[cold]
    fn move_to(&self, block: &mut Block, state: &mut State, clear_at: Timestamp, words: usize) -> bool {
        let old = *block;
        let Some((digest, algorithm, name)) = self.name_of(old) else { return false };
        let Some(new) = self.allocate(BlockName { digest, name: &name, algorithm }, words) else {
            return false;
        };
        let word = self.word(old);
        if word.is_valid() {
            self.write_all(new, state, clear_at, word.sequence() + 1);
        }
        blocks::release(&mut self.blocks.lock(), &self.region, old);
        *block = new;
        true
    }

    /// Prefetches a block, so that it is in the cache when its state was decided.
    #[inline]
    pub(crate) fn prefetch(&self, block: Block) {
        self.region.prefetch(block.start(), (1 << block.class()).min(MOST_PREFETCHED));
    }

    /// Writes a state as it is now. Its block must have room for it. It runs in the path of every decision of such a
    /// state. It allocates no memory unless the whole state has to be rewritten.
    #[inline]
    pub(crate) fn save(&self, block: Block, state: &mut State, clear_at: Timestamp) {
        let (word, words) = (self.word(block), state.word_count());
        if block.layout().body_words(words) > block.body_words() {
            debug_assert!(false, "room was made for a state before it was changed");
            return;
        }
        if words == 0 {
            if word.is_valid() {
                self.region.publish(block.start() + PUBLISH, 0);
            }
            return;
        }
        if !word.is_valid() {
            return self.write_all(block, state, clear_at, word.sequence() + 1);
        }
        let is_written = match block.layout() {
            Layout::Halves => {
                halves::write(&self.region, block, word, state, clear_at);
                true
            }
            Layout::Ring => {
                state.as_log().is_some_and(|log| ring::append(&self.region, block, word, log, clear_at))
            }
            Layout::Table => {
                state.as_holders().is_some_and(|holders| table::update(&self.region, block, holders))
            }
        };
        if !is_written {
            self.rewrite(block, state, clear_at, word);
        }
    }

    /// Writes a whole state into a block that is not valid, and publishes it.
    fn write_all(&self, block: Block, state: &mut State, clear_at: Timestamp, sequence: u64) {
        let word = PublishWord(PublishWord::new(sequence, 0, 0, 0).0 & !1);
        match block.layout() {
            Layout::Halves => halves::write(&self.region, block, word, state, clear_at),
            Layout::Ring => {
                if let Some(log) = state.as_log() {
                    ring::write_all(&self.region, block, word, log, clear_at);
                }
            }
            Layout::Table => {
                if let Some(holders) = state.as_holders() {
                    table::write_all(&self.region, block, word, holders);
                }
            }
        }
    }

    /// Writes a state with a change that no single store can publish: into the spare block, then into its own. The
    /// header records this meanwhile, so that the next start can complete an interrupted rewrite.
    #[cold]
    fn rewrite(&self, block: Block, state: &mut State, clear_at: Timestamp, word: PublishWord) {
        let mut blocks = self.blocks.lock();
        blocks.keep_spare(&self.region, block.class());
        let spare = blocks.spare().filter(|(_, class)| *class >= block.class());
        let spare = self.name_of(block).zip(spare).and_then(|((digest, algorithm, name), (unit, class))| {
            let spare = Block::new(unit, class, algorithm, name.len())?;
            self.region.publish_rewrite(Some(Rewrite { block: block.unit(), spare: unit }));
            self.region.then();
            self.name(spare, BlockName { digest, name: &name, algorithm });
            self.region.then();
            self.write_all(spare, state, clear_at, word.sequence() + 1);
            Some(spare)
        });
        // Logs and tables get a block only if there is a spare one. It is missing only in a file that another program
        // wrote.
        self.overwrite(block, state, clear_at, word.sequence() + 2);
        spare.iter().for_each(|spare| self.free_spare(*spare));
        drop(blocks);
    }

    /// Writes a whole state into a block, which is not valid meanwhile. A kill meanwhile leaves the block without a
    /// state; the spare block then has it.
    fn overwrite(&self, block: Block, state: &mut State, clear_at: Timestamp, sequence: u64) {
        self.region.publish(block.start() + PUBLISH, 0);
        self.region.then();
        self.write_all(block, state, clear_at, sequence);
    }

    /// Completes a rewrite: the spare block is free again.
    fn free_spare(&self, spare: Block) {
        self.region.publish(spare.start() + PUBLISH, 0);
        self.region.then();
        // The next state that is allocated there writes its own class; until then a walk over the blocks reads this
        // one.
        self.region.publish(spare.start() + META, Meta::free(spare.class()).encode());
        self.region.publish_rewrite(None);
    }

    /// Frees the block of a removed state. The block is free for any other state at once, and merged with free
    /// neighbours.
    pub(crate) fn remove(&self, block: Block) {
        blocks::release(&mut self.blocks.lock(), &self.region, block);
    }

    /// Returns true if one block of a name is later than another.
    pub(crate) fn is_later(&self, block: Block, other: Block) -> bool {
        self.word(block).is_later_than(self.word(other))
    }

    /// Returns the word that publishes a block.
    #[inline]
    fn word(&self, block: Block) -> PublishWord {
        PublishWord(self.region.get(block.start() + PUBLISH))
    }

    /// Returns the digest, the algorithm and the name of a block.
    fn name_of(&self, block: Block) -> Option<(u64, Algorithm, Vec<u8>)> {
        let meta = Meta::decode(self.region.get(block.start() + META))?;
        let algorithm = *Algorithm::ALL.get(usize::from(meta.algorithm))?;
        let mut name = Vec::new();
        self.region.bytes(block.start() + HEAD_WORDS, meta.name_bytes as usize, &mut name);
        Some((self.region.get(block.start() + DIGEST), algorithm, name))
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // A mapping keeps a lock alive even when the file is closed.
        if let Some(file) = &self.file {
            self.owner[0].store(0, Ordering::Relaxed);
            unlock(file);
        }
    }
}

/// Returns the boot id of the machine in two words, if it is known.
fn boot_words() -> Option<[u64; 2]> {
    let id = boot_id()?;
    let (first, second) = id.split_at(size_of::<u64>());
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
    Some([word(first)?, word(second)?])
}

#[cfg(target_os = "linux")]
use super::system::unlock;
#[cfg(target_os = "linux")]
pub(crate) use open::{check, check_blocks, open};

#[cfg(not(target_os = "linux"))]
use unsupported::unlock;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{check, check_blocks, open};

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use super::super::header::Identity;
    use super::{File, Opened, Path, ZoneError, ZoneProblem};

    pub(crate) fn open(path: &Path, _: u64, _: Identity) -> Result<Opened, ZoneError> {
        Err(ZoneError::new(path, ZoneProblem::NotHere))
    }

    pub(crate) fn check(path: &Path, _: u64, _: Identity) -> Result<bool, ZoneError> {
        Err(ZoneError::new(path, ZoneProblem::NotHere))
    }

    pub(crate) fn check_blocks(path: &Path) -> Result<(), ZoneError> {
        Err(ZoneError::new(path, ZoneProblem::NotHere))
    }

    pub(super) fn unlock(_: &File) {}
}
