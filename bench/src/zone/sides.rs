//! The limiters that are compared, with the same promise, and the keys that they decide about.
//!
//! A key has just been written, as in a server that has just read it: it is at hand in the nearest cache.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use governor::RateLimiter;
use throttlecrab::{AdaptiveStore, PeriodicStore, Store};
use tidegate::{Limiter, Map, Zone};

use crate::promise::{Crab, Promise};

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

/// How many keys are met at a time for the first time.
const MET_TOGETHER: u32 = 1000;

/// Where keys are when they are asked about.
#[derive(Clone, Copy)]
pub(super) enum Keys<'a> {
    /// All of them are at hand.
    Ready(&'a [String]),
    /// Each is written before it is asked about.
    Written,
}

/// How many of these it allows.
type Decide<'a> = Box<dyn Fn(&[u32]) -> u64 + Sync + 'a>;

/// A name, and how it decides.
pub(super) struct Side<'a> {
    pub(super) name: &'static str,
    decide: Decide<'a>,
}

impl<'a> Side<'a> {
    /// Decides one by one.
    pub(super) fn new(
        name: &'static str,
        keys: Keys<'a>,
        decide: impl Fn(&String) -> bool + Sync + 'a,
    ) -> Side<'a> {
        let decide: Decide<'a> = match keys {
            Keys::Ready(keys) => Box::new(move |numbers| {
                numbers.iter().map(|number| u64::from(decide(&keys[*number as usize]))).sum()
            }),
            Keys::Written => Box::new(move |numbers| {
                let mut key = Key::new();
                numbers.iter().map(|number| u64::from(decide(key.write(*number)))).sum()
            }),
        };
        Side { name, decide }
    }

    /// Writes so many keys, then decides about all of them.
    pub(super) fn in_batches(name: &'static str, size: usize, limiter: Limiter) -> Side<'a> {
        let decide = move |numbers: &[u32]| {
            let mut keys: Vec<_> = (0..size).map(|_| Key::new()).collect();
            let allowed = numbers.chunks(size).map(|batch| {
                for (key, number) in keys.iter_mut().zip(batch) {
                    key.write(*number);
                }
                let asked = keys[..batch.len()].iter().map(Key::text);
                limiter.admit_each(asked).filter(|decision| decision.is_allowed()).count() as u64
            });
            allowed.sum()
        };
        Side { name, decide: Box::new(decide) }
    }

    /// Decides about each of so many keys once, so that it knows them.
    pub(super) fn meet(self, keys: u32) -> Side<'a> {
        for from in (0..keys).step_by(MET_TOGETHER as usize) {
            let numbers: Vec<_> = (from..keys.min(from + MET_TOGETHER)).collect();
            self.decide(&numbers);
        }
        self
    }

    pub(super) fn decide(&self, numbers: &[u32]) -> u64 {
        (self.decide)(numbers)
    }
}

pub(super) const EMPTY: &str = "(no decision: keys only)";
pub(super) const ZONE: &str = "tidegate Zone";
pub(super) const BATCHES_OF_16: &str = "tidegate Zone, batches of 16";
pub(super) const BATCHES_OF_64: &str = "tidegate Zone, batches of 64";
pub(super) const FILE: &str = "tidegate Zone in a file";
pub(super) const MAP: &str = "tidegate Map";
pub(super) const GOVERNOR: &str = "governor keyed, dashmap (its default)";

/// More at once than all rounds ask for, and never clear between two visits of a few keys.
pub(super) const FEW_KEYS: &str = "1000/1s burst 1000000000";
/// Far less than is asked for.
pub(super) const DENIED: &str = "10/1s burst 10";
/// More than all rounds ask for, and every key that was met stays live while many others are asked about.
pub(super) const MANY_KEYS: &str = "1/200s burst 1000000";

/// Bytes of a zone per key that it has to hold: those for which it is made.
pub(super) const BYTES_PER_KEY: usize = 24;
/// The smallest zone of a comparison.
const LEAST_BYTES: usize = 1 << 16;

