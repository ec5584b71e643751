//! What a limiter reads its time from.
//!
//! Nearly always that is the clock of the process, which is therefore no trait object: its reading is a few
//! instructions, and they become a part of the caller.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::{Clock, CounterClock, Timestamp};

/// The clock of the process, or another.
#[derive(Clone, Debug, Default)]
pub(crate) enum Source {
    /// The [`CounterClock`].
    #[default]
    Process,
    /// A clock that somebody made: a manual one, another machine's.
    Given(Arc<dyn Clock>),
}

impl Source {
    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Source::Process => CounterClock::new().now(),
            Source::Given(clock) => clock.now(),
        }
    }

    /// Has a task woken at this time, or a little later, as [`Clock::wake_at`] says.
    pub(crate) fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        match self {
            Source::Process => CounterClock::new().wake_at(at, waker),
            Source::Given(clock) => clock.wake_at(at, waker),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::time::woken::{Woken, waker};
    use crate::{MILLISECOND, ManualClock, SECOND, Ticks};

    #[test]
    fn without_a_clock_given_it_is_that_of_the_process() {
        let before = CounterClock::new().now();
        let now = Source::default().now();
        assert!(before <= now && now <= CounterClock::new().now());
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn the_clock_of_the_process_wakes_who_waits() {
        let (woken, wakes) = mpsc::channel();
        let source = Source::Process;
        let at = source.now().saturating_add(Ticks::saturating_from(MILLISECOND));
        source.wake_at(at, waker(move || woken.send(()).expect("the test waits"))).unwrap();
        assert_eq!(wakes.recv_timeout(10 * SECOND), Ok(()));
    }

    #[test]
    fn a_given_clock_tells_the_time_and_wakes() {
        let (clock, woken) = (Arc::new(ManualClock::new()), Woken::default());
        let source = Source::Given(clock.clone());
        let at = Timestamp::after_epoch(SECOND);
        source.wake_at(at, woken.waker(1)).unwrap();
        assert_eq!(woken.take(), []);
        clock.advance(SECOND);
        assert_eq!(source.now(), at);
        assert_eq!(woken.take(), [1]);
    }
}
