//! A counter that is calibrated by the system's clock, for many concurrent readers.
//!
//! A reader loads the line in force, then the counter, and needs nothing else. It takes the lock only if the line has
//! ended, or if there is none yet. Times of the system's clock are returned only under that lock, so none of them can
//! be later than the start of a line that is laid afterwards. A reader that arrives while another one lays the next
//! line does not wait: until then the time stays at the end of the last line.

use super::Timestamp;
use super::calibration::Calibration;
use super::segment::{ClockSegment, Pair};
use crate::seqlock::SeqLock;
use crate::sync::{CachePadded, Mutex};

/// A counter, and the clock that calibrates it.
pub(super) trait ClockPair {
    /// Returns the counter, read after all preceding operations of the program. All threads see the same counter.
    fn counter(&self) -> u64;

    /// Returns the system's clock, which is accurate but slow.
    fn system(&self) -> Timestamp;
}

/// A clock with the time of the system's clock, read from a faster counter.
#[derive(Debug)]
pub(super) struct CalibratedClock<D> {
    line: CachePadded<SeqLock<4>>,
    calibration: Mutex<Calibration>,
    dials: D,
}

impl<D: ClockPair> CalibratedClock<D> {
    /// Creates a clock, and takes the first pair, from which everything is measured.
    pub(super) fn new(dials: D) -> CalibratedClock<D> {
        CalibratedClock {
            line: CachePadded(SeqLock::new(ClockSegment::NONE.to_words())),
            calibration: Mutex::new(Calibration::new(pair(&dials))),
            dials,
        }
    }

    /// Returns the current time; never less than any thread has seen before, as far as the counter is read in order.
    #[inline(always)]
    pub(super) fn now(&self) -> Timestamp {
        // In this order: a counter that is read after a line is not before its start.
        let line = ClockSegment::from_words(self.line.0.read());
        let counter = self.dials.counter();
        match line.at(counter) {
            Some(now) => now,
            None => self.renew(line.just_ended(counter)),
        }
    }

    #[cfg(test)]
    pub(super) fn has_line(&self) -> bool {
        self.line.0.read() != ClockSegment::NONE.to_words()
    }

    /// Returns the current time if the line in force does not cover it, or the end of the line if the counter has just
    /// passed it. The line itself is not an argument, because it would be written to memory for every reading.
    #[cold]
    fn renew(&self, just_ended: Option<Timestamp>) -> Timestamp {
        let mut calibration = match (self.calibration.try_lock(), just_ended) {
            (Some(calibration), _) => calibration,
            (None, Some(end)) => return end,
            (None, None) => self.calibration.lock(),
        };
        if let Some(now) = calibration.line().at(self.dials.counter()) {
            return now;
        }
        if let Some(now) = calibration.while_measuring(self.dials.system()) {
            return now;
        }
        let now = calibration.anchor(pair(&self.dials));
        self.line.0.replace(|_| calibration.line().to_words());
        now
    }
}

/// Reads both clocks: the best of a few attempts, which is the one with the fewest counts, because an attempt can be
/// interrupted between the two readings. The counter comes first, so that a line through the pair is ahead of the
/// system's clock rather than behind.
fn pair(dials: &impl ClockPair) -> Pair {
    let attempt = || {
        let counter = dials.counter();
        let time = dials.system();
        (dials.counter().wrapping_sub(counter), Pair { counter, time })
    };
    let best = [attempt(), attempt(), attempt()].into_iter().min_by_key(|(counts, _)| *counts);
    best.expect("one of three is the best").1
}

#[cfg(test)]
#[cfg(not(tidegate_models))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::time::PER_SECOND;

    const STEP: u64 = PER_SECOND / 10_000;

    /// A jump longer than any test: the counter never shows the same value again.
    const FAR: u64 = 10_000 * PER_SECOND;

    /// Clocks that advance by a step whenever one of them is read. The counter counts ticks. It can be made to jump,
    /// and the system's clock can be made to delay a reader.
    #[derive(Debug, Default)]
    struct Fake {
        steps: AtomicU64,
        jumped: AtomicU64,
        delays: std::sync::Mutex<Vec<u64>>,
    }

    impl Fake {
        fn step(&self) -> u64 {
            (self.steps.fetch_add(1, Ordering::SeqCst) + 1) * STEP
        }

        fn shows(&self) -> u64 {
            self.steps.load(Ordering::SeqCst) * STEP
        }
    }

    impl ClockPair for Fake {
        fn counter(&self) -> u64 {
            self.step() + self.jumped.load(Ordering::SeqCst)
        }

        fn system(&self) -> Timestamp {
            let delay = self.delays.lock().expect("no thread panics").pop().unwrap_or(0);
            self.steps.fetch_add(delay, Ordering::SeqCst);
            Timestamp::from_ticks(self.step())
        }
    }

    fn with_line() -> CalibratedClock<Fake> {
        let steered = CalibratedClock::new(Fake::default());
        assert!(!steered.has_line());
        for _ in 0..100 {
            steered.now();
        }
        assert!(steered.has_line());
        steered
    }

    #[test]
    fn who_comes_while_a_line_is_laid_reads_the_end_of_the_last_and_does_not_wait() {
        let steered = with_line();
        let line = ClockSegment::from_words(steered.line.0.read());
        let held = steered.calibration.lock();
        let last = (0..700).map(|_| steered.now()).last().expect("many readings");
        assert_eq!(last, line.end(), "so many steps are more than a line, and less than two");
        drop(held);
        assert!(steered.now() >= last);
    }

    #[test]
    fn a_reading_from_a_line_reads_nothing_but_the_counter() {
        let steered = with_line();
        let (before, line) = (steered.dials.shows(), steered.line.0.read());
        // The line was laid with its counter a step before the system's clock, and leads by that.
        assert_eq!(steered.now().ticks(), before + 2 * STEP);
        assert_eq!(steered.dials.shows(), before + STEP);
        for _ in 0..600 {
            steered.now();
        }
        assert_ne!(steered.line.0.read(), line);
    }

    #[test]
    fn who_comes_too_late_to_lay_a_line_reads_that_of_another() {
        let steered = with_line();
        let (before, line) = (steered.dials.shows(), steered.line.0.read());
        assert_eq!(steered.renew(None).ticks(), before + 2 * STEP);
        assert_eq!(steered.line.0.read(), line);
    }

    #[test]
    fn of_three_pairs_the_one_least_interrupted_is_taken() {
        for (delays, step) in [([0, 5, 5], 1), ([5, 0, 5], 9), ([5, 5, 0], 17)] {
            let fake = Fake::default();
            fake.delays.lock().unwrap().extend(delays.into_iter().rev());
            let expected = Pair { counter: step * STEP, time: Timestamp::from_ticks((step + 1) * STEP) };
            assert_eq!(pair(&fake), expected);
        }
    }

    #[test]
    fn time_never_goes_back_between_threads_even_if_the_counter_does() {
        let rounds = if cfg!(miri) { 300 } else { 100_000 };
        let steered = CalibratedClock::new(Fake::default());
        steered.dials.jumped.store(u64::MAX / 2, Ordering::SeqCst);
        let last = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 1..=rounds {
                        let seen = last.load(Ordering::SeqCst);
                        let now = steered.now().ticks();
                        assert!(now >= seen, "{now} after {seen} in round {round}");
                        last.fetch_max(now, Ordering::SeqCst);
                        if round % 10_000 == 0 {
                            steered.dials.jumped.fetch_sub(FAR, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        let error = steered.now().ticks().abs_diff(steered.dials.shows());
        assert!(error < PER_SECOND / 10, "{error}");
    }
}
