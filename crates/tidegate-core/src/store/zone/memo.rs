//! A per-thread cache of recently hashed keys.
//!
//! Under load the same few keys recur: one hot key, or one that stands for all requests. A thread caches some short
//! keys that it has hashed lately, with their buckets. A comparison costs a tenth of a hash, which is the loss on a
//! cache miss.
//!
//! Entries are never invalidated. A key under one limit in one zone always has the same buckets, because the number of
//! buckets and the seed of a zone do not change.

use std::cell::Cell;

use super::sip::short_word;
use super::table::BucketPair;

/// The longest key that is cached: two words, which overlap.
pub(super) const LONGEST: usize = 16;
/// The number of keys that a thread caches: a power of two, and few enough for the L1 cache.
const NAMES: usize = 64;
/// The multiplier that spreads keys over the cache. It needs no protection against attackers: a miss costs one hash.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// The cache of this thread: 3.5 KiB, direct-mapped.
    static RECENT: [Memo; NAMES] = const { [const { Memo::none() }; NAMES] };
}

/// A cached key and its buckets. Each part is a cell of its own, so that a comparison reads no more than it needs.
#[derive(Debug)]
struct Memo {
    /// The limit under which the key was hashed.
    owner: Cell<Owner>,
    /// The key itself, for an exact comparison.
    name: Cell<ShortName>,
    /// The result of the hash.
    spot: Cell<BucketPair>,
}

impl Memo {
    /// Returns an empty entry, which no key matches, because its length is 0.
    const fn none() -> Memo {
        Memo {
            owner: Cell::new(Owner(u64::MAX)),
            name: Cell::new(ShortName { first: 0, last: 0, length: 0 }),
            spot: Cell::new(BucketPair::NOWHERE),
        }
    }
}

/// The owner of cached keys: one limit in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u64);

impl Owner {
    /// Returns the owner of keys of one part, under a limit that has this hash: the same for a limit that is prepared
    /// twice.
    #[inline(always)]
    pub(super) fn of_parts(limit: [u64; 2]) -> Owner {
        Owner(limit[0])
    }

    /// Returns the owner of encoded keys: the same bytes may be another key as a part.
    #[inline(always)]
    pub(super) fn of_keys(limit: [u64; 2]) -> Owner {
        Owner(limit[1])
    }
}

/// All bytes of a short key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortName {
    first: u64,
    last: u64,
    length: usize,
}

impl ShortName {
    /// Returns `None` for an empty key and for one of more than [`LONGEST`] bytes. From eight bytes on both words
    /// overlap.
    #[inline(always)]
    pub(super) fn new(name: &[u8]) -> Option<ShortName> {
        let length = name.len();
        match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
            (Some(first), Some(last)) if length <= LONGEST => {
                Some(ShortName { first: u64::from_le_bytes(*first), last: u64::from_le_bytes(*last), length })
            }
            (None, _) if length > 0 => Some(ShortName { first: short_word(name), last: 0, length }),
            _ => None,
        }
    }
}

/// Returns the buckets of a key, from the cache or by hashing it.
#[inline(always)]
pub(super) fn spot_of(owner: Owner, name: ShortName, hash: impl FnOnce() -> BucketPair) -> BucketPair {
    remembered(owner, name).unwrap_or_else(|| {
        let spot = hash();
        remember(owner, name, spot);
        spot
    })
}

/// Returns the cached buckets of a key.
#[inline(always)]
fn remembered(owner: Owner, name: ShortName) -> Option<BucketPair> {
    // Not `with`, which the compiler does not inline.
    let recall = |recent: &[Memo; NAMES]| {
        let memo = &recent[place(owner, name)];
        if memo.owner.get() == owner && memo.name.get() == name { Some(memo.spot.get()) } else { None }
    };
    RECENT.try_with(recall).ok().flatten()
}

/// Caches the buckets of a key, in place of another key with the same index.
#[inline(always)]
fn remember(owner: Owner, name: ShortName, spot: BucketPair) {
    RECENT.with(|recent| {
        let memo = &recent[place(owner, name)];
        memo.owner.set(owner);
        memo.name.set(name);
        memo.spot.set(spot);
    });
}

/// Returns the index of a key in the cache.
#[inline(always)]
fn place(owner: Owner, name: ShortName) -> usize {
    let mixed = (name.first ^ name.last.rotate_left(29)).wrapping_add(owner.0).wrapping_mul(SPREAD);
    (mixed >> (u64::BITS - NAMES.trailing_zeros())) as usize
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn short_names_that_differ_in_one_byte_are_different() {
        let mut seen = HashSet::new();
        for length in 1..=LONGEST {
            let mut name = vec![7; length];
            for at in 0..length {
                for byte in [0, 1, 7, 255] {
                    name[at] = byte;
                    let short = ShortName::new(&name).expect("it is short");
                    seen.insert((short.first, short.last, short.length, name.clone()));
                }
                name[at] = 7;
            }
        }
        let words: HashSet<_> = seen.iter().map(|(first, last, length, _)| (first, last, length)).collect();
        assert_eq!(words.len(), seen.len());
        assert_eq!((ShortName::new(&[]), ShortName::new(&[0; LONGEST + 1])), (None, None));
    }
}
