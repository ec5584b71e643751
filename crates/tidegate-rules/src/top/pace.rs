//! The sampling of counted decisions: all while they are few, then a sample, each with the weight of those that it
//! represents.
//!
//! The sample is random. Counting to sixteen would be cheaper, but requests come in patterns. If two rules always
//! decide in turn, every sixteenth decision belongs to the same rule.
//!
//! A key with `n` requests at a rate of one in sixteen is counted as `n` with a standard deviation of `sqrt(15 n)`; at
//! one in four, `sqrt(3 n)`. For 10,000 requests that is about 390 and 170.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tidegate_core::Timestamp;

use super::{TopOutcome, WINDOW};

/// The number of decisions per minute that are all counted. Their cost is negligible, and a manual test of a limit sees
/// each request counted.
const EXACT_NOTES: u64 = 4096;

/// A random sampler. Racing threads record a few more or fewer; each weight is correct for its draw.
#[derive(Debug)]
pub(super) struct Pace {
    /// The sampling intervals by [`TopOutcome`]; powers of two.
    one_in: [u64; 2],
    /// The start of the current minute, in ticks.
    since: AtomicU64,
    /// The number recorded in this minute, up to the bound, by [`TopOutcome`].
    noted: [AtomicU64; 2],
}

impl Pace {
    /// Creates a sampler that records all while they are few, then one in `one_in`.
    pub(super) fn new(one_in: [u64; 2]) -> Pace {
        assert!(one_in.iter().all(|number| number.is_power_of_two()), "a draw looks at whole bits");
        Pace { one_in, since: AtomicU64::default(), noted: Default::default() }
    }

    /// Returns the number of requests that the current one represents, or `None` if it is not recorded.
    #[inline]
    pub(super) fn weight(&self, outcome: TopOutcome) -> Option<u64> {
        if self.noted[outcome as usize].load(Relaxed) < EXACT_NOTES {
            return Some(1);
        }
        let one_in = self.one_in[outcome as usize];
        (draw() & (one_in - 1) == 0).then_some(one_in)
    }

    /// Records the time of a counted decision. Skipped decisions do not read the clock, so a busy minute lasts until
    /// the next call.
    pub(super) fn noted(&self, outcome: TopOutcome, now: Timestamp) {
        if now.ticks().abs_diff(self.since.load(Relaxed)) >= WINDOW.get() {
            self.since.store(now.ticks(), Relaxed);
            self.noted.iter().for_each(|noted| noted.store(0, Relaxed));
        }
        let noted = &self.noted[outcome as usize];
        if noted.load(Relaxed) < EXACT_NOTES {
            noted.fetch_add(1, Relaxed);
        }
    }
}

thread_local! {
    /// The last number drawn on this thread; zero before the first draw.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Returns a nonzero random number (xorshift).
#[inline]
fn draw() -> u64 {
    let mut number = DRAWN.get();
    if number == 0 {
        number = first_number();
    }
    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    DRAWN.set(number);
    number
}

#[cold]
fn first_number() -> u64 {
    RandomState::new().hash_one(()) | 1
}

/// Makes the draws of this thread deterministic.
#[cfg(test)]
pub(super) fn seed(number: u64) {
    DRAWN.set(number);
}
