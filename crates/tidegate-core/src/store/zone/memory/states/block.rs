//! A block of a state file, and the words that every block starts with.
//!
//! ```text
//!   word  0  publish word; zero if the block is free or not yet valid
//!         1  class, algorithm and length of the name
//!         2  digest of the limit
//!         3  name, padded to whole words
//!         …  body, as its layout says
//! ```

use std::num::NonZeroU32;

use crate::algorithm::Algorithm;

/// The words of the smallest block, a cache line.
pub(super) const UNIT_WORDS: usize = 8;
/// The words before the name.
pub(super) const HEAD_WORDS: usize = 3;
/// The indices of the first words of a block.
pub(super) const PUBLISH: usize = 0;
pub(super) const META: usize = 1;
pub(super) const DIGEST: usize = 2;

/// The number of block classes. A block has 64 bytes times two to the power of its class. The largest class is that of
/// 128 GiB.
pub(super) const CLASSES: usize = 32;

/// The block of a state, as the map beside the zone stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its first unit, plus one.
    unit: NonZeroU32,
    /// Its class.
    class: u8,
    layout: Layout,
    /// The words before the body.
    body: u16,
}

impl Block {
    /// Creates a block. Returns `None` if the name is longer than a block can record.
    pub(super) fn new(unit: u32, class: u8, algorithm: Algorithm, name_bytes: usize) -> Option<Block> {
        let body = u16::try_from(HEAD_WORDS + name_words(name_bytes)).ok()?;
        let unit = NonZeroU32::new(unit.checked_add(1)?)?;
        Some(Block { unit, class, layout: Layout::of(algorithm), body })
    }

    pub(super) fn unit(self) -> u32 {
        self.unit.get() - 1
    }

    pub(super) fn class(self) -> u8 {
        self.class
    }

    #[inline]
    pub(super) fn layout(self) -> Layout {
        self.layout
    }

    /// Returns the index of its first word.
    #[inline]
    pub(super) fn start(self) -> usize {
        self.unit() as usize * UNIT_WORDS
    }

    /// Returns the index of the first word of its body.
    #[inline]
    pub(super) fn body(self) -> usize {
        self.start() + usize::from(self.body)
    }

    /// Returns the number of words of its body.
    #[inline]
    pub(super) fn body_words(self) -> usize {
        class_words(self.class) - usize::from(self.body)
    }
}

/// The layout of a block's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Layout {
    /// Two copies, of which one is in force.
    Halves,
    /// The consecutive entries of a log.
    Ring,
    /// Permit holders, each in a place of its own.
    Table,
}

impl Layout {
    pub(super) fn of(algorithm: Algorithm) -> Layout {
        match algorithm {
            Algorithm::SlidingLog => Layout::Ring,
            Algorithm::Concurrency => Layout::Table,
            _ => Layout::Halves,
        }
    }

    /// Returns the words of a body that holds a state of `words` words.
    pub(super) fn body_words(self, words: usize) -> usize {
        match self {
            Layout::Halves => super::halves::body_words(words),
            Layout::Ring => super::ring::body_words(words),
            Layout::Table => super::table::body_words(words),
        }
    }
}

/// Returns the words of a name of `bytes` bytes.
pub(super) const fn name_words(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>())
}

/// Returns the words of a block of a class.
pub(super) const fn class_words(class: u8) -> usize {
    UNIT_WORDS << class
}

/// Returns the smallest class with at least `words` words, if there is one.
pub(super) fn class_of(words: usize) -> Option<u8> {
    let units = words.div_ceil(UNIT_WORDS).checked_next_power_of_two()?;
    let class = units.trailing_zeros();
    u8::try_from(class).ok().filter(|class| usize::from(*class) < CLASSES)
}

/// The word that records whether a block is valid, and which part of its body is in force.
///
/// ```text
///   bit 0  valid    1…7  sequence    8  half    9…32  head    33…56  length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublishWord(pub(super) u64);

/// The upper bound, exclusive, of heads and lengths.
const MOST: u64 = 1 << 24;

impl PublishWord {
    const HALF: u32 = 8;
    const HEAD: u32 = 9;
    const LENGTH: u32 = 33;
    const SEQUENCE: u64 = 0x7f;

    pub(super) fn new(sequence: u64, half: u64, head: usize, length: usize) -> PublishWord {
        let (head, length) = (head as u64, length as u64);
        assert!(half < 2 && head < MOST && length < MOST, "no body is as large as that");
        let sequence = (sequence & PublishWord::SEQUENCE) << 1;
        PublishWord(
            1 | sequence
                | half << PublishWord::HALF
                | head << PublishWord::HEAD
                | length << PublishWord::LENGTH,
        )
    }

