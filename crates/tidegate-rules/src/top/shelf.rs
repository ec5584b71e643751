//! A small Space-Saving sketch per outcome and window, of the keys whose hash falls here.

use std::mem;

use super::{MAX_KEYS, MAX_SHOWN_BYTES, Outcome, SHELVES};

/// Places for one outcome in one window: few enough to look through all.
const PLACES: usize = MAX_KEYS / SHELVES;

/// What is counted here; the lists are by [`Outcome`].
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Which window is the current one, since the epoch.
    window: u64,
    current: [Vec<Place>; 2],
    previous: [Vec<Place>; 2],
}

impl Shelf {
    /// Forgets what is over in this window.
    ///
    /// The previous one is that of somebody who read the clock earlier: it counts as the current. After any
    /// other jump, back or ahead, nothing is of the last two windows.
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

    /// Counts for the rule and key of this name, of which `id` is the hash.
    pub(super) fn add(&mut self, outcome: Outcome, id: u64, rule: &str, key: &[u8], weight: u64) {
        let places = &mut self.current[outcome as usize];
        if let Some(place) = places.iter_mut().find(|place| place.id == id) {
            place.tally.grow(weight);
        } else if places.len() < PLACES {
            let mut place = Place::default();
            place.take_over(id, rule, key, weight);
            places.push(place);
        } else if let Some(lowest) = places.iter_mut().min_by_key(|place| place.tally.count) {
            lowest.take_over(id, rule, key, weight);
        }
    }

    /// All places, of both windows.
    pub(super) fn places(&self) -> impl Iterator<Item = (Outcome, &Place)> {
        [&self.current, &self.previous].into_iter().flat_map(|[allowed, refused]| {
            let allowed = allowed.iter().map(|place| (Outcome::Allowed, place));
            allowed.chain(refused.iter().map(|place| (Outcome::Refused, place)))
        })
    }
}

/// What is counted for one rule and key.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// A hash of the rule and all of the key, by a secret: who has the same is taken for the same. Among a
    /// thousand million keys a minute, that is wrong once in thirty years.
    pub(super) id: u64,
    pub(super) tally: Tally,
    pub(super) rule: String,
    /// The key as it is encoded, or its beginning.
    pub(super) key: Vec<u8>,
    pub(super) is_cut: bool,
}

impl Place {
    /// Goes on as another, with what was counted so far as the error. Strings keep their memory.
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

/// A count and how wrong it may be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    /// The part of it that was counted before the key had its place.
    taken_over: u64,
    /// The variance of the rest, by sampling.
    variance: u64,
}

impl Tally {
    fn grow(&mut self, weight: u64) {
        self.count += weight;
        self.variance += weight * (weight - 1);
    }

    /// What was counted for the key itself.
    pub(super) fn own(self) -> u64 {
        self.count - self.taken_over
    }

    /// Whether at least half of it is the key's own.
    pub(super) fn is_telling(self) -> bool {
        self.count > 0 && self.own() >= self.taken_over
    }

    /// How much too high the count may be.
    pub(super) fn error(self) -> u64 {
        (self.taken_over + 3 * self.variance.isqrt()).min(self.count)
    }

    /// Both together.
    pub(super) fn and(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            taken_over: self.taken_over + other.taken_over,
            variance: self.variance + other.variance,
        }
    }
}