/// A limiter on a new zone for so many keys.
pub(super) fn zone_for(keys: u32, promise: Promise) -> Limiter {
    on(&Zone::new(zone_bytes(keys)), promise)
}

pub(super) fn on(zone: &Zone, promise: Promise) -> Limiter {
    Limiter::on(zone, "user", promise.limit())
}

pub(super) fn zone_bytes(keys: u32) -> usize {
    (keys as usize * BYTES_PER_KEY).max(LEAST_BYTES)
}

/// No store, the zone, and those that are worth their memory also with very many keys.
pub(super) fn main_sides<'a>(zone: &Limiter, promise: Promise, count: u32, keys: Keys<'a>) -> Vec<Side<'a>> {
    let zone = zone.clone();
    let map = Map::new().max_keys(2 * count as usize).max_bytes(4 << 30);
    let map = Limiter::on(&map, "user", promise.limit());
    let governor = RateLimiter::dashmap(promise.quota());
    vec![
        Side::new(EMPTY, keys, |key| !black_box(key).is_empty()),
        Side::new(ZONE, keys, move |key| zone.admit(key).is_allowed()).meet(count),
        Side::new(MAP, keys, move |key| map.admit(key).is_allowed()).meet(count),
        Side::new(GOVERNOR, keys, move |key| governor.check_key(key).is_ok()).meet(count),
    ]
}

/// All others, behind the same keys. throttlecrab is behind a lock, as its documentation says, and its tables are
/// made for the keys.
pub(super) fn other_sides(promise: Promise, count: u32, keys: Keys<'_>) -> Vec<Side<'_>> {
    let governor = RateLimiter::hashmap(promise.quota());
    let adaptive = Mutex::new(promise.throttlecrab(AdaptiveStore::with_capacity(count as usize)));
    let periodic = Mutex::new(promise.throttlecrab(PeriodicStore::with_capacity(count as usize)));
    vec![
        Side::new("governor keyed, hashmap", keys, move |key| governor.check_key(key).is_ok()).meet(count),
        Side::new("throttlecrab adaptive, Mutex", keys, move |key| locked(&adaptive, key)).meet(count),
        Side::new("throttlecrab periodic, Mutex", keys, move |key| locked(&periodic, key)).meet(count),
    ]
}

fn locked<S: Store>(crab: &Mutex<Crab<S>>, key: &str) -> bool {
    crab.lock().unwrap_or_else(PoisonError::into_inner).is_allowed(key)
}

#[cfg(test)]
mod tests {
    use tidegate::{Limit, Zone};

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

    fn three_each() -> Limiter {
        Limiter::on(&Zone::new(1 << 16), "user", Limit::per_hour(3))
    }

    #[test]
    fn one_by_one_and_in_batches_the_same_is_decided() {
        let numbers: Vec<_> = (0..100).map(|visit| visit % 7).collect();
        let (one_by_one, in_batches) = (three_each(), three_each());
        let keys = first(7);
        let ready = Side::new("", Keys::Ready(&keys), |key| one_by_one.admit(key).is_allowed());

        assert_eq!(ready.decide(&numbers), 21);
        assert_eq!(Side::in_batches("", 16, in_batches).decide(&numbers), 21);
        let written = Side::new("", Keys::Written, |key| one_by_one.admit(key).is_allowed());
        assert_eq!(written.decide(&numbers), 0, "they are the same keys");
    }

    #[test]
    fn who_meets_keys_decides_about_each_once() {
        let limiter = three_each();
        let side = Side::new("", Keys::Written, |key| limiter.admit(key).is_allowed()).meet(1001);
        assert_eq!(side.decide(&[0, 1000, 1001]), 3);
        assert_eq!(limiter.peek("user:000001000").remaining(), 1);
        assert_eq!(limiter.peek("user:000001001").remaining(), 2);
    }
}
