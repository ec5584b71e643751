//! Where the time comes from: the system's monotonic clock, or a clock that is set by hand.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Ticks, Timestamp};

/// Tells the time since its own epoch.
///
/// A clock may step back (another machine's clock, a restored snapshot): every algorithm bounds what such a
/// step can do. Wall time is not a clock in this sense and is never used to decide.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The system's monotonic clock; its epoch is the moment it was made.
#[derive(Clone, Debug)]
pub struct SystemClock {
    epoch: Instant,
}

impl SystemClock {
    /// A clock whose epoch is now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system's clock")]
    pub fn new() -> SystemClock {
        SystemClock { epoch: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::after_epoch(self.epoch.elapsed())
    }
}

/// A clock that stands still until it is moved, forwards or back. For tests and replays.
#[derive(Debug, Default)]
pub struct ManualClock {
    ticks: AtomicU64,
}

impl ManualClock {
    /// A clock that shows its epoch.
    pub const fn new() -> ManualClock {
        ManualClock { ticks: AtomicU64::new(0) }
    }

    /// Shows another time from now on.
    pub fn set(&self, now: Timestamp) {
        self.ticks.store(now.ticks(), Ordering::SeqCst);
    }

    /// Moves forwards, at most to [`Timestamp::LAST`].
    pub fn advance(&self, by: Duration) {
        self.move_to(|now| now.saturating_add(Ticks::saturating_from(by)));
    }

    /// Steps back, at most to the epoch.
    pub fn step_back(&self, by: Duration) {
        self.move_to(|now| now.saturating_sub(Ticks::saturating_from(by)));
    }

    fn move_to(&self, target: impl Fn(Timestamp) -> Timestamp) {
        let moved = |ticks| Some(target(Timestamp::from_ticks(ticks)).ticks());
        // The closure always gives a time, so the update cannot fail.
        let _ = self.ticks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.ticks.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SECOND;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new();
        assert_eq!(clock.now(), Timestamp::EPOCH);
        clock.advance(3 * SECOND);
        clock.step_back(SECOND);
        assert_eq!(clock.now(), Timestamp::after_epoch(2 * SECOND));
        clock.step_back(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::EPOCH);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::LAST);
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::new();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
