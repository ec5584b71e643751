//! A clock that goes on while something is decided.
//!
//! With a clock that stands still, a call that reads it twice and mixes the readings looks right. This one can
//! advance at every reading, so that each reading has a time of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use tidegate::{Clock, ManualClock, Ticks, Timestamp};

/// A manual clock that advances by a fixed step at every reading; the step is zero at first.
#[derive(Debug, Default)]
pub struct TickingClock {
    manual: Arc<ManualClock>,
    step: AtomicU64,
    /// The sum of all steps so far.
    ahead: AtomicU64,
}

impl TickingClock {
    /// A clock at its epoch that stands still.
    pub fn new() -> TickingClock {
        TickingClock::default()
    }

    /// The same over a clock that a test moves.
    pub fn over(manual: Arc<ManualClock>) -> TickingClock {
        TickingClock { manual, ..TickingClock::default() }
    }

    /// Sets the time of the next reading. The step stays as it is.
    pub fn set(&self, now: Timestamp) {
        self.manual.set(now);
    }

    /// Returns the time by which the clock has advanced by itself.
    pub fn ahead(&self) -> Ticks {
        crate::ticks(self.ahead.load(Ordering::SeqCst))
    }

    /// Advances by this much after every reading from now on; zero makes the clock stand still. Only one thread at a
    /// time may read a clock that advances.
    pub fn tick(&self, step: Ticks) {
        self.step.store(step.get(), Ordering::SeqCst);
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        let (now, step) = (self.manual.now(), self.step.load(Ordering::SeqCst));
        if step > 0 {
            self.manual.set(now.saturating_add(crate::ticks(step)));
            self.ahead.fetch_add(step, Ordering::SeqCst);
        }
        now
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        self.manual.wake_at(at, waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_is_one_step_later_until_the_step_is_set_to_zero() {
        let clock = TickingClock::new();
        let read = || [(); 3].map(|()| clock.now().ticks());
        assert_eq!(read(), [0, 0, 0]);
        clock.tick(crate::ticks(5));
        assert_eq!(read(), [0, 5, 10]);
        clock.set(Timestamp::from_ticks(100));
        assert_eq!(read(), [100, 105, 110]);
        clock.tick(Ticks::ZERO);
        assert_eq!(read(), [115, 115, 115]);
        assert_eq!(clock.ahead(), crate::ticks(30));
    }
}
