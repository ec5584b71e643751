//! The clock that a limiter reads.
//!
//! Almost always it is the clock of the process, which is therefore not a trait object: a reading is a few
//! instructions, inlined into the caller. The clock of a zone in a file differs from it by a constant, and is read the
//! same way.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::{Clock, CounterClock, Shifted, Timestamp};

/// The clock of the process, of a zone in a file, or a custom one.
#[derive(Clone, Debug, Default)]
pub(crate) enum Source {
    /// The [`CounterClock`].
    #[default]
    Process,
    /// The same clock with an epoch that outlives the process.
    Shifted(Arc<Shifted>),
    /// A custom clock: a manual one, another machine's.
    Given(Arc<dyn Clock>),
}

impl Source {
    /// Returns the current time.
    #[inline(always)]
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Source::Process => CounterClock::new().now(),
            Source::Shifted(clock) => clock.now(),
            Source::Given(clock) => clock.now(),
        }
    }

    /// Returns true if both are the same clock.
    pub(crate) fn is_same(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Process, Source::Process) => true,
            (Source::Shifted(one), Source::Shifted(other)) => Arc::ptr_eq(one, other),
            (Source::Given(one), Source::Given(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Records the current time, if the epoch outlives the process.
    pub(crate) fn leave_mark(&self) {
        if let Source::Shifted(clock) = self {
            clock.leave_mark();
        }
    }
}

impl Clock for Source {
    #[inline]
    fn now(&self) -> Timestamp {
        Source::now(self)
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        match self {
            Source::Process => CounterClock::new().wake_at(at, waker),
            Source::Shifted(clock) => clock.wake_at(at, waker),
            Source::Given(clock) => clock.wake_at(at, waker),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::time::shifted::tests::CollectedMarks;
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

    /// Returns a source that is an hour ahead of the process.
    fn ahead() -> (Source, Arc<CollectedMarks>, Ticks) {
        let (marks, by) = (Arc::new(CollectedMarks::default()), Ticks::saturating_from(3600 * SECOND));
        (Source::Shifted(Arc::new(Shifted::new(by.get(), marks.clone()))), marks, by)
    }

    #[test]
    fn a_shifted_clock_goes_with_the_process_and_is_remembered() {
        let (source, marks, by) = ahead();
        let before = CounterClock::new().now().saturating_add(by);
        let now = source.now();
        assert!(before <= now && now <= CounterClock::new().now().saturating_add(by));
        assert_eq!(*marks.0.lock().unwrap(), [now]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn a_shifted_clock_wakes_at_its_own_time() {
        let (woken, wakes) = mpsc::channel();
        let (source, ..) = ahead();
        let at = source.now().saturating_add(Ticks::saturating_from(MILLISECOND));
        let is_set = source.wake_at(at, waker(move || woken.send(()).expect("the test waits")));
        assert!(is_set.unwrap());
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
