//! The free blocks of a state file: a buddy allocator.
//!
//! A block of class k is at a multiple of its size. It is split into two of class k - 1, and two free halves of a block
//! are merged again. The class of a block is one word in the file, so a split and a merge each become valid by one
//! store. Before that store the first half is a whole block, and the words of the second half are not read.

use std::collections::BTreeSet;

use super::block::{Block, CLASSES, Layout, META, Meta, PUBLISH, UNIT_WORDS, class_words};
use super::region::Region;

/// The free blocks of a state file.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The first units of free blocks, by class.
    free: [BTreeSet<u32>; CLASSES],
    /// The number of units of the file.
    units: u32,
    /// The number of units of free blocks.
    free_units: u32,
    /// The spare block, in which a state is written while its own block is rewritten; its unit and its class.
    spare: Option<(u32, u8)>,
    /// The number of logs and tables of each class.
    users: [u32; CLASSES],
}

impl Blocks {
    /// Creates an allocator without free blocks.
    pub(super) fn new(units: u32) -> Blocks {
        Blocks {
            free: std::array::from_fn(|_| BTreeSet::new()),
            units,
            free_units: 0,
            spare: None,
            users: [0; CLASSES],
        }
    }

    /// Returns the number of units of blocks in use.
    pub(super) fn used_units(&self) -> u32 {
        self.units - self.free_units
    }

    /// Allocates a block of this class; `None` if there is no room. The smallest free block that fits is split; of
    /// several, the first in the file is used.
    pub(super) fn allocate(&mut self, region: &Region, class: u8) -> Option<u32> {
        let found = (usize::from(class)..CLASSES).find(|class| !self.free[*class].is_empty())?;
        let unit = self.free[found].pop_first()?;
        for half in (class..found as u8).rev() {
            self.split(region, unit, half);
        }
        let meta = Meta::free(class).encode();
        if region.get(start(unit) + META) != meta {
            region.publish(start(unit) + META, meta);
        }
        self.free_units -= 1 << class;
        Some(unit)
    }

    /// Splits a free block: its second half becomes a free block of this class.
    fn split(&mut self, region: &Region, unit: u32, class: u8) {
        let second = unit + (1 << class);
        region.set(start(second) + PUBLISH, 0);
        region.set(start(second) + META, Meta::free(class).encode());
        region.publish(start(unit) + META, Meta::free(class).encode());
        self.free[usize::from(class)].insert(second);
    }

    /// Frees a block that is no longer valid, and merges it with its neighbours.
    pub(super) fn give_back(&mut self, region: &Region, unit: u32, class: u8) {
        self.free_units += 1 << class;
        let (mut unit, mut class) = (unit, class);
        while usize::from(class) + 1 < CLASSES && self.free[usize::from(class)].remove(&(unit ^ (1 << class)))
        {
            unit &= !(1 << class);
            class += 1;
            region.publish(start(unit) + META, Meta::free(class).encode());
        }
        self.free[usize::from(class)].insert(unit);
    }

    /// Ensures that there is a spare block of at least this class. Returns false if there is no room for one. A smaller
    /// spare block is freed once the larger one is allocated.
    pub(super) fn keep_spare(&mut self, region: &Region, class: u8) -> bool {
        if self.spare.is_some_and(|(_, spare)| spare >= class) {
            return true;
        }
        let Some(unit) = self.allocate(region, class) else { return false };
        if let Some((unit, class)) = self.spare.replace((unit, class)) {
            self.give_back(region, unit, class);
        }
        true
    }

    /// Counts a log or a table of this class, which needs a spare block.
    pub(super) fn count_user(&mut self, class: u8) {
        self.users[usize::from(class)] += 1;
    }

    /// Stops counting one of them. The spare block shrinks to the largest class that is left.
    fn discount_user(&mut self, region: &Region, class: u8) {
        self.users[usize::from(class)] = self.users[usize::from(class)].saturating_sub(1);
        self.shrink_spare(region);
    }

    /// Returns the class of the spare block that logs and tables need.
    pub(super) fn wanted_spare(&self) -> Option<u8> {
        (0..CLASSES as u8).rev().find(|class| self.users[usize::from(*class)] > 0)
    }

    /// Replaces the spare block by a smaller one, if it is larger than needed.
    pub(super) fn shrink_spare(&mut self, region: &Region) {
        let wanted = self.wanted_spare();
        if let Some((unit, class)) =
            self.spare.filter(|(_, class)| wanted.is_none_or(|wanted| *class > wanted))
        {
            self.spare = None;
            self.give_back(region, unit, class);
            // It was just freed, so there is room for a smaller one.
            let _ = wanted.is_none_or(|wanted| self.keep_spare(region, wanted));
        }
    }

    /// Returns the spare block, which is free. It is counted as used, so that it is never allocated for a state.
    pub(super) fn spare(&self) -> Option<(u32, u8)> {
        self.spare
    }
}

/// Returns the index of the first word of a unit.
pub(super) fn start(unit: u32) -> usize {
    unit as usize * UNIT_WORDS
}

/// Returns the class of the block at this unit: the recorded one, or the largest that fits where nothing was ever
/// written. Returns `None` if no such block is possible.
pub(super) fn class_at(region: &Region, unit: u32) -> Option<u8> {
    let left = region.len() - start(unit);
    let fits = |class: u8| unit.trailing_zeros() >= u32::from(class) && class_words(class) <= left;
    match region.get(start(unit) + META) {
        0 => (0..CLASSES as u8).rev().find(|class| fits(*class)),
        word => Meta::decode(word).map(|meta| meta.class).filter(|class| fits(*class)),
    }
}

/// Frees the block of a state.
pub(super) fn release(blocks: &mut Blocks, region: &Region, block: Block) {
    region.publish(block.start() + PUBLISH, 0);
    region.then();
    blocks.give_back(region, block.unit(), block.class());
    if block.layout() != Layout::Halves {
        blocks.discount_user(region, block.class());
    }
}
