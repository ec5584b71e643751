//! The clock of the process with another epoch, which outlives the process.
//!
//! The keeper of that epoch also records the latest time, so that no earlier time is returned after a restart. The time
//! is recorded about once per second, which costs a reader one comparison.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Clock, CounterClock, PER_SECOND, Timestamp};

/// A persistent record of the latest time.
pub(crate) trait Mark: fmt::Debug + Send + Sync {
    /// Records that the clock has returned this time. Calls may come out of order.
    fn reached(&self, now: Timestamp);
}

/// The clock of the process, shifted by a number of ticks.
#[derive(Debug)]
pub(crate) struct Shifted {
    /// The shift, added with wrap-around: the epoch may be before or after that of the process.
    by: u64,
    /// The time from which the mark is updated again.
    next: AtomicU64,
    mark: Arc<dyn Mark>,
}

impl Shifted {
    /// Creates a clock whose epoch is kept by `mark`. The clock keeps the mark alive.
    pub(crate) fn new(by: u64, mark: Arc<dyn Mark>) -> Shifted {
        Shifted { by, next: AtomicU64::new(0), mark }
    }

    /// Records the current time in the mark, even if less than a second has passed since the last record.
    pub(crate) fn leave_mark(&self) {
        self.remember(self.now().ticks());
    }

    #[inline]
    fn tell(&self, process: Timestamp) -> Timestamp {
        let now = process.ticks().wrapping_add(self.by);
        if now >= self.next.load(Ordering::Relaxed) {
            self.remember(now);
        }
        Timestamp::from_ticks(now)
    }

    /// Records this time in the mark. Several concurrent callers may each do so, which is harmless.
    #[cold]
    fn remember(&self, now: u64) {
        self.next.fetch_max(now.saturating_add(PER_SECOND), Ordering::Relaxed);
        self.mark.reached(Timestamp::from_ticks(now));
    }
}

impl Clock for Shifted {
    #[inline]
    fn now(&self) -> Timestamp {
        self.tell(CounterClock::new().now())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A mark that collects all recorded times.
    #[derive(Debug, Default)]
    pub(in crate::time) struct CollectedMarks(pub(in crate::time) Mutex<Vec<Timestamp>>);

    impl Mark for CollectedMarks {
        fn reached(&self, now: Timestamp) {
            self.0.lock().expect("no thread panics").push(now);
        }
    }

    fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    #[test]
    fn an_epoch_may_lie_before_or_after_that_of_the_process() {
        let shifted = |by: u64| Shifted::new(by, Arc::new(CollectedMarks::default())).tell(at(1000));
        assert_eq!(shifted(0), at(1000));
        assert_eq!(shifted(5), at(1005));
        assert_eq!(shifted(5_u64.wrapping_neg()), at(995));
    }

    #[test]
    fn the_time_is_marked_at_first_and_then_once_per_second() {
        let marks = Arc::new(CollectedMarks::default());
        let clock = Shifted::new(100, marks.clone());
        for process in [0, 1, PER_SECOND - 1, PER_SECOND, PER_SECOND + 1, 5 * PER_SECOND, 4 * PER_SECOND] {
            assert_eq!(clock.tell(at(process)), at(process + 100));
        }
        let expected = [100, PER_SECOND + 100, 5 * PER_SECOND + 100].map(at);
        assert_eq!(*marks.0.lock().unwrap(), expected);
    }

    #[test]
    fn time_goes_on_to_its_end() {
        let marks = Arc::new(CollectedMarks::default());
        let clock = Shifted::new(u64::MAX - 10, marks.clone());
        assert_eq!(clock.tell(at(0)), at(u64::MAX - 10));
        assert_eq!(clock.tell(at(10)), Timestamp::LAST);
        assert_eq!(*marks.0.lock().unwrap(), [at(u64::MAX - 10), Timestamp::LAST]);
    }
}
