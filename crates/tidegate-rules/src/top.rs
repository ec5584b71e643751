//! Who hits the limits: the keys that ask and are refused most, in about the last minute or two.
//!
//! ```text
//!                           a shelf, with its own lock
//!  hash of rule and key ──> allowed: this window, the one before
//!  picks one of 64          refused: this window, the one before      16 places in each
//! ```
//!
//! A place belongs to one rule and key and counts for it. Who finds no place takes over that with the lowest
//! count and goes on from there, which is the most it can have had before (Space-Saving). So a count is too
//! high by at most what was taken over, which is kept beside it and is at most a sixteenth of what came to the
//! shelf: about 1/1024 of everything. A flood of keys fights over the lowest places; the memory is fixed.
//!
//! Allowed and refused are counted apart, and what was asked is both together: one place is touched per note,
//! and no flood of allowed keys can push out one that is refused.
//!
//! Under load only some are noted, with a weight (`pace.rs`), and who finds a shelf in use passes by. Sampling
//! errs both ways, by about as much as [`Heavy::error`] says; passing by errs downwards, and most for a key that
//! several threads ask for at once.

mod pace;
mod shelf;
mod shown;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate::{Key, Ticks, Timestamp};

use pace::Pace;
use shelf::{Place, Shelf, Tally};

/// How long one sketch counts before the next begins; a report is of two.
const WINDOW: Ticks = Ticks::saturating_from(Duration::from_secs(60));

/// The most keys that are counted at once, for each outcome and window.
const MAX_KEYS: usize = 1024;

/// The bytes that are kept of a longer key, to be shown. It is told from others by all of them.
const MAX_SHOWN_BYTES: usize = 128;

/// So many that a hold of a lock is short and rarely in the way of another.
const SHELVES: usize = 64;

/// Once many were allowed within a minute, one in so many is noted.
const ALLOWED_ONE_IN: u64 = 16;

/// Once many were refused within a minute, one in so many is noted.
const REFUSED_ONE_IN: u64 = 4;

/// Counts who asks and who is refused, of all rules together. Shared by all threads.
pub(crate) struct Top {
    /// Nobody outside can choose keys that fall on one shelf or seem to be the same.
    secret: RandomState,
    pace: Pace,
    /// That of the last note.
    window: AtomicU64,
    shelves: Box<[Mutex<Shelf>]>,
}

impl Top {
    /// Nothing counted yet.
    pub(crate) fn new() -> Top {
        Top::with_pace(Pace::new([ALLOWED_ONE_IN, REFUSED_ONE_IN]))
    }

    fn with_pace(pace: Pace) -> Top {
        let shelves = (0..SHELVES).map(|_| Mutex::default()).collect();
        Top { secret: RandomState::new(), pace, window: AtomicU64::new(0), shelves }
    }

    /// Counts one decision, or passes it by. Waits for nobody, and reads the clock only to count.
    ///
    /// The clock may jump, either way: what was counted at a time far from now is forgotten.
    #[inline]
    pub(crate) fn note(&self, now: impl FnOnce() -> Timestamp, rule: &str, key: &Key, outcome: Outcome) {
        if let Some(weight) = self.pace.weight(outcome) {
            let now = now();
            self.pace.noted(outcome, now);
            self.record(now, (rule, key.as_bytes()), outcome, weight);
        }
    }

    /// Lets time go on, also when nobody asks any more: what is too long ago is in no report.
    pub(crate) fn turn_to(&self, now: Timestamp) -> u64 {
        let window = now.ticks() / WINDOW.get();
        // It lies beside what every note reads, so it is written only when it changes.
        if self.window.load(Relaxed) != window {
            self.window.store(window, Relaxed);
        }
        window
    }

    fn record(&self, now: Timestamp, name: (&str, &[u8]), outcome: Outcome, weight: u64) {
        let window = self.turn_to(now);
        let id = self.secret.hash_one(name);
        if let Ok(mut shelf) = self.shelves[(id % SHELVES as u64) as usize].try_lock() {
            shelf.turn_to(window);
            shelf.add(outcome, id, name.0, name.1, weight);
        }
    }

    /// The keys that were refused most, or by [`Outcome::Allowed`] those that asked most, from the most to the
    /// least and among equals by name; of one rule or of all; in the window of the last note and the one before.
    ///
    /// Left out are keys that never did, and those whose count is mostly error. One shelf is held at a time,
    /// while it is copied.
    pub(crate) fn most(&self, by: Outcome, rule: Option<&str>, at_most: usize) -> Vec<Heavy> {
        let mut found = Vec::new();
        for shelf in &self.shelves {
            let mut places = copy(shelf, self.window.load(Relaxed), rule);
            places.sort_unstable_by_key(|(_, place)| place.id);
            let keys = places.chunk_by(|(_, one), (_, other)| one.id == other.id);
            found.extend(keys.filter_map(|places| Heavy::sum(places, by)));
        }
        found.sort_unstable_by(|one, other| one.rank(by).cmp(&other.rank(by)));
        found.truncate(at_most);
        found
    }
}

impl fmt::Debug for Top {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Top").finish_non_exhaustive()
    }
}

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It may happen.
    Allowed,
    /// It may not.
    Refused,
}

/// A key that asks or is refused much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heavy {
    /// The rule that decided.
    pub rule: String,
    /// The parts of the key as text: what cannot be printed is escaped, and a long key ends in `…` and eight
    /// digits, which tell it from others that begin alike.
    pub key: Vec<String>,
    /// About how often it asked. In a report by refusals, asks that were allowed may be missing.
    pub asked: u64,
    /// About how often it was refused. In a report by asks, refusals may be missing.
    pub refused: u64,
    /// How much too high the number may be that the report is sorted by: what was taken over from other keys,
    /// and three standard deviations of sampling.
    pub error: u64,
}

impl Heavy {
    /// All places of one key together, if the number to sort by says anything. The other number has no error
    /// beside it, so it is without what was taken over.
    fn sum(places: &[(Outcome, Place)], by: Outcome) -> Option<Heavy> {
        let (_, place) = places.first()?;
        let mut tallies = [Tally::default(); 2];
        for (outcome, place) in places {
            tallies[*outcome as usize] = tallies[*outcome as usize].and(place.tally);
        }
        let [allowed, refused] = tallies;
        let (sorted, asked, refused) = match by {
            Outcome::Allowed => (allowed.and(refused), allowed.count + refused.count, refused.own()),
            Outcome::Refused => (refused, allowed.own() + refused.count, refused.count),
        };
        sorted.is_telling().then(|| Heavy {
            rule: place.rule.clone(),
            key: shown::parts(place),
            asked,
            refused,
            error: sorted.error(),
        })
    }

    fn rank(&self, by: Outcome) -> impl Ord {
        let count = match by {
            Outcome::Allowed => self.asked,
            Outcome::Refused => self.refused,
        };
        (Reverse(count), &self.rule, &self.key)
    }
}

/// All that is counted on a shelf for a rule, or for all.
fn copy(shelf: &Mutex<Shelf>, window: u64, rule: Option<&str>) -> Vec<(Outcome, Place)> {
    let Ok(mut shelf) = shelf.lock() else { return Vec::new() };
    shelf.turn_to(window);
    let wanted = |place: &Place| rule.is_none_or(|rule| place.rule == rule);
    shelf
        .places()
        .filter(|(_, place)| wanted(place))
        .map(|(outcome, place)| (outcome, place.clone()))
        .collect()
}
