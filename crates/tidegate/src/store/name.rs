//! What names a state in a store: the namespace and the key, one behind the other, and the limit.
//!
//! ```text
//!   4 u s e r   3 a n a   |  the algorithm and its numbers, as a digest
//!   namespace   key, part by part
//! ```
//!
//! Each part has its length before it, so different names never share their bytes.

use std::sync::Arc;

use super::bound::BoundLimit;
use crate::key::{IntoKey, encode};
use crate::limit::Terms;
use crate::store::WhenFull;

/// Names up to this length need no allocation while they are written.
const SHORT: usize = 64;

/// A key of a namespace.
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

    /// The state of this key under a limit of a store.
    #[inline]
    pub(crate) fn under(self, limit: Arc<BoundLimit>) -> Account {
        Account { name: self, terms: *limit.terms(), limit: Some(limit), when_full: WhenFull::Share }
    }

    /// The same where a key has one state whatever the limit.
    pub(crate) fn under_any(self, terms: Terms) -> Account {
        Account { name: self, terms, limit: None, when_full: WhenFull::Share }
    }

    /// The key alone.
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes()[self.key_at..]
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
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

/// A state's name and the limit that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    name: Name,
    terms: Terms,
    /// The limit in its store; none where a key has one state whatever the limit.
    limit: Option<Arc<BoundLimit>>,
    when_full: WhenFull,
}

impl Account {
    #[inline]
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// The limit in its store.
    #[inline]
    pub(crate) fn limit(&self) -> &Arc<BoundLimit> {
        self.limit.as_ref().expect("a store has bound the limits of its accounts")
    }

    /// The digest that names the limit beside the bytes of the name.
    #[inline]
    pub(crate) fn digest(&self) -> u64 {
        self.limit.as_ref().map_or(0, |limit| limit.name().digest)
    }

    /// Returns true if both name one state.
    pub(crate) fn is_same_state(&self, other: &Account) -> bool {
        self.digest() == other.digest() && self.name.bytes() == other.name.bytes()
    }

    pub(crate) fn fate_when_full(&self) -> WhenFull {
        self.when_full
    }

    #[inline]
    pub(crate) fn when_full(self, when_full: WhenFull) -> Account {
        Account { when_full, ..self }
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

/// The name of a limit among those that share a store, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    name: Box<str>,
    /// The length and the bytes of the name.
    bytes: Box<[u8]>,
}

impl Namespace {
    /// The namespace of a handle that is alone.
    pub(crate) fn none() -> Namespace {
        Namespace { name: Box::default(), bytes: Box::default() }
    }

    pub(crate) fn new(name: &str) -> Namespace {
        let mut bytes = Vec::with_capacity(name.len() + 2);
        encode(name.as_bytes(), |piece| bytes.extend_from_slice(piece));
        Namespace { name: name.into(), bytes: bytes.into_boxed_slice() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn namespace_and_key_each_tell_names_apart() {
        let name = |namespace: &str, key: &Key| Name::new(&Namespace::new(namespace), key).bytes().to_vec();
        let ana = Key::new("ana");
        assert_eq!(name("user", &ana), *b"\x04user\x03ana");
        assert_ne!(name("user", &ana), name("use", &Key::new("rana")));
        assert_ne!(name("", &Key::new(("", ""))), name("", &Key::new("")));
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
            assert_eq!(name.bytes(), [b"\x01n", key.as_bytes()].concat());
        }
    }
}
