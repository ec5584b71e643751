//! Two copies of a state, of which one is in force.
//!
//! A change of one word is one store into the copy in force. Any other change writes the copy that is not in force and
//! publishes it. Each copy starts with the time from which on the state is clear.
//!
//! ```text
//!   clear at | words of the state ...     first copy
//!   clear at | words of the state ...     second copy
//! ```

use super::block::{Block, PUBLISH, PublishWord};
use super::region::Region;
use crate::algorithm::State;
use crate::time::Timestamp;

/// The most words of a copy that is written before it is known to be needed.
const SMALL: usize = 8;

/// Returns the words of a body for states of `words` words.
pub(super) const fn body_words(words: usize) -> usize {
    2 * (1 + words)
}

/// Writes a state, unless it equals the copy in force. A kill at any point leaves the state before the change or the
/// state after it.
#[inline]
pub(super) fn write(region: &Region, block: Block, word: PublishWord, state: &State, clear_at: Timestamp) {
    // Both copies of a small body are in one or two cache lines: to write a copy is cheaper than to compare first.
    if block.body_words() / 2 <= SMALL {
        write_copy::<true>(region, block, word, state, clear_at);
    } else {
        write_copy::<false>(region, block, word, state, clear_at);
    }
}

/// With `AT_ONCE` the idle copy is written while the words are compared; otherwise the state is walked twice.
#[inline]
fn write_copy<const AT_ONCE: bool>(
    region: &Region,
    block: Block,
    word: PublishWord,
    state: &State,
    clear_at: Timestamp,
) {
    let each = block.body_words() / 2;
    let (half, idle) = (word.half() as usize, 1 - word.half() as usize);
    let (in_force, aside) = (block.body() + half * each, block.body() + idle * each);
    let (mut length, mut others, mut other) = (0, 0, (0, 0));
    each_word(state, clear_at, |word| {
        if region.get(in_force + length) != word {
            (others, other) = (others + 1, (in_force + length, word));
        }
        if AT_ONCE {
            region.set(aside + length, word);
        }
        length += 1;
    });
    if word.is_valid() && length == word.length() + 1 && others < 2 {
        // A single changed word is valid by itself, and usually only one changes: a count.
        if others == 1 {
            region.publish(other.0, other.1);
        }
        return;
    }
    if !AT_ONCE {
        let mut at = aside;
        each_word(state, clear_at, |word| {
            region.set(at, word);
            at += 1;
        });
    }
    region.publish(block.start() + PUBLISH, word.with(idle as u64, 0, length - 1).0);
}

/// Passes the words of a copy to `put`.
#[inline]
fn each_word(state: &State, clear_at: Timestamp, mut put: impl FnMut(u64)) {
    put(clear_at.ticks());
    state.each_word(&mut put);
}

/// Returns the words in force and their clear time; `None` if they are invalid. A length that does not fit the copy is
/// invalid.
pub(super) fn read(region: &Region, block: Block, word: PublishWord) -> Option<(Vec<u64>, Timestamp)> {
    let each = block.body_words() / 2;
    let length = Some(word.length()).filter(|length| *length < each && word.head() == 0)?;
    let at = block.body() + word.half() as usize * each;
    let clear_at = Timestamp::from_ticks(region.get(at));
    Some(((at + 1..at + 1 + length).map(|at| region.get(at)).collect(), clear_at))
}
