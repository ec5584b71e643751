//! The entries of a log in a ring.
//!
//! ```text
//!   period | entry | entry | entry | entry | entry | entry |        an entry: time, running total
//!                    base    head                    next
//!                    total before the head           the next entry is written here
//! ```
//!
//! A take writes one entry after the last and publishes head and length. The entry before the head holds the total of
//! the removed entries. A change that these steps cannot express, such as a refund inside the log, is not written here.

use super::block::{Block, PUBLISH, PublishWord};
use super::region::Region;
use crate::algorithm::sliding_log::Log;
use crate::time::{Ticks, Timestamp};

/// The words of an entry: its time, and the running total of units up to it.
const ENTRY: usize = 2;

/// Returns the words of a body for logs of `words` words, with room for the base and the next entry. The first word of
/// a log is the total before its head, which becomes the base entry.
pub(super) const fn body_words(words: usize) -> usize {
    1 + ENTRY * (words.saturating_sub(1) / ENTRY + 2)
}

/// A ring of entries in a block. Indices count entries from the start of the ring, and wrap around at its end.
struct Ring<'a> {
    region: &'a Region,
    block: Block,
    /// The index of the first entry's first word.
    start: usize,
    /// The number of entries that fit, including the base and the next one.
    entries: usize,
}

impl<'a> Ring<'a> {
    /// Returns the ring in the body of a block, behind the word of the period.
    #[inline]
    fn of(region: &'a Region, block: Block) -> Ring<'a> {
        Ring { region, block, start: block.body() + 1, entries: (block.body_words() - 1) / ENTRY }
    }

    /// Returns the entry `more` places after another one.
    #[inline]
    fn behind(&self, index: usize, more: usize) -> usize {
        let sum = index + more;
        if sum < self.entries { sum } else { sum - self.entries }
    }

    /// Returns the entry before the head.
    #[inline]
    fn base(&self, head: usize) -> usize {
        self.behind(head, self.entries - 1)
    }

    /// Reads an entry.
    #[inline]
    fn get(&self, index: usize) -> [u64; 2] {
        let at = self.start + index * ENTRY;
        [self.region.get(at), self.region.get(at + 1)]
    }

    /// Writes an entry, which is not in force until it is published.
    #[inline]
    fn set(&self, index: usize, [time, total]: [u64; 2]) {
        let at = self.start + index * ENTRY;
        self.region.set(at, time);
        self.region.set(at + 1, total);
    }
}

/// Writes a whole log into a block that is not valid.
pub(super) fn write_all(region: &Region, block: Block, word: PublishWord, log: &Log, clear_at: Timestamp) {
    let ring = Ring::of(region, block);
    set_period(region, block, log, clear_at);
    ring.set(0, [0, log.forgotten()]);
    (0..log.len()).filter_map(|index| log.entry(index)).zip(1..).for_each(|(entry, at)| ring.set(at, entry));
    region.publish(block.start() + PUBLISH, word.with(0, 1, log.len()).0);
}

/// Writes the time between the newest entry and the end of its effect, which is the same for all logs of a limit. An
/// empty log does not have it.
#[inline]
fn set_period(region: &Region, block: Block, log: &Log, clear_at: Timestamp) {
    let newest = log.len().checked_sub(1).and_then(|last| log.entry(last));
    if let Some([time, _]) = newest {
        let period = clear_at.since(Timestamp::from_ticks(time)).get();
        if region.get(block.body()) != period {
            region.set(block.body(), period);
        }
    }
}

/// Writes the changes since the last call. Returns false if they are more than removed and added entries.
#[inline]
pub(super) fn append(
    region: &Region,
    block: Block,
    word: PublishWord,
    log: &Log,
    clear_at: Timestamp,
) -> bool {
    set_period(region, block, log, clear_at);
    let ring = Ring::of(region, block);
    let (head, length) = (word.head(), word.length());
    let Some(first) = log.entry(0) else {
        return ring.get(ring.base(head))[1] == log.forgotten() && push(&ring, word, head, 0, log);
    };
    let Some(left) = (0..length).find(|left| ring.get(ring.behind(head, *left))[0] >= first[0]) else {
        // No old entry is left: the last one is the base of the new ones.
        let last = ring.behind(head, length);
        return ring.get(ring.base(last))[1] == log.forgotten() && push(&ring, word, last, 0, log);
    };
    let (kept, new_head) = (length - left, ring.behind(head, left));
    if ring.get(ring.base(new_head))[1] != log.forgotten() {
        return false;
    }
    let kept = kept.min(log.len());
    let newest = ring.behind(new_head, kept - 1);
    match log.entry(kept - 1) {
        Some(entry) if entry == ring.get(newest) => push(&ring, word, new_head, kept, log),
        // More units at the instant of the newest entry are one changed word.
        Some([time, total]) if left == 0 && log.len() == length && ring.get(newest)[0] == time => {
            let is_same_before =
                kept < 2 || log.entry(kept - 2) == Some(ring.get(ring.behind(new_head, kept - 2)));
            if is_same_before {
                region.publish(ring.start + newest * ENTRY + 1, total);
            }
            is_same_before
        }
        _ => false,
    }
}

/// Writes the entries of a log after those that are kept, and publishes them. Returns false if the ring has too few
/// free entries; the caller then rewrites the whole log.
#[inline]
fn push(ring: &Ring<'_>, word: PublishWord, head: usize, kept: usize, log: &Log) -> bool {
    // The entries in force and their base must stay unchanged until the new entries are published.
    if word.length() + (log.len() - kept) + 1 > ring.entries {
        return false;
    }
    for index in kept..log.len() {
        if let Some(entry) = log.entry(index) {
            ring.set(ring.behind(head, index), entry);
        }
    }
    let next = word.with(0, head, log.len());
    if next != word {
        ring.region.publish(ring.block.start() + PUBLISH, next.0);
    }
    true
}

/// Returns the words of the log and its clear time; `None` if they are invalid. A head or a length outside of the ring
/// is invalid. The clear time is that of the newest entry, plus the period.
pub(super) fn read(region: &Region, block: Block, word: PublishWord) -> Option<(Vec<u64>, Timestamp)> {
    let ring = Ring::of(region, block);
    let (head, length) = (word.head(), word.length());
    if head >= ring.entries || length + 1 > ring.entries || word.half() != 0 {
        return None;
    }
    let entries = (0..length).flat_map(|index| ring.get(ring.behind(head, index)));
    let words: Vec<_> = std::iter::once(ring.get(ring.base(head))[1]).chain(entries).collect();
    let newest = words.len().checked_sub(2).filter(|_| length > 0).map(|at| Timestamp::from_ticks(words[at]));
    let period = Ticks::new(region.get(block.body()));
    Some((words, newest.map_or(Timestamp::EPOCH, |newest| newest.saturating_add(period))))
}
