//! One cell of a zone: sixteen bytes that are read and replaced as a whole.
//!
//! ```text
//!   127                    64 63                2 1 0
//!   |         word           |   fingerprint     |kind|
//! ```
//!
//! A cell is a 62-bit fingerprint, two kind bits and one 64-bit word. For token and leaky buckets the word is the
//! theoretical arrival time (TAT), the one number that the GCRA algorithm stores per key. For every algorithm the word,
//! read as a time, is an upper bound of the cell's expiry. No cleanup is needed: a cell whose time has passed is free.

use crate::time::{OUT_OF_ORDER, Timestamp};

/// The bits of a tag that hold the kind of the cell.
const KIND: u64 = 0b11;

/// The bits of ticks in one unit of a tentative cell's expiry. Such a cell is occupied for about a second, counted in
/// units of a quarter of a second. The bits below distinguish attempts.
const ATTEMPT_BITS: u32 = 32;
const TENTATIVE_UNITS: u64 = 4;

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) tag: u64,
    pub(super) word: u64,
}

/// The use of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The state of one key.
    Own = 0,
    /// The state of a key whose rule allows it to be forgotten when no cell is free.
    Forgettable = 1,
    /// The reservation of a new key; nothing is charged yet.
    Tentative = 2,
    /// An upper bound of the debt of all keys that have no cell of their own.
    Shared = 3,
}

/// The fingerprint of a key: 62 bits that are not all zero, above the bits of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint that no key has.
    pub(super) const NONE: Fingerprint = Fingerprint(0);

    #[inline]
    pub(super) fn new(hash: u64) -> Fingerprint {
        let bits = hash & !KIND;
        Fingerprint(if bits == 0 { KIND + 1 } else { bits })
    }
}

impl Content {
    /// A cell that was never used, or is no longer used.
    pub(super) const NOTHING: Content = Content { tag: 0, word: 0 };

    #[inline]
    pub(super) fn own(fingerprint: Fingerprint, kind: Kind, word: u64) -> Content {
        Content { tag: fingerprint.0 | kind as u64, word }
    }

    /// Returns a tentative cell of one attempt, distinct from those of other attempts.
    pub(super) fn tentative(fingerprint: Fingerprint, now: Timestamp, attempt: u32) -> Content {
        let until = (now.ticks() >> ATTEMPT_BITS).saturating_add(TENTATIVE_UNITS).min(u64::from(u32::MAX));
        Content::own(fingerprint, Kind::Tentative, (until << ATTEMPT_BITS) | u64::from(attempt))
    }

    /// Returns a shared cell, which holds the debt of all keys without a cell.
    pub(super) fn shared(word: u64) -> Content {
        Content { tag: Kind::Shared as u64, word }
    }

    #[inline]
    pub(super) fn with_word(self, word: u64) -> Content {
        Content { word, ..self }
    }

    /// Returns true if the cell belongs to this key: its state, or its tentative cell.
    #[inline]
    pub(super) fn is_of(self, fingerprint: Fingerprint) -> bool {
        self.tag ^ fingerprint.0 <= KIND
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        match self.tag & KIND {
            0 => Kind::Own,
            1 => Kind::Forgettable,
            2 => Kind::Tentative,
            _ => Kind::Shared,
        }
    }

    /// Returns true if the cell holds the state of a key.
    #[inline]
    pub(super) fn is_state(self) -> bool {
        matches!(self.kind(), Kind::Own | Kind::Forgettable)
    }

    pub(super) fn is_shared(self) -> bool {
        self.kind() == Kind::Shared
    }

    /// Returns the time at which the cell expires.
    #[inline]
    pub(super) fn clear_at(self) -> Timestamp {
        Timestamp::from_ticks(self.word)
    }

    /// Returns true if a new key may use the cell. The margin covers threads whose clock is ahead of others.
    #[inline]
    pub(super) fn is_free(self, now: Timestamp) -> bool {
        self == Content::NOTHING || self.clear_at().saturating_add(OUT_OF_ORDER) <= now
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::time::{SECOND, Ticks};

    #[test]
    fn a_tag_tells_subjects_apart_and_kinds() {
        let ana = Fingerprint::new(0x1234);
        for kind in [Kind::Own, Kind::Forgettable, Kind::Tentative] {
            let content = Content::own(ana, kind, 7);
            assert!(content.is_of(ana) && !content.is_of(Fingerprint::new(0x1238)));
            assert_eq!(content.kind(), kind);
            assert_eq!(content.is_state(), kind != Kind::Tentative);
        }
    }

    #[test]
    fn no_key_has_the_fingerprint_of_an_empty_or_a_shared_cell() {
        for hash in 0..16 {
            let fingerprint = Fingerprint::new(hash);
            assert!(!Content::NOTHING.is_of(fingerprint), "{hash}");
            assert!(!Content::shared(5).is_of(fingerprint), "{hash}");
        }
    }

    #[test]
    fn a_cell_is_free_once_nobodys_clock_can_be_before_its_time() {
        let content = Content::own(Fingerprint::new(8), Kind::Own, 1000);
        let last = Timestamp::from_ticks(999).saturating_add(OUT_OF_ORDER);
        assert!(!content.is_free(last));
        assert!(content.is_free(last.saturating_add(Ticks::new(1))));
        assert!(Content::NOTHING.is_free(Timestamp::EPOCH));
    }

    #[test]
    fn a_claim_that_is_not_confirmed_is_free_after_about_a_second() {
        for ticks in [0, 1 << 40, u64::MAX / 2] {
            let now = Timestamp::from_ticks(ticks);
            let tentative = Content::tentative(Fingerprint::new(8), now, u32::MAX);
            assert_eq!(tentative.kind(), Kind::Tentative);
            let after = |span| now.saturating_add(Ticks::saturating_from(span));
            assert!(!tentative.is_free(after(SECOND / 2)));
            assert!(tentative.is_free(after(2 * SECOND)));
            assert_ne!(tentative, Content::tentative(Fingerprint::new(8), now, 3));
        }
        let last = Content::tentative(Fingerprint::new(8), Timestamp::LAST, 0);
        assert_eq!(last.kind(), Kind::Tentative);
    }
}
