//! What names a state in a store: the namespace, the algorithm and the key, one behind the other.
//!
//! ```text
//!   4 u s e r   0   3 a n a
//!   namespace   |   key, part by part
//!           algorithm
//! ```
//!
//! Each part has its length before it, so different names never share their bytes.

use crate::algorithm::Algorithm;
use crate::key::{IntoKey, encode};

/// Names up to this length need no allocation.
const SHORT: usize = 96;

/// The bytes under which a state is kept.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    short: [u8; SHORT],
    length: usize,
    /// All of it, once it is longer than `short`.
    long: Vec<u8>,
    /// Where the algorithm stands.
    algorithm_at: usize,
}

impl Name {
    #[inline]
    pub(crate) fn new(namespace: &Namespace, algorithm: Algorithm, key: &(impl IntoKey + ?Sized)) -> Name {
        let mut name =
            Name { short: [0; SHORT], length: 0, long: Vec::new(), algorithm_at: namespace.0.len() };
        name.write(&namespace.0);
        name.write(&[algorithm as u8]);
        key.each_part(&mut |part| encode(part, |piece| name.write(piece)));
        name
    }

    /// The same subject's name under another algorithm.
    pub(crate) fn under(&self, algorithm: Algorithm) -> Name {
        let mut name = self.clone();
        let bytes = if name.long.is_empty() { &mut name.short[..] } else { &mut name.long[..] };
        bytes[name.algorithm_at] = algorithm as u8;
        name
    }

    /// The key alone.
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes()[self.algorithm_at + 1..]
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

/// The name of a limit among those that share a store, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Box<[u8]>);

impl Namespace {
    pub(crate) fn new(name: &str) -> Namespace {
        let mut bytes = Vec::with_capacity(name.len() + 2);
        encode(name.as_bytes(), |piece| bytes.extend_from_slice(piece));
        Namespace(bytes.into_boxed_slice())
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::Key;

    fn name(namespace: &str, algorithm: Algorithm, key: &Key) -> Vec<u8> {
        Name::new(&Namespace::new(namespace), algorithm, key).bytes().to_vec()
    }

    #[test]
    fn namespace_algorithm_and_key_each_tell_names_apart() {
        use Algorithm::{SlidingLog, TokenBucket};
        let ana = Key::new("ana");
        assert_eq!(name("user", TokenBucket, &ana), b"\x04user\x00\x03ana");
        assert_ne!(name("user", TokenBucket, &ana), name("user", SlidingLog, &ana));
        assert_ne!(name("user", TokenBucket, &ana), name("use", TokenBucket, &Key::new("rana")));
        assert_ne!(name("", TokenBucket, &Key::new(("", ""))), name("", TokenBucket, &Key::new("")));
    }

    #[test]
    fn a_name_is_the_same_however_long_it_is() {
        for length in (0..SHORT + 10).chain([1000]) {
            let text = "k".repeat(length);
            let key = Key::new((&text, "end"));
            let expected = [b"\x01n\x03", key.as_bytes()].concat();
            let name = Name::new(&Namespace::new("n"), Algorithm::SlidingLog, &(&text, "end"));
            assert_eq!(name.bytes(), expected);
            let other = [b"\x01n\x00", key.as_bytes()].concat();
            assert_eq!(name.under(Algorithm::TokenBucket).bytes(), other);
        }
    }
}
