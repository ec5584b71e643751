//! All states of a state file, when it is opened: one walk over its blocks.

use super::block::{Block, DIGEST, HEAD_WORDS, Layout, META, Meta, PUBLISH, PublishWord, UNIT_WORDS};
use super::blocks::{Blocks, class_at, start};
use super::{Flaw, StateFile, halves, ring, table};
use crate::algorithm::{Algorithm, State};
use crate::time::Timestamp;

/// A state as it was found.
#[derive(Debug)]
pub(crate) struct Loaded<'a> {
    pub(crate) block: Block,
    pub(crate) digest: u64,
    pub(crate) name: &'a [u8],
    pub(crate) state: State,
    pub(crate) clear_at: Timestamp,
}

impl StateFile {
    /// Hands on every state, in the order of the file. Nothing is written but that free neighbours are merged. `visit` says
    /// whether the state keeps its block; if not, that is free.
    pub(crate) fn load(&self, visit: &mut dyn FnMut(Loaded<'_>) -> bool) -> Result<(), Flaw> {
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
        // A file that is full to the last block, and whose process was killed while it used the spare one, has no room for
        // another: it is taken as soon as there is.
        let _ = blocks.wanted_spare().is_none_or(|class| blocks.keep_spare(&self.region, class));
        Ok(())
    }

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

    fn state(&self, block: Block, algorithm: Algorithm, word: PublishWord) -> Option<(State, Timestamp)> {
        let (words, clear_at) = match block.layout() {
            Layout::Halves => halves::read(&self.region, block, word)?,
            Layout::Ring => ring::read(&self.region, block, word)?,
            Layout::Table => (table::read(&self.region, block, word)?, Timestamp::EPOCH),
        };
        Some((State::from_words(algorithm, &words)?, clear_at))
    }

    /// Frees every block, whatever is in them.
    pub(crate) fn empty(&self) {
        let units = (self.region.len() / UNIT_WORDS) as u32;
        let mut blocks = Blocks::new(units);
        let mut unit = 0;
        while unit < units {
            self.region.publish(start(unit) + META, 0);
            self.region.publish(start(unit) + PUBLISH, 0);
            // Without a class of its own it is the largest block that fits there.
            let class = class_at(&self.region, unit).unwrap_or(0);
            blocks.give_back(&self.region, unit, class);
            unit += 1 << class;
        }
        *self.blocks.lock() = blocks;
    }
}
