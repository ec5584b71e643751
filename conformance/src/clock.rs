//! A clock that goes on while something is decided.
//!
//! With a clock that stands still, a call that reads it twice and mixes the readings looks right. This one can
//! advance at every reading, so that each reading has a time of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::{Clock, Ticks, Timestamp};

/// A clock that is set by hand and advances by a fixed step at every reading; the step is zero at first.
#[derive(Debug, Default)]
pub struct TickingClock {
    next: AtomicU64,
    step: AtomicU64,
}

impl TickingClock {
    /// A clock at its epoch that stands still.
    pub fn new() -> TickingClock {
        TickingClock::default()
    }

    /// Sets the time of the next reading. The step stays as it is.
    pub fn set(&self, now: Timestamp) {
        self.next.store(now.ticks(), Ordering::SeqCst);
    }

    /// Advances by this much after every reading from now on; zero makes the clock stand still.
    pub fn tick(&self, step: Ticks) {
        self.step.store(step.get(), Ordering::SeqCst);
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        let step = self.step.load(Ordering::SeqCst);
        Timestamp::from_ticks(self.next.fetch_add(step, Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_is_one_step_later_until_the_clock_is_told_to_stand_still() {
        let clock = TickingClock::new();
        let read = || [(); 3].map(|()| clock.now().ticks());
        assert_eq!(read(), [0, 0, 0]);
        clock.tick(Ticks::new(5));
        assert_eq!(read(), [0, 5, 10]);
        clock.set(Timestamp::from_ticks(100));
        assert_eq!(read(), [100, 105, 110]);
        clock.tick(Ticks::ZERO);
        assert_eq!(read(), [115, 115, 115]);
    }
}
