//! A load on a server: one thread that keeps many connections busy.
//!
//! Requests lie ready as bytes, a batch is sent by one call, and of a reply only its end and its verdict are read. So a
//! request costs less here than in redis-benchmark, and the server is what is waited for.

mod clients;
mod scanner;

pub use clients::{Clients, Load, Until};
pub use scanner::{Scanner, Tally};

/// As many as the deepest pipeline has.
const COPIES: usize = 64;

/// Requests of the same length, made beforehand, to be sent in this order again and again.
#[derive(Debug)]
pub struct Requests {
    bytes: Vec<u8>,
    each: usize,
    next: usize,
}

impl Requests {
    /// Writes the request about each key, in this order.
    ///
    /// # Panics
    /// If one is longer than another.
    pub fn about(keys: impl IntoIterator<Item = u32>, write: impl Fn(&str) -> Vec<u8>) -> Requests {
        let mut requests = Requests { bytes: Vec::new(), each: 0, next: 0 };
        for number in keys {
            let request = write(&format!("user:{number:09}"));
            assert!(requests.each == 0 || requests.each == request.len(), "all have the same length");
            requests.each = request.len();
            requests.bytes.extend_from_slice(&request);
        }
        requests
    }

    /// Writes the request about one key.
    pub fn about_one(write: impl Fn(&str) -> Vec<u8>) -> Requests {
        Requests::about([1; COPIES], write)
    }

    /// Returns this many of them in a row; from the first, where fewer are left.
    pub fn take(&mut self, count: usize) -> &[u8] {
        let bytes = count * self.each;
        let start = if self.next + bytes <= self.bytes.len() { self.next } else { 0 };
        self.next = start + bytes;
        &self.bytes[start..self.next]
    }
}

/// Returns a command of RESP as an array of bulk strings.
pub fn command(words: &[&str]) -> Vec<u8> {
    let texts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), texts.collect::<String>()).into_bytes()
}

/// Returns each number below the bound once, in an order that is the same in every run.
pub fn shuffled(bound: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..bound).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut numbers);
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
        let mut one = Requests::about_one(|key| key.as_bytes().to_vec());
        assert_eq!(taken(&mut one, 64), "user:000000001".repeat(64));
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        assert_eq!(command(&["GET", "k"]), b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }

    #[test]
    fn shuffled_numbers_are_all_there_in_another_order() {
        let mut numbers = shuffled(1000);
        assert_ne!(numbers[..10], *(0..10).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    }
}
