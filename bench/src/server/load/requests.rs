//! Requests as bytes, made before anything is measured.

use crate::random::Xorshift;

/// As many as the deepest pipeline has.
const COPIES: usize = 64;

/// Requests of the same length, to be sent in this order again and again.
#[derive(Debug)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    each: usize,
    next: usize,
}

impl Requests {
    /// The request about each key, in this order.
    pub(crate) fn about(keys: impl IntoIterator<Item = u32>, write: impl Fn(&str) -> Vec<u8>) -> Requests {
        let mut requests = Requests { bytes: Vec::new(), each: 0, next: 0 };
        for number in keys {
            let request = write(&format!("user:{number:09}"));
            assert!(requests.each == 0 || requests.each == request.len(), "all have the same length");
            requests.each = request.len();
            requests.bytes.extend_from_slice(&request);
        }
        requests
    }

    /// The request about one key.
    pub(crate) fn about_one(write: impl Fn(&str) -> Vec<u8>) -> Requests {
        Requests::about([1; COPIES], write)
    }

    /// So many of them in a row; from the first, where fewer are left.
    pub(crate) fn take(&mut self, count: usize) -> &[u8] {
        let bytes = count * self.each;
        let start = if self.next + bytes <= self.bytes.len() { self.next } else { 0 };
        self.next = start + bytes;
        &self.bytes[start..self.next]
    }
}

/// Each number below the bound once, in random order.
pub(crate) fn shuffled(bound: u32) -> Vec<u32> {
    let mut random = Xorshift::default();
    let mut numbers: Vec<u32> = (0..bound).collect();
    for place in (1..bound).rev() {
        numbers.swap(place as usize, random.below(place + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(requests: &mut Requests, count: usize) -> String {
        String::from_utf8(requests.take(count).to_vec()).unwrap()
    }

    #[test]
    fn requests_begin_anew_after_the_last() {
        let mut requests = Requests::about([7, 8, 9, 10], |key| key.as_bytes().to_vec());
        assert_eq!(taken(&mut requests, 2), "user:000000007user:000000008");
        assert_eq!(taken(&mut requests, 2), "user:000000009user:000000010");
        assert_eq!(taken(&mut requests, 3), "user:000000007user:000000008user:000000009");
        assert_eq!(taken(&mut requests, 2), "user:000000007user:000000008");
    }

    #[test]
    fn one_key_is_asked_about_again_and_again() {
        let mut requests = Requests::about_one(|key| key.as_bytes().to_vec());
        assert_eq!(taken(&mut requests, 64), "user:000000001".repeat(64));
    }

    #[test]
    fn shuffled_numbers_are_all_there_in_another_order() {
        let mut numbers = shuffled(1000);
        assert_ne!(numbers[..10], *(0..10).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    }
}
