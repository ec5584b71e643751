//! SipHash-1-3 with 128 bits, which yields the buckets and the fingerprint of a key in a zone.
//!
//! Keys come from outside, and an attacker that could choose colliding keys could fill their buckets. Under a secret
//! seed that is not possible. The first part of a name is the same for all keys of a limit: it is hashed once, and each
//! decision continues from there. The words of a name are read in place, without a copy. The function is part of the
//! format of a zone's file.
//!
//! ```text
//!   write: limit, namespace, padding to a word   once per bound limit, and the state is copied
//!   write: length, key bytes                     per decision, about one word per round
//!   finish: three rounds for each half           two words: buckets, fingerprint
//! ```
//!
//! It is `SipHash` with one round per word and three at the end, in its variant with two output words. The tests compare
//! it with the `siphasher` crate.

use crate::key::encode;

/// The hash state of the bytes written so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sip {
    /// The four words that each round mixes.
    v: [u64; 4],
    /// The bytes that do not fill a word yet; `tail_bytes` is their number.
    tail: u64,
    tail_bytes: u32,
    /// The number of bytes so far, modulo 256, which the last word contains.
    length: u8,
}

impl Sip {
    /// Starts a hash under a seed; the constants are those of `SipHash` with 128 bits.
    pub(crate) fn new([key0, key1]: [u64; 2]) -> Sip {
        let v = [
            key0 ^ 0x736f_6d65_7073_6575,
            key1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            key0 ^ 0x6c79_6765_6e65_7261,
            key1 ^ 0x7465_6462_7974_6573,
        ];
        Sip { v, tail: 0, tail_bytes: 0, length: 0 }
    }

    /// Fills an incomplete word with zeros. The key after it then starts at a word boundary, so its words can be read
    /// in place.
    pub(super) fn pad(&mut self) {
        let zeros = [0; 8];
        self.write(&zeros[..(8 - self.tail_bytes as usize) % 8]);
    }

    /// Hashes a part of a key, preceded by its length, as [`encode`] writes it.
    #[inline(always)]
    pub(super) fn write_part(&mut self, part: &[u8]) {
        match part {
            // The first part of nearly every key: its length and its first seven bytes are a word, and so on.
            [first @ .., _] if self.tail_bytes == 0 && first.len() < 0x7f => self.write_first(part),
            _ => encode(part, |piece| self.write(piece)),
        }
    }

    /// Hashes a part of less than 127 bytes whose length byte starts a word. The result equals that of [`Sip::write`]
    /// for the encoded part.
    #[inline(always)]
    fn write_first(&mut self, part: &[u8]) {
        self.length = self.length.wrapping_add(part.len() as u8 + 1);
        self.tail = part.len() as u64;
        let mut rest = part;
        if let Some((head, more)) = part.split_first_chunk::<7>() {
            let mut word = [self.tail as u8; 8];
            word[1..].copy_from_slice(head);
            self.take_in(u64::from_le_bytes(word));
            self.tail = 0;
            rest = more;
            while let Some((word, more)) = rest.split_first_chunk::<8>() {
                self.take_in(u64::from_le_bytes(*word));
                rest = more;
            }
            if !rest.is_empty() {
                self.tail = short_word(rest);
            }
            self.tail_bytes = rest.len() as u32;
        } else {
            self.tail |= short_word(rest) << 8;
            self.tail_bytes = rest.len() as u32 + 1;
        }
    }

    /// Hashes any bytes. The result does not depend on their division among several calls.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u8);
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let word = chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
            self.push(word);
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            self.push_part(short_word(rest), rest.len() as u32);
        }
    }

    /// Hashes a whole word: its first bytes complete the tail, the others become the tail.
    #[inline(always)]
    fn push(&mut self, word: u64) {
        let bits = 8 * self.tail_bytes;
        let full = self.tail | (word << bits);
        self.tail = (word >> 1) >> (63 - bits);
        self.take_in(full);
    }

    /// Hashes less than a word.
    #[inline(always)]
    fn push_part(&mut self, word: u64, bytes: u32) {
        let (bits, after) = (8 * self.tail_bytes, self.tail_bytes + bytes);
        self.tail |= word << bits;
        self.tail_bytes = after % 8;
        if after >= 8 {
            let full = self.tail;
            self.tail = (word >> 1) >> (63 - bits);
            self.take_in(full);
        }
    }

    /// Mixes one word into the state.
    #[inline(always)]
    fn take_in(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.v[0] ^= word;
    }

    /// One round: additions, rotations and exclusive-ors of all four words.
    #[inline(always)]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.v;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32);
        c = c.wrapping_add(b);
        a = a.wrapping_add(d);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        c = c.rotate_left(32);
        self.v = [a, b, c, d];
    }

    /// Returns both halves of the hash.
    #[inline(always)]
    pub(crate) fn finish(mut self) -> [u64; 2] {
        self.take_in((u64::from(self.length) << 56) | self.tail);
        self.v[2] ^= 0xee;
        let first = self.fold();
        self.v[1] ^= 0xdd;
        [first, self.fold()]
    }

    /// Three rounds, and the exclusive-or of all four words.
    #[inline(always)]
    fn fold(&mut self) -> u64 {
        self.round();
        self.round();
        self.round();
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }
}

/// Returns one to seven bytes as a word, the first byte lowest.
///
/// # Panics
/// If there are no bytes.
#[inline(always)]
pub(super) fn short_word(bytes: &[u8]) -> u64 {
    let at = |index: usize| u64::from(bytes[index]) << (8 * index);
    let four = |index: usize| {
        let quarter =
            u32::from_le_bytes([bytes[index], bytes[index + 1], bytes[index + 2], bytes[index + 3]]);
        u64::from(quarter) << (8 * index)
    };
    let length = bytes.len();
    // Two reads that may overlap are faster than a loop.
    if length >= 4 { four(0) | four(length - 4) } else { at(0) | at(length / 2) | at(length - 1) }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use siphasher::sip128::{Hasher128, SipHasher13};
    use std::hash::Hasher;

    #[test]
    fn it_is_the_function_that_others_call_by_this_name() {
        let bytes: Vec<u8> = (0..200_u8).map(|byte| byte.wrapping_mul(31)).collect();
        for length in 0..=bytes.len() {
            for cut in (0..=length).step_by(if cfg!(miri) { 37 } else { 1 }) {
                let mut ours = Sip::new([1, u64::MAX - 7]);
                ours.write(&bytes[..cut]);
                ours.write(&bytes[cut..length]);
                let mut theirs = SipHasher13::new_with_keys(1, u64::MAX - 7);
                theirs.write(&bytes[..length]);
                let theirs = theirs.finish128();
                assert_eq!(ours.finish(), [theirs.h1, theirs.h2], "{length} bytes, cut at {cut}");
            }
        }
    }
}
