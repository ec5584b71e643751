//! The name of a state in a store: the namespace and the key, concatenated, and the limit.
//!
//! ```text
//!   4 u s e r   3 a n a   |  the algorithm and its numbers, as a digest
//!   namespace   key, part by part
//! ```
//!
//! Each part is preceded by its length, so different names never have the same bytes.
//!
//! A limiter encodes a key once, as an [`EncodedKey`]. Together with the limit in force it is a [`StateKey`], which
//! names one state in one store.

use std::cell::Cell;
use std::sync::Arc;

use super::bound::BoundLimit;
use crate::key::{IntoKey, Key, encode};
use crate::limit::AlgorithmParams;
use crate::small_bytes::{ByteWriter, SmallBytes};
use crate::store::WhenFull;

/// The longest name that is encoded without an allocation.
const SHORT: usize = 64;

/// The encoded name of a key in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct EncodedKey {
    bytes: ByteWriter<SHORT>,
    key_at: usize,
}

impl EncodedKey {
    #[inline]
    pub(crate) fn new(namespace: &Namespace, key: &(impl IntoKey + ?Sized)) -> EncodedKey {
        let mut bytes = ByteWriter::new();
        bytes.write(&namespace.bytes);
        let key_at = bytes.len();
        key.each_part(&mut |part| encode(part, |piece| bytes.write(piece)));
        EncodedKey { bytes, key_at }
    }

    /// Returns the name of a key that is already encoded.
    #[inline]
    pub(crate) fn of_key(namespace: &Namespace, key: &Key) -> EncodedKey {
        let mut bytes = ByteWriter::new();
        bytes.write(&namespace.bytes);
        let key_at = bytes.len();
        bytes.write(key.as_bytes());
        EncodedKey { bytes, key_at }
    }

    /// Returns the state of this key under a limit of a store.
    #[inline]
    pub(crate) fn under(self, limit: Arc<BoundLimit>) -> StateKey {
        let terms = *limit.terms();
        StateKey { limit: Some(limit), ..self.under_any(terms) }
    }

    /// Returns the state of this key where a key has one state whatever the limit.
    pub(crate) fn under_any(self, terms: AlgorithmParams) -> StateKey {
        StateKey { name: self, terms, limit: None, when_full: WhenFull::Share, hash: Cell::new(None) }
    }

    /// Returns the key without the namespace.
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes()[self.key_at..]
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

/// The name of a state and the limit that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct StateKey {
    name: EncodedKey,
    terms: AlgorithmParams,
    /// The limit in its store; `None` where a key has one state whatever the limit.
    limit: Option<Arc<BoundLimit>>,
    when_full: WhenFull,
    /// The cached hash of the key under this limit, once a zone has requested it.
    hash: Cell<Option<[u64; 2]>>,
}

impl StateKey {
    /// Returns the hash of the key under its limit, computed once.
    #[inline]
    pub(crate) fn hash(&self) -> [u64; 2] {
        self.hash.get().unwrap_or_else(|| {
            let hash = self.limit().name().prefix.hash_encoded(self.name.key());
            self.hash.set(Some(hash));
            hash
        })
    }

    #[inline]
    pub(crate) fn terms(&self) -> &AlgorithmParams {
        &self.terms
    }

    pub(crate) fn name(&self) -> &EncodedKey {
        &self.name
    }

    /// Returns the limit in its store.
    #[inline]
    pub(crate) fn limit(&self) -> &Arc<BoundLimit> {
        self.limit.as_ref().expect("a store has bound the limits of its accounts")
    }

    /// Returns the digest that identifies the limit beside the bytes of the name.
    #[inline]
    pub(crate) fn digest(&self) -> u64 {
        self.limit.as_ref().map_or(0, |limit| limit.name().digest)
    }

    /// Returns true if both are the name of one state.
    pub(crate) fn is_same_state(&self, other: &StateKey) -> bool {
        self.digest() == other.digest() && self.name.bytes() == other.name.bytes()
    }

    /// Returns the policy for a zone that has no cell for the key.
    pub(crate) fn fate_when_full(&self) -> WhenFull {
        self.when_full
    }

    /// Sets the policy for a zone that has no cell for the key.
    #[inline]
    pub(crate) fn when_full(self, when_full: WhenFull) -> StateKey {
        StateKey { when_full, ..self }
    }
}

/// The bytes of a stored name: with their length, four words.
pub(crate) type StoredName = SmallBytes<30>;

/// The encoded name of a limit among those that share a store.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    name: Box<str>,
    /// The length and the bytes of the name.
    bytes: Box<[u8]>,
}

impl Namespace {
    /// Returns the empty namespace, for a handle with its own state.
    pub(crate) fn none() -> Namespace {
        Namespace { name: Box::default(), bytes: Box::default() }
    }

    /// Encodes a name. Two different names never have the same bytes, and none is a prefix of another.
    pub(crate) fn new(name: &str) -> Namespace {
        let mut bytes = Vec::with_capacity(name.len() + 2);
        encode(name.as_bytes(), |piece| bytes.extend_from_slice(piece));
        Namespace { name: name.into(), bytes: bytes.into_boxed_slice() }
    }

    /// Returns the name as it was given.
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

    #[test]
    fn namespace_and_key_each_tell_names_apart() {
        let name =
            |namespace: &str, key: &Key| EncodedKey::new(&Namespace::new(namespace), key).bytes().to_vec();
        let ana = Key::new("ana");
        assert_eq!(name("user", &ana), *b"\x04user\x03ana");
        assert_ne!(name("user", &ana), name("use", &Key::new("rana")));
        assert_ne!(name("", &Key::new(("", ""))), name("", &Key::new("")));
    }

    #[test]
    fn a_name_is_the_same_however_long_it_is() {
        let namespace = Namespace::new("n");
        for length in (0..SHORT + 10).chain([1000]) {
            let text = "k".repeat(length);
            let key = Key::new((&text, "end"));
            let name = EncodedKey::new(&namespace, &(&text, "end"));
            assert_eq!(name.key(), key.as_bytes());
            assert_eq!(name.bytes(), [b"\x01n", key.as_bytes()].concat());
            assert_eq!(EncodedKey::of_key(&namespace, &key).bytes(), name.bytes());
        }
    }
}
