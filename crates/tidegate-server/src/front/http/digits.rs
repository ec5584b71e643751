//! Numbers as decimal digits, without the machinery of formatting.

use bytes::BytesMut;

/// The most digits of a number.
const MAX_DIGITS: usize = 20;

pub(super) fn put(out: &mut BytesMut, mut number: u64) {
    let mut digits = [0; MAX_DIGITS];
    let mut at = MAX_DIGITS;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX] {
            let mut out = BytesMut::new();
            put(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
