//! Heavy hitters: the keys with the most requests and the most denials in the last one to two minutes.
//!
//! ```text
//!                           a shelf, with its own lock
//!  hash of rule and key ──> allowed: this window, the one before
//!  picks one of 64          denied:  this window, the one before      16 places in each
//! ```
//!
//! A place belongs to one rule and key and holds its count. A key without a place takes over the place with the lowest
//! count and continues from that count (the Space-Saving algorithm). That count is an upper bound of its earlier
//! requests. So a count is too high by at most the count that was taken over, which is stored with it. That error is at
//! most a sixteenth of all requests that reached the shelf: about 1/1024 of all requests. A flood of keys competes for
//! the lowest places; the memory is fixed.
//!
//! Allowed and denied requests are counted separately; the number of requests is their sum. Each decision updates one
//! place, and a flood of allowed keys cannot evict a denied key.
//!
//! Under load only a sample is counted, with a weight (`pace.rs`). A thread that finds a shelf locked skips the count.
//! Sampling errs in both directions, by about [`HotKey::error`]. Skipping errs downwards, most for a key that several
//! threads request at the same time.

mod count_table;
mod pace;
pub(crate) mod shown;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate_core::{Ticks, Timestamp};

use count_table::{CountTable, KeyCount, Tally};
use pace::Pace;

/// The length of one sketch's window. A report covers two windows.
const WINDOW: Ticks = Ticks::saturating_from(Duration::from_secs(60));

/// The name under which keys of limits that come with requests are counted. No rule has it.
pub(crate) const DYNAMIC: &str = "";

/// The maximum number of keys counted at once, for each outcome and window.
const MAX_KEYS: usize = 1024;

/// The number of bytes of a longer key that are stored for display. The hash covers all bytes of the key.
const MAX_SHOWN_BYTES: usize = 128;

/// The number of shelves. With this many, locks are held briefly and rarely contended.
const SHELVES: usize = 64;

/// The sampling interval for allowed requests once many were counted within a minute.
const ALLOWED_ONE_IN: u64 = 16;

/// The sampling interval for denied requests once many were counted within a minute.
const REFUSED_ONE_IN: u64 = 4;

/// The same intervals for limits that come with requests: a take is cheaper than a decision by rules.
const DYNAMIC_ONE_IN: [u64; 2] = [64, 16];

/// Counts of allowed and denied requests by key, of all rules together. Shared by all threads.
pub(crate) struct Top {
    /// Random hash keys, so that no client can choose keys that share a shelf or a hash.
    secret: RandomState,
    pace: Pace,
    /// The window of the last recorded decision.
    window: AtomicU64,
    shelves: Box<[Mutex<CountTable>]>,
}

impl Top {
    /// Creates empty counts.
    pub(crate) fn new() -> Top {
        Top::with_pace(Pace::new([ALLOWED_ONE_IN, REFUSED_ONE_IN]))
    }

    /// Creates empty counts of keys of limits that come with requests.
    pub(crate) fn of_dynamic() -> Top {
        Top::with_pace(Pace::new(DYNAMIC_ONE_IN))
    }

    fn with_pace(pace: Pace) -> Top {
        let shelves = (0..SHELVES).map(|_| Mutex::default()).collect();
        Top { secret: RandomState::new(), pace, window: AtomicU64::new(0), shelves }
    }

    /// Counts one decision, or skips it. Never blocks, and reads the clock only when it counts.
    ///
    /// The clock may jump in both directions. Counts from a time far from the current one are dropped.
    #[inline]
    pub(crate) fn note(&self, now: impl FnOnce() -> Timestamp, rule: &str, key: &[u8], outcome: TopOutcome) {
        if let Some(weight) = self.pace.weight(outcome) {
            let now = now();
            self.pace.noted(outcome, now);
            self.record(now, (rule, key), outcome, weight);
        }
    }

    /// Advances to the window of `now` and returns it, so that old counts leave the report even without new requests.
    pub(crate) fn turn_to(&self, now: Timestamp) -> u64 {
        let window = now.ticks() / WINDOW.get();
        // The word shares a cache line with data that every call reads, so it is written only when it changes.
        if self.window.load(Relaxed) != window {
            self.window.store(window, Relaxed);
        }
        window
    }

