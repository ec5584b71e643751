//! How many are noted: all while they are few, then some, each with the weight of those it stands for.
//!
//! Who is noted is drawn by lot. To count to sixteen would be cheaper, but asks come in patterns: where two
//! rules always decide in turn, each sixteenth note is of the same rule.
//!
//! A key that asks `n` times while one in sixteen is noted is counted as `n` with a standard deviation of
//! `sqrt(15 n)`, and of `sqrt(3 n)` while it is one in four: of 10,000, about 390 and 170.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tidegate::Timestamp;

use super::{Outcome, WINDOW};

/// So many notes within a minute cost nothing that matters, and whoever tries a limit by hand sees each.
const EXACT_NOTES: u64 = 4096;

/// Draws who is noted. Threads that race here note a few more or fewer; each weight is right for its draw.
#[derive(Debug)]
pub(super) struct Pace {
    /// By [`Outcome`]; powers of two.
    one_in: [u64; 2],
    /// When the minute at hand began, in ticks.
    since: AtomicU64,
    /// How many were noted in it, up to the bound, by [`Outcome`].
    noted: [AtomicU64; 2],
}

impl Pace {
    /// Notes all while they are few, then one in so many.
    pub(super) fn new(one_in: [u64; 2]) -> Pace {
        assert!(one_in.iter().all(|number| number.is_power_of_two()), "a draw looks at whole bits");
        Pace { one_in, since: AtomicU64::default(), noted: Default::default() }
    }

    /// How many asks the one at hand stands for, if it is to be noted.
    #[inline]
    pub(super) fn weight(&self, outcome: Outcome) -> Option<u64> {
        if self.noted[outcome as usize].load(Relaxed) < EXACT_NOTES {
            return Some(1);
        }
        let one_in = self.one_in[outcome as usize];
        (draw() & (one_in - 1) == 0).then_some(one_in)
    }

    /// Says when one was noted. Nobody else reads the clock, so a busy minute lasts until then.
    pub(super) fn noted(&self, outcome: Outcome, now: Timestamp) {
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
    /// The last number drawn on this thread; none yet is zero.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Any number but zero (xorshift).
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

/// Makes the draws of this thread the same in each run.
#[cfg(test)]
pub(super) fn seed(number: u64) {
    DRAWN.set(number);
}
