//! What a clock is, and the system's own.
//!
//! A clock also wakes who waits for a time of it, because only the clock knows when that comes: the time of a
//! manual clock comes when the test says so.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use std::{fmt, io};

use super::boot::since_boot;
use super::{Ticks, Timestamp, timer};

/// Tells the time since its own epoch.
///
/// A clock may step back (another machine's clock, a restored snapshot): every algorithm bounds what such a
/// step can do. Wall time is not a clock in this sense and is never used to decide.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Has a task woken at this time of this clock, or a little later. Whether it will be: a clock that does
    /// not pass by itself says no if that time has come already, and whoever asked looks again.
    ///
    /// Of several requests by the same waker the earliest counts. A task may be woken too early: it asked for
    /// an earlier time before, the clock was stepped back, which wakes everybody, or it runs more slowly than
    /// the system's clock, by which the process's timer wakes. Whoever is woken looks, and asks again. Nobody is
    /// ever woken from inside of this call. Fails if there is no thread to be had for that timer; then nobody is
    /// woken.
    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        timer::wake_after(at.since(self.now()), waker).map(|()| true)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    #[inline]
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        (**self).wake_at(at, waker)
    }
}

/// The system's clock, which nobody sets; its epoch is the moment it was made.
///
/// On Linux it goes on while the machine sleeps.
#[derive(Clone, Debug)]
pub struct SystemClock {
    epoch: Duration,
}

impl SystemClock {
    /// A clock whose epoch is now.
    pub fn new() -> SystemClock {
        SystemClock { epoch: since_boot() }
    }

    /// The time since the start of the machine at which this clock shows zero.
    pub(super) fn epoch_since_boot(&self) -> Ticks {
        Ticks::saturating_from(self.epoch)
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::after_epoch(since_boot().saturating_sub(self.epoch))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::time::woken::{Woken, waker};
    use crate::{ManualClock, SECOND};

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

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn a_clock_wakes_at_its_time_without_any_doing() {
        let (woken, wakes) = mpsc::channel();
        let clock = SystemClock::new();
        let at = Timestamp::after_epoch(Duration::from_millis(3));
        clock.wake_at(at, waker(move || woken.send(()).expect("the test waits"))).unwrap();
        wakes.recv_timeout(10 * SECOND).unwrap();
        assert!(clock.now() >= at);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn a_time_that_has_come_wakes_from_another_thread() {
        let (woken, wakes) = mpsc::channel();
        let send = move || woken.send(thread::current().id()).expect("the test waits");
        assert!(SystemClock::new().wake_at(Timestamp::EPOCH, waker(send)).unwrap());
        assert_ne!(wakes.recv_timeout(10 * SECOND).unwrap(), thread::current().id());
    }

    #[test]
    fn a_shared_clock_is_the_clock_itself() {
        let (clock, woken) = (Arc::new(ManualClock::new()), Woken::default());
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        assert!(Clock::wake_at(&shared, Timestamp::after_epoch(SECOND), woken.waker(1)).unwrap());
        clock.advance(SECOND);
        assert_eq!(Clock::now(&shared), Timestamp::after_epoch(SECOND));
        assert_eq!(woken.take(), [1]);
        assert!(!Clock::wake_at(&shared, Timestamp::after_epoch(SECOND), woken.waker(1)).unwrap());
    }
}