    fn record(&self, now: Timestamp, name: (&str, &[u8]), outcome: TopOutcome, weight: u64) {
        let window = self.turn_to(now);
        let id = self.secret.hash_one(name);
        if let Ok(mut shelf) = self.shelves[(id % SHELVES as u64) as usize].try_lock() {
            shelf.turn_to(window);
            shelf.add(outcome, id, name.0, name.1, weight);
        }
    }

    /// Returns the keys with the most denials, or with [`TopOutcome::Allowed`] those with the most requests. The order
    /// is descending, and by name among equals. Covers one rule or all, in the window of the last recorded decision and
    /// the one before.
    ///
    /// Omits keys with a count of zero and keys whose count is mostly error. Locks one shelf at a time, while it is
    /// copied.
    pub(crate) fn most(&self, by: TopOutcome, rule: Option<&str>, at_most: usize) -> Vec<HotKey> {
        let mut found = Vec::new();
        for shelf in &self.shelves {
            let mut places = copy(shelf, self.window.load(Relaxed), rule);
            places.sort_unstable_by_key(|(_, place)| place.id);
            let keys = places.chunk_by(|(_, one), (_, other)| one.id == other.id);
            found.extend(keys.filter_map(|places| HotKey::sum(places, by)));
        }
        HotKey::sorted(found, by, at_most)
    }
}

impl fmt::Debug for Top {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Top").finish_non_exhaustive()
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopOutcome {
    /// The request was allowed.
    Allowed,
    /// The request was denied.
    Denied,
}

/// A key with many requests or many denials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "heavy hitter")]
#[doc(alias = "top talker")]
pub struct HotKey {
    /// The rule that decided; `None` for a limit that came with the request.
    pub rule: Option<String>,
    /// The parts of the key as text; a key of a limit that came with the request has one. Unprintable characters are escaped. A long key ends in `…` and eight hexadecimal
    /// digits of its hash, which distinguish keys with the same beginning.
    pub key: Vec<String>,
    /// The approximate number of requests. A report sorted by denials may miss allowed requests.
    pub asked: u64,
    /// The approximate number of denials. A report sorted by requests may miss denials.
    pub denied: u64,
    /// The maximum error of the number that the report is sorted by: the count taken over from other keys, plus three
    /// standard deviations of the sampling.
    pub error: u64,
}

impl HotKey {
    /// Sums all places of one key. Returns `None` if the number to sort by is mostly error. The other number has no
    /// error field, so it excludes counts that were taken over.
    fn sum(places: &[(TopOutcome, KeyCount)], by: TopOutcome) -> Option<HotKey> {
        let (_, place) = places.first()?;
        let mut tallies = [Tally::default(); 2];
        for (outcome, place) in places {
            tallies[*outcome as usize] = tallies[*outcome as usize].and(place.tally);
        }
        let [allowed, denied] = tallies;
        let (sorted, asked, denied) = match by {
            TopOutcome::Allowed => (allowed.and(denied), allowed.count + denied.count, denied.own()),
            TopOutcome::Denied => (denied, allowed.own() + denied.count, denied.count),
        };
        sorted.is_telling().then(|| HotKey {
            rule: (place.rule != DYNAMIC).then(|| place.rule.clone()),
            key: shown::parts(place),
            asked,
            denied,
            error: sorted.error(),
        })
    }

    /// Returns the keys with the most denials or requests in descending order.
    pub(crate) fn sorted(mut keys: Vec<HotKey>, by: TopOutcome, at_most: usize) -> Vec<HotKey> {
        keys.sort_unstable_by(|one, other| one.rank(by).cmp(&other.rank(by)));
        keys.truncate(at_most);
        keys
    }

    fn rank(&self, by: TopOutcome) -> impl Ord {
        let count = match by {
            TopOutcome::Allowed => self.asked,
            TopOutcome::Denied => self.denied,
        };
        (Reverse(count), &self.rule, &self.key)
    }
}

/// Copies all counts of a shelf, for one rule or for all.
fn copy(shelf: &Mutex<CountTable>, window: u64, rule: Option<&str>) -> Vec<(TopOutcome, KeyCount)> {
    let Ok(mut shelf) = shelf.lock() else { return Vec::new() };
    shelf.turn_to(window);
    let wanted = |place: &KeyCount| rule.is_none_or(|rule| place.rule == rule);
    shelf
        .places()
        .filter(|(_, place)| wanted(place))
        .map(|(outcome, place)| (outcome, place.clone()))
        .collect()
}
