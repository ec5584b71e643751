//! Two copies of a state, of which one is in force.
//!
//! A change writes the copy that is not in force and publishes it. Each copy begins with the time from which on the
//! state is worth nothing.

use super::block::{Block, PUBLISH, PublishWord};
use super::region::Region;
use crate::algorithm::State;
use crate::time::Timestamp;

/// The words of a body for states of so many words.
pub(super) const fn body_words(words: usize) -> usize {
    2 * (1 + words)
}

/// Writes a state, unless it is what is in force already.
#[inline]
pub(super) fn write(region: &Region, block: Block, word: PublishWord, state: &State, clear_at: Timestamp) {
    let each = block.body_words() / 2;
    let (half, idle) = (word.half() as usize, 1 - word.half() as usize);
    let (in_force, at) = (block.body() + half * each, block.body() + idle * each);
    let (mut length, mut is_other) = (0, !word.is_valid());
    let mut put = |word: u64| {
        is_other |= region.get(in_force + length) != word;
        region.set(at + length, word);
        length += 1;
    };
    put(clear_at.ticks());
    state.each_word(&mut put);
    if is_other || length != word.length() + 1 {
        region.publish(block.start() + PUBLISH, word.with(idle as u64, 0, length - 1).0);
    }
}

/// The words in force and their clear time; none if that cannot be.
pub(super) fn read(region: &Region, block: Block, word: PublishWord) -> Option<(Vec<u64>, Timestamp)> {
    let each = block.body_words() / 2;
    let length = Some(word.length()).filter(|length| *length < each && word.head() == 0)?;
    let at = block.body() + word.half() as usize * each;
    let clear_at = Timestamp::from_ticks(region.get(at));
    Some(((at + 1..at + 1 + length).map(|at| region.get(at)).collect(), clear_at))
}
