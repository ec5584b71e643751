//! What names a state in a store: the algorithm, the namespace and the key, one behind the other.
//!
//! ```text
//!   0   4 u s e r   3 a n a
//!   |   namespace   key, part by part
//!   algorithm, and the namespace's circle
//! ```
//!
//! Each part has its length before it, so different names never share their bytes.

use crate::algorithm::Algorithm;
use crate::key::{IntoKey, encode};
use crate::limit::Terms;
use crate::store::WhenFull;

/// Names up to this length need no allocation while they are written.
const SHORT: usize = 64;

/// Room in the first byte for the number of an algorithm.
const ALGORITHMS: usize = 8;

/// How many circles of namespaces there are; see [`Namespace::circle`].
pub(crate) const CIRCLES: usize = 32;

/// Whose state it is: a subject of a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    short: [u8; SHORT],
    length: usize,
    /// All of it, once it is longer than `short`.
    long: Vec<u8>,
    key_at: usize,
}

impl Name {
    #[inline]
    pub(crate) fn new(namespace: &Namespace, key: &(impl IntoKey + ?Sized)) -> Name {
        let mut name = Name { short: [0; SHORT], length: 0, long: Vec::new(), key_at: 0 };
        name.write(&namespace.bytes);
        name.key_at = name.length;
        key.each_part(&mut |part| encode(part, |piece| name.write(piece)));
        name
    }

    /// The state of this subject under a limit.
    #[inline]
    pub(crate) fn under(mut self, terms: Terms) -> Account {
        let first = if self.long.is_empty() { &mut self.short[0] } else { &mut self.long[0] };
        *first = under(*first, terms.algorithm());
        Account { name: self, terms, when_full: WhenFull::Share }
    }

    /// The key alone.
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes()[self.key_at..]
    }

    /// Where the key begins.
    pub(crate) fn key_at(&self) -> usize {
        self.key_at
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.length] } else { &self.long }
    }

    #[inline]
    fn write(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        if self.long.is_empty() && end <= SHORT {
            self.short[self.length..end].copy_from_slice(piece);
        } else {
            if self.long.is_empty() {
                self.long.extend_from_slice(&self.short[..self.length]);
            }
            self.long.extend_from_slice(piece);
        }
        self.length = end;
    }
}

/// A state's name and the limit to decide it by, which always speak of the same algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    name: Name,
    terms: Terms,
    when_full: WhenFull,
}

impl Account {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.name.bytes()
    }

    #[inline]
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn fate_when_full(&self) -> WhenFull {
        self.when_full
    }

    #[inline]
    pub(crate) fn when_full(self, when_full: WhenFull) -> Account {
        Account { when_full, ..self }
    }

    /// The bytes under which each algorithm keeps a state of this subject.
    pub(crate) fn bytes_of_all(&self) -> impl Iterator<Item = Vec<u8>> {
        Algorithm::ALL.into_iter().map(|algorithm| {
            let mut bytes = self.bytes().to_vec();
            bytes[0] = under(bytes[0], algorithm);
            bytes
        })
    }
}

/// The bytes of a name as they are kept. Short ones lie within: a million small allocations that come and go are
/// more work for an allocator than all the rest.
#[derive(Debug)]
pub(crate) enum StoredName {
    Short { length: u8, bytes: [u8; StoredName::SHORT] },
    Long(Box<[u8]>),
}

impl StoredName {
    /// With its length and what tells it from a long one, four words.
    const SHORT: usize = 30;
    /// What the allocator needs beside the bytes of a long name.
    const ALLOCATION: usize = 16;

    pub(crate) fn new(name: &[u8]) -> StoredName {
        let mut bytes = [0; StoredName::SHORT];
        match bytes.get_mut(..name.len()) {
            Some(short) => {
                short.copy_from_slice(name);
                StoredName::Short { length: name.len() as u8, bytes }
            }
            None => StoredName::Long(name.into()),
        }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            StoredName::Short { length, bytes } => &bytes[..usize::from(*length)],
            StoredName::Long(bytes) => bytes,
        }
    }

    /// The memory behind it, in bytes.
    pub(crate) fn bytes_held(&self) -> usize {
        match self {
            StoredName::Short { .. } => 0,
            StoredName::Long(bytes) => bytes.len() + StoredName::ALLOCATION,
        }
    }
}

