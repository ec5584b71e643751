//! The encoding of numbers for scripts: little-endian doubles and ticks, after a letter.
//!
//! The script reads an argument by `struct.unpack`. The formats are those of the `unpacked` calls in the Lua files.

use super::TICKS;

/// The size of a span as text. The last byte is always zero.
const MICROS_TEXT: usize = 15;

/// One argument of a script.
#[derive(Debug)]
pub(super) struct Pack(Vec<u8>);

impl Pack {
    /// Creates an argument for an algorithm, identified by its letter.
    pub(super) fn new(letter: u8) -> Pack {
        Pack::behind(Vec::with_capacity(72), letter)
    }

    /// Appends another ask to an argument.
    pub(super) fn behind(mut others: Vec<u8>, letter: u8) -> Pack {
        others.push(letter);
        Pack(others)
    }

    /// Appends a whole number. Above 2^53 a script loses precision, so such a number has to mean "too much", for any
    /// value that large.
    pub(super) fn number(mut self, number: u64) -> Pack {
        self.0.extend_from_slice(&(number as f64).to_le_bytes());
        self
    }

    /// Appends a whole number that may be negative.
    pub(super) fn signed(mut self, number: i64) -> Pack {
        self.0.extend_from_slice(&(number as f64).to_le_bytes());
        self
    }

    /// Appends an exact span or time.
    pub(super) fn ticks(self, ticks: u64) -> Pack {
        self.micros(ticks).rest(ticks)
    }

    /// Appends a time or span in whole microseconds.
    pub(super) fn micros(self, ticks: u64) -> Pack {
        self.number(ticks / TICKS)
    }

    /// Appends the ticks beyond the whole microseconds of a span.
    pub(super) fn rest(mut self, ticks: u64) -> Pack {
        self.0.extend_from_slice(&((ticks % TICKS) as u16).to_le_bytes());
        self
    }

    /// Appends the decimal digits of a span in whole microseconds, padded with zero bytes. A span with ticks, or with
    /// too many digits, is written as zero bytes only.
    pub(super) fn micros_text(mut self, ticks: u64) -> Pack {
        let mut text = [0; MICROS_TEXT];
        let mut micros = ticks / TICKS;
        let digits = micros.checked_ilog10().map_or(1, |log| log as usize + 1);
        if ticks.is_multiple_of(TICKS) && digits < MICROS_TEXT {
            for digit in text[..digits].iter_mut().rev() {
                *digit = b'0' + (micros % 10) as u8;
                micros /= 10;
            }
        }
        self.0.extend_from_slice(&text);
        self
    }

    /// Appends a negative span, below every other span.
    pub(super) fn negative(mut self) -> Pack {
        self.0.extend_from_slice(&(-1_f64).to_le_bytes());
        self
    }

    /// Appends one byte, 0 or 1.
    pub(super) fn flag(mut self, flag: bool) -> Pack {
        self.0.push(flag.into());
        self
    }

    /// Appends text.
    pub(super) fn text(mut self, text: &str) -> Pack {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Returns the encoded argument.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_is_what_a_script_unpacks() {
        let bytes = Pack::new(b't').ticks(3 * TICKS + 7).flag(true).number(1 << 52).text("x").into_bytes();
        let expected = [
            &b"t"[..],
            &3_f64.to_le_bytes(),
            &7_u16.to_le_bytes(),
            &[1],
            &4_503_599_627_370_496_f64.to_le_bytes(),
            b"x",
        ];
        assert_eq!(bytes, expected.concat());
    }
    #[test]
    fn a_price_as_text_has_room_for_fourteen_digits_and_no_ticks() {
        let text = |ticks| Pack::new(b't').micros_text(ticks).into_bytes()[1..].to_vec();
        assert_eq!(text(36_000_000 * TICKS), *b"36000000\0\0\0\0\0\0\0");
        assert_eq!(text(99_999_999_999_999 * TICKS), *b"99999999999999\0");
        assert_eq!(text(0), *b"0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(text(100_000_000_000_000 * TICKS), [0; 15]);
        assert_eq!(text(5 * TICKS + 1), [0; 15]);
    }
}
