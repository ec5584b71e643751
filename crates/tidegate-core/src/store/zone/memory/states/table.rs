//! Permit holders, each in a place of its own.
//!
//! ```text
//!   next of the sequence | longest lease | end, units, number | end, units, number | …
//! ```
//!
//! A place is in use while its number is not zero, and the number is written last. A release clears it; a renewal
//! changes the end of the lease, which is one word. The sequence advances before a holder is written, so no number is
//! used twice.
//!
//! The journal of the holders lists the permits that were added and removed since the last write, and the place of
//! each. A take or a release is therefore a few stores, whatever the number of holders.

use super::block::{Block, PUBLISH, PublishWord};
use super::region::Region;
use crate::algorithm::concurrency::Holders;
use crate::decision::PermitId;

/// The words before the first place: the sequence and the longest lease.
const FIRST: usize = 2;
/// The words of a place: the end of the lease, the units, the number of the permit.
const PLACE: usize = 3;
/// The index of the number in a place.
const NUMBER: usize = 2;
/// The most pairs of holders that are compared to find those whose lease was changed. More of them are the result of a
/// clock that stepped back, which changes all leases: then all holders are rewritten.
const MOST_COMPARED: usize = 1 << 12;

/// Returns the words of a body for holders of `words` words.
pub(super) const fn body_words(words: usize) -> usize {
    if words < FIRST { FIRST } else { words }
}

/// Returns the number of holders for which a block has room.
fn places(block: Block) -> usize {
    (block.body_words() - FIRST) / PLACE
}

/// Returns the index of the first word of a place.
fn place_at(block: Block, place: u32) -> usize {
    block.body() + FIRST + place as usize * PLACE
}

/// Writes all holders into a block that is not valid.
pub(super) fn write_all(region: &Region, block: Block, word: PublishWord, holders: &mut Holders) {
    holders.journal().begin();
    let sequence = holders.sequence();
    let leases: Vec<_> = holders.leases().collect();
    for (at, word) in (block.body()..).zip(sequence) {
        region.set(at, word);
    }
    for (permit, lease) in &leases {
        let at = place_at(block, holders.journal().place(*permit));
        for (at, word) in (at..).zip([lease[0], lease[1], permit.number()]) {
            region.set(at, word);
        }
    }
    for place in leases.len()..places(block) {
        region.set(place_at(block, place as u32) + NUMBER, 0);
    }
    region.publish(block.start() + PUBLISH, word.with(0, 0, 0).0);
}

/// Writes the holders that were added and removed since the last call. Returns false if these are not known, or too
/// many. Releases are written before new holders, so a kill in between never leaves one place with two holders.
#[inline]
pub(super) fn update(region: &Region, block: Block, holders: &mut Holders) -> bool {
    if !holders.journal().is_kept() || holders.len() > places(block) {
        return false;
    }
    for (at, word) in (block.body()..).zip(holders.sequence()) {
        if region.get(at) != word {
            region.set(at, word);
        }
    }
    region.then();
    let mut changes = holders.journal().take();
    if changes.left.len().saturating_mul(changes.entered.len()) > MOST_COMPARED {
        return false;
    }
    for (permit, place) in changes.left.iter().copied() {
        let at = place_at(block, place);
        let again = changes.entered.iter().position(|entered| *entered == permit);
        match again.and_then(|index| Some((index, holders.lease_of(permit)?))) {
            Some((index, [until, _])) => {
                changes.entered.swap_remove(index);
                holders.journal().place_again(permit, place);
                region.publish(at, until);
            }
            None => {
                region.publish(at + NUMBER, 0);
                holders.journal().free(place);
            }
        }
    }
    region.then();
    for permit in changes.entered.iter().copied() {
        let Some([until, units]) = holders.lease_of(permit) else { continue };
        let at = place_at(block, holders.journal().place(permit));
        region.set(at, until);
        region.set(at + 1, units);
        region.publish(at + NUMBER, permit.number());
    }
    holders.journal().put_back(changes);
    true
}

/// Returns the words of the holders; `None` if they are invalid. Places without a valid number are free, whatever their
/// other words.
pub(super) fn read(region: &Region, block: Block, word: PublishWord) -> Option<Vec<u64>> {
    if word.half() != 0 || word.head() != 0 || word.length() != 0 || block.body_words() < FIRST {
        return None;
    }
    let mut words = vec![region.get(block.body()), region.get(block.body() + 1)];
    for place in 0..places(block) {
        let at = place_at(block, place as u32);
        let number = region.get(at + NUMBER);
        if PermitId::from_number(number).is_some() {
            words.extend([region.get(at), region.get(at + 1), number]);
        }
    }
    Some(words)
}
