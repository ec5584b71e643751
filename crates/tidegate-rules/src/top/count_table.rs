//! A shelf: a small Space-Saving sketch per outcome and window, of the keys whose hash selects it.

use std::mem;

use super::{MAX_KEYS, MAX_SHOWN_BYTES, SHELVES, TopOutcome};

/// The number of places for one outcome in one window, small enough for a linear search.
const PLACES: usize = MAX_KEYS / SHELVES;

/// The counts of one shelf. The arrays are indexed by [`TopOutcome`].
#[derive(Debug, Default)]
pub(super) struct CountTable {
    /// The number of the current window, since the epoch.
    window: u64,
    current: [Vec<KeyCount>; 2],
    previous: [Vec<KeyCount>; 2],
}

impl CountTable {
    /// Drops counts that are too old for this window.
    ///
    /// The previous window is that of a thread that read the clock earlier: it counts as the current one. After any
    /// other jump, backward or forward, no count belongs to the last two windows.
    pub(super) fn turn_to(&mut self, window: u64) {
        if window == self.window || window + 1 == self.window {
            return;
        }
        mem::swap(&mut self.current, &mut self.previous);
        self.current.iter_mut().for_each(Vec::clear);
        if window != self.window + 1 {
            self.previous.iter_mut().for_each(Vec::clear);
        }
        self.window = window;
    }

    /// Adds a weight to the count of this rule and key. `id` is their hash.
    pub(super) fn add(&mut self, outcome: TopOutcome, id: u64, rule: &str, key: &[u8], weight: u64) {
        let places = &mut self.current[outcome as usize];
        if let Some(place) = places.iter_mut().find(|place| place.id == id) {
            place.tally.grow(weight);
        } else if places.len() < PLACES {
            let mut place = KeyCount::default();
            place.take_over(id, rule, key, weight);
            places.push(place);
        } else if let Some(lowest) = places.iter_mut().min_by_key(|place| place.tally.count) {
            lowest.take_over(id, rule, key, weight);
        }
    }

    /// Returns all places of both windows.
    pub(super) fn places(&self) -> impl Iterator<Item = (TopOutcome, &KeyCount)> {
        [&self.current, &self.previous].into_iter().flat_map(|[allowed, denied]| {
            let allowed = allowed.iter().map(|place| (TopOutcome::Allowed, place));
            allowed.chain(denied.iter().map(|place| (TopOutcome::Denied, place)))
        })
    }
}

/// The count of one rule and key.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyCount {
    /// A keyed hash of the rule and the whole key. Keys with equal hashes are counted as one. With a thousand million
    /// keys a minute, that happens once in thirty years.
    pub(super) id: u64,
    pub(super) tally: Tally,
    pub(super) rule: String,
    /// The encoded key, or its beginning.
    pub(super) key: Vec<u8>,
    pub(super) is_cut: bool,
}

impl KeyCount {
    /// Reassigns the place to another key, with the count so far as the error. The strings keep their allocations.
    fn take_over(&mut self, id: u64, rule: &str, key: &[u8], weight: u64) {
        self.id = id;
        self.tally = Tally { count: self.tally.count, taken_over: self.tally.count, variance: 0 };
        self.tally.grow(weight);
        self.rule.clear();
        self.rule.push_str(rule);
        self.key.clear();
        self.key.extend_from_slice(&key[..key.len().min(MAX_SHOWN_BYTES)]);
        self.is_cut = key.len() > MAX_SHOWN_BYTES;
    }
}

/// A count with its error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    /// The part of the count from before the key had this place.
    taken_over: u64,
    /// The sampling variance of the rest.
    variance: u64,
}

impl Tally {
    fn grow(&mut self, weight: u64) {
        self.count += weight;
        self.variance += weight * (weight - 1);
    }

    /// Returns the count of the key itself.
    pub(super) fn own(self) -> u64 {
        self.count - self.taken_over
    }

    /// Returns true if at least half of the count is the key's own.
    pub(super) fn is_telling(self) -> bool {
        self.count > 0 && self.own() >= self.taken_over
    }

    /// Returns the maximum error of the count.
    pub(super) fn error(self) -> u64 {
        (self.taken_over + 3 * self.variance.isqrt()).min(self.count)
    }

    /// Adds two tallies.
    pub(super) fn and(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            taken_over: self.taken_over + other.taken_over,
            variance: self.variance + other.variance,
        }
    }
}