    #[inline]
    pub(super) fn is_valid(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns the number of blocks that a name has had, modulo 128.
    #[inline]
    pub(super) fn sequence(self) -> u64 {
        self.0 >> 1 & PublishWord::SEQUENCE
    }

    #[inline]
    pub(super) fn half(self) -> u64 {
        self.0 >> PublishWord::HALF & 1
    }

    #[inline]
    pub(super) fn head(self) -> usize {
        (self.0 >> PublishWord::HEAD & (MOST - 1)) as usize
    }

    #[inline]
    pub(super) fn length(self) -> usize {
        (self.0 >> PublishWord::LENGTH & (MOST - 1)) as usize
    }

    /// Returns the word of the same block with another part of its body in force.
    #[inline]
    pub(super) fn with(self, half: u64, head: usize, length: usize) -> PublishWord {
        PublishWord::new(self.sequence(), half, head, length)
    }

    /// Returns true if this is a later block of a name than another one. Two blocks of a name are at most two apart.
    pub(super) fn is_later_than(self, other: PublishWord) -> bool {
        let ahead = self.sequence().wrapping_sub(other.sequence()) & PublishWord::SEQUENCE;
        (1..=PublishWord::SEQUENCE / 2).contains(&ahead)
    }

    /// Returns true if the word is valid and has no other bits than those of its fields.
    pub(super) fn is_canonical(self) -> bool {
        self == PublishWord::new(self.sequence(), self.half(), self.head(), self.length())
    }
}

/// The class, the algorithm and the length of the name, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) class: u8,
    pub(super) algorithm: u8,
    pub(super) name_bytes: u32,
}

impl Meta {
    /// Returns the word of a free block, which has only a class.
    pub(super) fn free(class: u8) -> Meta {
        Meta { class, algorithm: 0, name_bytes: 0 }
    }

    pub(super) fn encode(self) -> u64 {
        u64::from(self.class + 1) | u64::from(self.algorithm) << 8 | u64::from(self.name_bytes) << 32
    }

    /// Decodes the word. Returns `None` if it was never written, or is invalid.
    pub(super) fn decode(word: u64) -> Option<Meta> {
        let class = (word as u8).checked_sub(1).filter(|class| usize::from(*class) < CLASSES)?;
        let meta = Meta { class, algorithm: (word >> 8) as u8, name_bytes: (word >> 32) as u32 };
        (meta.encode() == word).then_some(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_two_words_in_an_entry() {
        assert_eq!(size_of::<Option<Block>>(), 8);
        let block = Block::new(7, 2, Algorithm::SlidingLog, 9).unwrap();
        assert_eq!((block.unit(), block.class(), block.layout()), (7, 2, Layout::Ring));
        assert_eq!((block.start(), block.body(), block.body_words()), (56, 61, 27));
        assert_eq!(Block::new(u32::MAX, 0, Algorithm::Pacer, 1), None);
        assert_eq!(Block::new(0, 0, Algorithm::Pacer, 1 << 20), None);
    }

    #[test]
    fn the_publish_word_says_what_was_put_into_it() {
        for (sequence, half, head, length) in
            [(0, 0, 0, 0), (127, 1, (1 << 24) - 1, (1 << 24) - 1), (5, 1, 3, 9)]
        {
            let word = PublishWord::new(sequence, half, head, length);
            assert!(word.is_valid() && word.is_canonical());
            assert_eq!(
                (word.sequence(), word.half(), word.head(), word.length()),
                (sequence, half, head, length)
            );
        }
        assert!(!PublishWord(0).is_valid());
        assert!(!PublishWord(1 << 63 | 1).is_canonical());
    }

    #[test]
    fn the_later_of_two_blocks_is_known_also_when_the_sequence_begins_anew() {
        let of = |sequence| PublishWord::new(sequence, 0, 0, 0);
        for sequence in 0..128 {
            for ahead in 1..3 {
                assert!(of(sequence + ahead).is_later_than(of(sequence)));
                assert!(!of(sequence).is_later_than(of(sequence + ahead)));
            }
            assert!(!of(sequence).is_later_than(of(sequence)));
        }
    }

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!([1, 8, 9, 16, 17].map(class_of), [Some(0), Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!(class_of(usize::MAX), None);
        assert_eq!(class_words(3), 64);
        for class in 0..CLASSES as u8 {
            assert_eq!(Meta::decode(Meta::free(class).encode()), Some(Meta::free(class)));
        }
        assert_eq!(Meta::decode(0), None);
        assert_eq!(Meta::decode(33), None);
        assert_eq!(Meta::decode(1 | 1 << 20), None);
    }
}
