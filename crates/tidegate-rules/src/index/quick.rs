//! A hash map for keys from the policy file.
//!
//! Values from requests are only looked up, never inserted. So a client cannot fill a bucket, and a fast hash without a
//! secret is sufficient. It needs a few instructions per eight bytes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with keys from a policy.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// A hasher that multiplies each eight bytes into the state and folds the halves of the product together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick(u64);

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xd1b5_4a32_d192_ed03;

impl Quick {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ FIRST) * u128::from(SECOND);
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for Quick {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            // A copy with a length that is not a constant would be a function call.
            self.mix(bytes.last_chunk().map_or_else(|| short_word(rest), |last| u64::from_le_bytes(*last)));
        }
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.mix(u64::from(number));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns up to seven bytes as a word.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    fn hash(bytes: &[u8]) -> u64 {
        BuildHasherDefault::<Quick>::default().hash_one(bytes)
    }

    #[test]
    fn names_that_differ_in_a_digit_are_spread_over_a_table() {
        let all: Vec<_> = (0..4096).map(|number| hash(format!("tenant{number:05}").as_bytes())).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        // Balls thrown at random into as many boxes leave about 0.37 of them empty. A hash map uses the lowest bits for
        // the position and the highest for the tag.
        let low: HashSet<_> = all.iter().map(|hash| hash % 4096).collect();
        assert!(low.len() > 2300, "{}", low.len());
        let high: HashSet<_> = all.iter().map(|hash| hash >> 57).collect();
        assert_eq!(high.len(), 128);
    }

    #[test]
    fn a_length_is_part_of_what_is_hashed() {
        assert_ne!(hash(b"a"), hash(b"a\0"));
        assert_ne!(hash(b""), hash(b"\0"));
    }
}
