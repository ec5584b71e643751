//! Where the values of header fields are written.
//!
//! A server that writes its answers into one buffer has them written there, without an allocation of their own; a layer
//! has no such buffer, and copies each value out of a line on its stack.

use bytes::BytesMut;
use http::HeaderValue;

/// Where the values of header fields are written, one after the other.
pub trait Paper {
    /// Goes on with the value: digits, punctuation and plain names.
    fn put(&mut self, bytes: &[u8]);

    /// What was put since the last value was taken.
    ///
    /// # Panics
    ///
    /// If that may not stand in a header field, as control characters may not.
    fn value(&mut self) -> HeaderValue;
}

/// A buffer in which nothing waits to be taken; values are parts of it.
impl Paper for BytesMut {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn value(&mut self) -> HeaderValue {
        HeaderValue::from_maybe_shared(self.split().freeze()).expect(PLAIN)
    }
}

const PLAIN: &str = "digits, plain letters and punctuation may stand in a header field";

/// Values are rarely longer than this.
const USUAL: usize = 96;

/// A line, copied into each value.
#[derive(Debug)]
pub(super) struct Line {
    bytes: [u8; USUAL],
    length: usize,
    /// All of the value, where it is too long for the line.
    long: Vec<u8>,
}

impl Line {
    #[inline]
    pub(super) fn new() -> Line {
        Line { bytes: [0; USUAL], length: 0, long: Vec::new() }
    }

    #[cold]
    fn put_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.bytes[..self.length]);
        }
        self.long.extend_from_slice(bytes);
    }
}

impl Paper for Line {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts these words, and takes a value after each.
    fn values(paper: &mut impl Paper, words: &[&str]) -> Vec<String> {
        let value = |word: &&str| {
            // In pieces, as values come.
            word.as_bytes().chunks(7).for_each(|piece| paper.put(piece));
            paper.value().to_str().unwrap().to_owned()
        };
        words.iter().map(value).collect()
    }

    #[test]
    fn values_are_what_was_put_on_whatever_paper_and_however_long() {
        let lengths = [0, 1, USUAL - 1, USUAL, USUAL + 1, 2, 5 * USUAL, 0, USUAL, 3];
        let words = lengths.map(|length| "0123456789".repeat(USUAL)[..length].to_owned());
        let words = words.each_ref().map(|word| &word[..]);
        assert_eq!(values(&mut Line::new(), &words), words);
        assert_eq!(values(&mut BytesMut::new(), &words), words);
    }

    #[test]
    fn what_is_longer_than_a_line_may_come_at_once() {
        let mut line = Line::new();
        let long = "x".repeat(USUAL + 1);
        line.put(long.as_bytes());
        line.put(b"y");
        assert_eq!(line.value(), format!("{long}y"));
    }
}
