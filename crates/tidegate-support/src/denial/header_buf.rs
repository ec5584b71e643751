//! Buffers for the values of header fields.
//!
//! A server that writes its replies into one buffer writes the values there too, without a separate allocation. A layer
//! has no such buffer, and copies each value from an array on its stack.

use bytes::BytesMut;
use http::HeaderValue;

use crate::digits::{Digits, PAIRS};

/// A buffer for the values of header fields, one after the other. A value is built by any number of [`HeaderBuf::put`],
/// and ended by [`HeaderBuf::value`].
pub trait HeaderBuf {
    /// Appends to the value: digits, punctuation and plain names.
    fn put(&mut self, bytes: &[u8]);

    /// Takes the value that was put since the last one was taken.
    ///
    /// # Panics
    ///
    /// Panics if the bytes are not a valid header value, for example with control characters.
    fn value(&mut self) -> HeaderValue;

    /// Returns these bytes as a value. Nothing may have been put since the last value was taken.
    ///
    /// # Panics
    ///
    /// Panics if the bytes are not a valid header value.
    #[inline]
    fn whole(&mut self, bytes: &[u8]) -> HeaderValue {
        self.put(bytes);
        self.value()
    }
}

/// The buffer must be empty at first; values are parts of it, without a copy.
impl HeaderBuf for BytesMut {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn value(&mut self) -> HeaderValue {
        HeaderValue::from_maybe_shared(self.split().freeze()).expect(PLAIN)
    }
}

/// Appends the decimal digits of a number.
#[inline]
pub fn put_number(out: &mut impl HeaderBuf, number: u64) {
    // Most remaining quotas and waits are small.
    match number {
        0..100 => put_small(out, number),
        100..10_000 => {
            put_small(out, number / 100);
            out.put(&PAIRS[(number % 100) as usize]);
        }
        _ => out.put(Digits::of(number).as_bytes()),
    }
}

/// Appends the digits of a number below a hundred.
#[inline]
fn put_small(out: &mut impl HeaderBuf, number: u64) {
    match number {
        0..10 => out.put(&[b'0' + number as u8]),
        _ => out.put(&PAIRS[number as usize]),
    }
}

/// The reason why a value is valid, for panics.
const PLAIN: &str = "digits, plain letters and punctuation may be in a header field";

/// The size of the array on the stack; values are rarely longer.
pub(super) const USUAL: usize = 96;

/// A buffer on the stack, copied into each value.
#[derive(Debug)]
pub(super) struct StackBuf {
    bytes: [u8; USUAL],
    length: usize,
    /// The whole value, if it is too long for the array.
    long: Vec<u8>,
}

impl StackBuf {
    #[inline]
    pub(super) fn new() -> StackBuf {
        StackBuf { bytes: [0; USUAL], length: 0, long: Vec::new() }
    }

    #[cold]
    fn put_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.bytes[..self.length]);
        }
        self.long.extend_from_slice(bytes);
    }
}

impl HeaderBuf for StackBuf {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        match self.bytes[self.length..].get_mut(..bytes.len()) {
            Some(room) if self.long.is_empty() => {
                room.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            _ => self.put_long(bytes),
        }
    }

    #[inline]
    fn value(&mut self) -> HeaderValue {
        let bytes = if self.long.is_empty() { &self.bytes[..self.length] } else { &self.long[..] };
        let value = HeaderValue::from_bytes(bytes).expect(PLAIN);
        self.length = 0;
        self.long.clear();
        value
    }

    #[inline]
    fn whole(&mut self, bytes: &[u8]) -> HeaderValue {
        HeaderValue::from_bytes(bytes).expect(PLAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts these words, and takes a value after each.
    fn values(out: &mut impl HeaderBuf, words: &[&str]) -> Vec<String> {
        let value = |word: &&str| {
            // In pieces, as real values are written.
            word.as_bytes().chunks(7).for_each(|piece| out.put(piece));
            out.value().to_str().unwrap().to_owned()
        };
        words.iter().map(value).collect()
    }

    #[test]
    fn values_are_what_was_put_in_any_buffer_and_of_any_length() {
        let lengths = [0, 1, USUAL - 1, USUAL, USUAL + 1, 2, 5 * USUAL, 0, USUAL, 3];
        let words = lengths.map(|length| "0123456789".repeat(USUAL)[..length].to_owned());
        let words = words.each_ref().map(|word| &word[..]);
        assert_eq!(values(&mut StackBuf::new(), &words), words);
        assert_eq!(values(&mut BytesMut::new(), &words), words);
    }

    #[test]
    fn numbers_are_their_digits() {
        for number in [0, 9, 10, 99, 100, 101, 999, 1000, 9999, 10_000, 12_345, u64::MAX] {
            let mut out = BytesMut::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_value_longer_than_the_array_may_be_put_at_once() {
        let mut buffer = StackBuf::new();
        let long = "x".repeat(USUAL + 1);
        buffer.put(long.as_bytes());
        buffer.put(b"y");
        assert_eq!(buffer.value(), format!("{long}y"));
    }
}
