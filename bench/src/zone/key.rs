//! A key that has just been written, as in a server that has just read it: it is at hand in the nearest cache.

const PREFIX: &str = "user:";

/// A name of a user in a buffer that is used again.
pub(super) struct Key {
    text: String,
}

impl Key {
    pub(super) fn new() -> Key {
        Key { text: PREFIX.to_owned() }
    }

    /// Writes the name of this user: fourteen bytes, for all numbers below a thousand million.
    #[inline]
    pub(super) fn write(&mut self, number: u32) -> &String {
        self.text.truncate(PREFIX.len());
        for three in [number / 1_000_000, number / 1000 % 1000, number % 1000] {
            let at = 3 * (three as usize + 1);
            self.text.push_str(&DIGITS[at..at + 3]);
        }
        &self.text
    }

    #[inline]
    pub(super) fn text(&self) -> &String {
        &self.text
    }
}

/// The names of the first users.
pub(super) fn first(count: u32) -> Vec<String> {
    (0..count).map(|number| Key::new().write(number).clone()).collect()
}

/// All numbers of three digits, one after the other. The first is there twice: a piece from the very beginning of
/// a text takes another branch, and it would depend on the number how well that is foreseen.
static DIGITS: &str = {
    const BYTES: [u8; 3003] = digits();
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => panic!("digits are text"),
    }
};

const fn digits() -> [u8; 3003] {
    let mut bytes = [b'0'; 3003];
    let mut number = 0;
    while number < 1000 {
        let at = 3 * (number + 1);
        bytes[at] += (number / 100) as u8;
        bytes[at + 1] += (number / 10 % 10) as u8;
        bytes[at + 2] += (number % 10) as u8;
        number += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_it_would_be_formatted() {
        let mut key = Key::new();
        for number in [0, 7, 10, 999, 1000, 123_456, 999_999, 1_000_000, 10_203_040, 999_999_999] {
            assert_eq!(*key.write(number), format!("user:{number:09}"));
        }
    }

    #[test]
    fn a_key_that_is_written_again_stays_where_it_is() {
        let mut key = Key::new();
        let before = key.write(1).as_ptr();
        assert_eq!(key.write(999_999_999).as_ptr(), before);
        assert_eq!(key.text(), "user:999999999");
    }

    #[test]
    fn the_first_names_are_those_of_the_first_numbers() {
        assert_eq!(first(2), ["user:000000000", "user:000000001"]);
    }
}