/// Which circle a name's namespace belongs to.
pub(crate) fn circle(name: &[u8]) -> usize {
    usize::from(name[0]) / ALGORITHMS
}

/// The first byte of a name with this algorithm in it.
#[inline]
fn under(first: u8, algorithm: Algorithm) -> u8 {
    first / ALGORITHMS as u8 * ALGORITHMS as u8 + algorithm as u8
}

/// The name of a limit among those that share a store, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    /// The first byte, with room for the algorithm, and the length and bytes of the name.
    bytes: Box<[u8]>,
    /// A number below [`CIRCLES`] for things that are noted per namespace and may be noted together.
    circle: u8,
}

impl Namespace {
    /// What needs no namespace, because nobody else is there.
    pub(crate) fn none() -> Namespace {
        Namespace { bytes: Box::new([0]), circle: 0 }
    }

    pub(crate) fn new(name: &str) -> Namespace {
        let mut bytes = Vec::with_capacity(name.len() + 2);
        let sum = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let circle = (sum % CIRCLES as u32) as u8;
        bytes.push(circle * ALGORITHMS as u8);
        encode(name.as_bytes(), |piece| bytes.extend_from_slice(piece));
        Namespace { bytes: bytes.into_boxed_slice(), circle }
    }

    pub(crate) fn circle(&self) -> usize {
        self.circle.into()
    }

    /// The bytes with which the names of all its states under an algorithm begin.
    pub(crate) fn prefix(&self, algorithm: Algorithm) -> Box<[u8]> {
        let mut bytes = self.bytes.clone();
        bytes[0] = under(bytes[0], algorithm);
        bytes
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Key, Limit};

    fn bytes(namespace: &str, limit: &str, key: &Key) -> Vec<u8> {
        let terms = *limit.parse::<Limit>().expect("a limit").terms();
        Name::new(&Namespace::new(namespace), key).under(terms).bytes().to_vec()
    }

    #[test]
    fn namespace_algorithm_and_key_each_tell_names_apart() {
        let ana = Key::new("ana");
        let name = bytes("user", "1/s", &ana);
        assert_eq!(name[1..], *b"\x04user\x03ana");
        assert_eq!(circle(&name), Namespace::new("user").circle());
        assert_ne!(name, bytes("user", "1/s sliding-log", &ana));
        assert_ne!(name, bytes("use", "1/s", &Key::new("rana")));
        assert_ne!(bytes("", "1/s", &Key::new(("", ""))), bytes("", "1/s", &Key::new("")));
    }

    #[test]
    fn a_name_is_kept_as_it_is_and_a_short_one_within_four_words() {
        assert_eq!(size_of::<StoredName>(), 32);
        for length in 0..100 {
            let name: Vec<u8> = (0..length).collect();
            let stored = StoredName::new(&name);
            assert_eq!(stored.as_bytes(), name);
            assert_eq!(stored.bytes_held(), if length <= 30 { 0 } else { usize::from(length) + 16 });
        }
    }

    #[test]
    fn a_name_is_the_same_however_long_it_is() {
        let namespace = Namespace::new("n");
        for length in (0..SHORT + 10).chain([1000]) {
            let text = "k".repeat(length);
            let key = Key::new((&text, "end"));
            let name = Name::new(&namespace, &(&text, "end"));
            assert_eq!(name.key(), key.as_bytes());
            for limit in [Limit::per_second(1), Limit::sliding_log(1, crate::SECOND)] {
                let account = name.clone().under(*limit.terms());
                let first = namespace.circle * 8 + limit.algorithm() as u8;
                assert_eq!(account.bytes(), [&[first], &b"\x01n"[..], key.as_bytes()].concat());
                assert_eq!(account.bytes_of_all().filter(|bytes| bytes == account.bytes()).count(), 1);
            }
        }
    }
}
