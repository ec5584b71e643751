//! The clock trait, and the system's clock.
//!
//! A clock also wakes the tasks that wait for one of its times, because only the clock can observe them: the time of a
//! manual clock changes only when the test moves it.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use std::{fmt, io};

use super::boot::{since_boot, wall_since_epoch};
use super::{Ticks, Timestamp, timer};

/// A source of the time since its own epoch.
///
/// A clock may step back (another machine's clock, a restored snapshot): every algorithm bounds the effect of such a
/// step. Wall time is not a clock in this sense and is never used to decide.
#[doc(alias = "time source")]
#[doc(alias = "now")]
#[doc(alias = "mock clock")]
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Arranges for a task to be woken at this time of this clock, or a little later. Returns true if it will be woken.
    /// A clock that does not advance by itself returns false if that time has already come; the caller then checks
    /// again.
    ///
    /// Of several requests with the same waker, the earliest counts. A task may be woken too early, for three reasons.
    /// It requested an earlier time before; the clock stepped back, which wakes every task; or this clock runs slower
    /// than the system's clock, which drives the timer of the process. A woken task checks the time, and requests again
    /// if needed. No task is woken from inside this call.
    ///
    /// # Errors
    /// Fails if the thread of that timer cannot be started; then the task is not woken.
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

/// The system's monotonic clock, which cannot be set. Its epoch is 2024-01-01T00:00Z, so days begin at midnight UTC.
///
/// The wall clock is read once, when this clock is created; setting it later has no effect. A wall clock before 2024 or
/// after 2049 is ignored, and the epoch is then a second before the creation. On Linux this clock advances while the
/// machine is suspended.
#[doc(alias = "monotonic clock")]
#[doc(alias = "Instant")]
#[derive(Clone, Debug)]
pub struct SystemClock {
    at_boot: u64,
}

/// The least time that a new clock shows, even if the wall clock is ignored. The clock of a process may be a little
/// behind that of the machine, and times before zero are not representable.
pub(crate) const BEGINNING: Duration = Duration::from_secs(1);

impl SystemClock {
    /// Creates a clock that starts with the time of the wall clock.
    pub fn new() -> SystemClock {
        SystemClock::showing(wall_since_epoch().unwrap_or_default().max(BEGINNING))
    }

    /// Creates a clock that shows this time since its epoch.
    fn showing(since_epoch: Duration) -> SystemClock {
        let ticks = Ticks::saturating_from(since_epoch).get();
        SystemClock { at_boot: ticks.wrapping_sub(Ticks::saturating_from(since_boot()).get()) }
    }

    /// Returns the ticks of this clock at the start of the machine. A time before the epoch wraps around.
    pub(super) fn at_boot(&self) -> u64 {
        self.at_boot
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(Ticks::saturating_from(since_boot()).get().wrapping_add(self.at_boot))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::time::woken::{Woken, waker};
    use crate::{MILLISECOND, ManualClock, SECOND};

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
    #[cfg_attr(any(miri, tidegate_models), ignore = "it needs the system's clock")]
    fn the_system_clock_shows_the_time_since_2024() {
        let shown = || SystemClock::new().now().since(Timestamp::EPOCH).to_duration();
        let (before, now, after) = (wall_since_epoch(), shown(), wall_since_epoch());
        let (before, after) = before.zip(after).expect("a clock that was set");
        assert!(before <= now + MILLISECOND && now <= after + MILLISECOND, "{before:?} {now:?} {after:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn a_clock_wakes_at_its_time_without_any_doing() {
        let (woken, wakes) = mpsc::channel();
        let clock = SystemClock::new();
        let at = clock.now().saturating_add(Ticks::saturating_from(Duration::from_millis(3)));
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
