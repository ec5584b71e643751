//! The loading of all states when a state file is opened: one walk over its blocks.
//!
//! The walk starts at the first unit and goes from block to block by the recorded class. A valid block is read and
//! checked; any other one is free. An impossible class, name or body is a flaw, and the walk ends with the offset of
//! the block.

use super::block::{Block, DIGEST, HEAD_WORDS, Layout, META, Meta, PUBLISH, PublishWord, UNIT_WORDS};
use super::blocks::{Blocks, class_at, start};
use super::{Flaw, Rewrite, StateFile, halves, ring, table};
use crate::algorithm::{Algorithm, State};
use crate::time::Timestamp;

/// A state that was read from the file.
#[derive(Debug)]
pub(crate) struct Loaded<'a> {
    /// The block that holds it.
    pub(crate) block: Block,
    /// The digest of its limit.
    pub(crate) digest: u64,
    /// The namespace and the key.
    pub(crate) name: &'a [u8],
    /// A copy of the state.
    pub(crate) state: State,
    /// The time from which on it is clear.
    pub(crate) clear_at: Timestamp,
}

impl StateFile {
    /// Passes every state to `visit`, in the order of the file. `visit` returns true if the state keeps its block;
    /// otherwise the block is freed. Apart from that it writes only to complete an interrupted rewrite, to merge free
    /// neighbours and to allocate the spare block.
    ///
    /// # Errors
    /// At the first flawed block. States before it were already passed on, so the caller must discard them.
    pub(crate) fn load(&self, visit: &mut dyn FnMut(Loaded<'_>) -> bool) -> Result<(), Flaw> {
        self.end_rewrite();
        let units = (self.region.len() / UNIT_WORDS) as u32;
        let (mut unit, mut name) = (0, Vec::new());
        while unit < units {
            let flaw = Flaw::Blocks { at: (start(unit) * size_of::<u64>()) as u64 };
            let class = class_at(&self.region, unit).ok_or(flaw)?;
            let word = PublishWord(self.region.get(start(unit) + PUBLISH));
            if !word.is_valid() {
                self.blocks.lock().give_back(&self.region, unit, class);
            } else {
                let loaded = self.read(unit, class, word, &mut name).ok_or(flaw)?;
                let block = loaded.block;
                if block.layout() != Layout::Halves {
                    self.blocks.lock().count_user(class);
                }
                if !visit(loaded) {
                    self.remove(block);
                }
            }
            unit += 1 << class;
        }
        let mut blocks = self.blocks.lock();
        // There is room for a spare block, unless another program wrote the file; then one is allocated as soon as
        // there is room.
        let _ = blocks.wanted_spare().is_none_or(|class| blocks.keep_spare(&self.region, class));
        Ok(())
    }

    /// Completes a rewrite that was interrupted by a kill, if its state is still valid in the spare block. Does nothing
    /// if no rewrite is recorded. A spare block that is not valid means that the original was not touched yet.
    fn end_rewrite(&self) {
        let Some(rewrite) = self.region.rewrite() else { return };
        let mut name = Vec::new();
        if let Some((spare, block)) = self.spare_and_block(rewrite, &mut name) {
            let Loaded { block: spare, mut state, clear_at, .. } = spare;
            if !self.is_later(block, spare) {
                self.overwrite(block, &mut state, clear_at, self.word(spare).sequence() + 1);
            }
            self.free_spare(spare);
        }
        self.region.publish_rewrite(None);
    }

    /// Returns the content of the spare block of a rewrite, and the block of the same name that it replaces. Returns
    /// `None` if the spare block is not valid, or the file was damaged.
    fn spare_and_block<'a>(
        &self,
        Rewrite { block, spare }: Rewrite,
        name: &'a mut Vec<u8>,
    ) -> Option<(Loaded<'a>, Block)> {
        let units = (self.region.len() / UNIT_WORDS) as u32;
        if block >= units || spare >= units || block == spare {
            return None;
        }
        let (block_class, spare_class) = (class_at(&self.region, block)?, class_at(&self.region, spare)?);
        let word =
            Some(PublishWord(self.region.get(start(spare) + PUBLISH))).filter(|word| word.is_valid())?;
        let loaded = self.read(spare, spare_class, word, name)?;
        let of_spare = self.name_of(loaded.block)?;
        let block = Block::new(block, block_class, of_spare.1, loaded.name.len())?;
        if block.layout().body_words(loaded.state.word_count()) > block.body_words() {
            return None;
        }
        (self.name_of(block)? == of_spare).then_some((loaded, block))
    }

    /// Returns the state in a valid block; `None` if a part of it contradicts another.
    fn read<'a>(&self, unit: u32, class: u8, word: PublishWord, name: &'a mut Vec<u8>) -> Option<Loaded<'a>> {
        let meta = Meta::decode(self.region.get(start(unit) + META)).filter(|_| word.is_canonical())?;
        let algorithm = *Algorithm::ALL.get(usize::from(meta.algorithm))?;
        let block = Block::new(unit, class, algorithm, meta.name_bytes as usize)?;
        let least = HEAD_WORDS + (meta.name_bytes as usize).div_ceil(size_of::<u64>());
        if least + block.layout().body_words(0) > super::block::class_words(class) {
            return None;
        }
        self.region.bytes(block.start() + HEAD_WORDS, meta.name_bytes as usize, name);
        let (mut state, clear_at) = self.state(block, algorithm, word)?;
        let clear_at = match state.as_holders() {
            Some(holders) => holders.clear_at(),
            None => clear_at,
        };
        let digest = self.region.get(block.start() + DIGEST);
        Some(Loaded { block, digest, name, state, clear_at })
    }

    /// Returns the state by its layout, and the recorded clear time; that of a table follows from its leases.
    fn state(&self, block: Block, algorithm: Algorithm, word: PublishWord) -> Option<(State, Timestamp)> {
        let (words, clear_at) = match block.layout() {
            Layout::Halves => halves::read(&self.region, block, word)?,
            Layout::Ring => ring::read(&self.region, block, word)?,
            Layout::Table => (table::read(&self.region, block, word)?, Timestamp::EPOCH),
        };
        Some((State::from_words(algorithm, &words)?, clear_at))
    }

    /// Frees every block, whatever its content. It is for a file whose blocks are torn after a restart of the machine.
    /// All counts in it start from zero.
    pub(crate) fn empty(&self) {
        let units = (self.region.len() / UNIT_WORDS) as u32;
        let mut blocks = Blocks::new(units);
        let mut unit = 0;
        while unit < units {
            self.region.publish(start(unit) + META, 0);
            self.region.publish(start(unit) + PUBLISH, 0);
            // Without a recorded class it is the largest block that fits there.
            let class = class_at(&self.region, unit).unwrap_or(0);
            blocks.give_back(&self.region, unit, class);
            unit += 1 << class;
        }
        *self.blocks.lock() = blocks;
    }
}
