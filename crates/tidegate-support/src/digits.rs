//! Decimal digits of numbers, without `core::fmt`.
//!
//! Header fields contain several numbers per response. `core::fmt` handles padding and signs that they never need, at
//! several times the cost.

/// The largest number of digit pairs of a number.
const MOST: usize = 10;

/// The two digits of each number below a hundred, with a leading zero.
pub(crate) const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The decimal digits of a number. It is copied without an allocation. A number of 64 bits has at most 20 digits.
///
/// # Examples
///
/// ```
/// use tidegate_support::Digits;
///
/// assert_eq!(Digits::of(1_234).as_bytes(), b"1234");
/// ```
#[doc(alias = "itoa")]
#[derive(Clone, Copy, Debug)]
pub struct Digits {
    /// The digits in pairs, aligned to the end. Pairs before `start` are unspecified.
    pairs: [[u8; 2]; MOST],
    /// The index of the first digit.
    start: usize,
}

impl Digits {
    /// Converts a number. The digits are written from the right, two at a time, because divisions dominate the cost.
    #[inline]
    pub fn of(mut number: u64) -> Digits {
        let (mut pairs, mut start) = ([[0; 2]; MOST], 0);
        for at in (0..MOST).rev() {
            let two = (number % 100) as usize;
            pairs[at] = PAIRS[two];
            number /= 100;
            if number == 0 {
                start = 2 * at + usize::from(two < 10);
                break;
            }
        }
        Digits { pairs, start }
    }

    /// Returns the digits as text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.pairs.as_flattened()[self.start..]
    }
}

/// A short text that is written from its end, because the last digits of a number are computed first.
#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) struct FromEnd<const SIZE: usize> {
    /// The text, aligned to the end.
    bytes: [u8; SIZE],
    /// The index of its first byte.
    start: usize,
}

#[cfg(feature = "http")]
impl<const SIZE: usize> FromEnd<SIZE> {
    /// Creates an empty text.
    #[inline]
    pub(crate) fn new() -> FromEnd<SIZE> {
        FromEnd { bytes: [0; SIZE], start: SIZE }
    }

    /// Returns the number of bytes that are still free at the front.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.start
    }

    /// Puts these bytes before the existing ones.
    #[inline]
    pub(crate) fn put<const LENGTH: usize>(&mut self, bytes: [u8; LENGTH]) {
        self.start -= LENGTH;
        self.bytes[self.start..self.start + LENGTH].copy_from_slice(&bytes);
    }

    /// Puts a text before the existing bytes. Panics if there is no room.
    #[inline]
    pub(crate) fn put_text(&mut self, text: &str) {
        self.start -= text.len();
        self.bytes[self.start..self.start + text.len()].copy_from_slice(text.as_bytes());
    }

    /// Puts the digits of a number before the existing bytes. Panics unless there is room for the longest number.
    #[inline(always)]
    pub(crate) fn put_number(&mut self, number: u64) {
        let digits = Digits::of(number);
        // A copy of unknown length would be a function call; the surplus is overwritten by the next bytes.
        let place = self.bytes[..self.start].last_chunk_mut().expect("there is room for a number");
        *place = *digits.pairs.as_flattened().first_chunk::<{ 2 * MOST }>().expect("it has as many digits");
        self.start -= 2 * MOST - digits.start;
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(Digits::of(number).as_bytes(), number.to_string().as_bytes());
        }
    }
}
