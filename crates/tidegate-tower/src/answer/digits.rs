//! Numbers as decimal digits, without the machinery of formatting.

use super::Paper;

/// The most digits of a number.
const MOST: usize = 20;

/// What is written for the numbers below a hundred, with a zero before those of one digit.
const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Puts the decimal digits of a number.
#[inline]
pub fn put_number(paper: &mut impl Paper, number: u64) {
    // Most that is left or waited for is small, or nothing.
    match number {
        0..10 => paper.put(&[b'0' + number as u8]),
        _ => paper.put(Digits::of(number).as_bytes()),
    }
}

/// The decimal digits of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits {
    bytes: [u8; MOST],
    start: usize,
}

impl Digits {
    /// Those of this number, from the right and two at a time: dividing is what takes long.
    #[inline]
    pub(crate) fn of(mut number: u64) -> Digits {
        let (mut bytes, mut start) = ([0; MOST], MOST);
        for (at, pair) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate().rev() {
            let two = (number % 100) as usize;
            *pair = PAIRS[two];
            number /= 100;
            if number == 0 {
                start = 2 * at + usize::from(two < 10);
                break;
            }
        }
        Digits { bytes, start }
    }

    /// As text.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(Digits::of(number).as_bytes(), number.to_string().as_bytes());
            let mut paper = BytesMut::new();
            put_number(&mut paper, number);
            assert_eq!(paper, number.to_string().as_bytes());
        }
    }
}
