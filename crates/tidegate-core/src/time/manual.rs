//! A clock that is set by hand, for tests and replays.
//!
//! The time is changed before the list of waiters is locked, and a waiter reads the time under that lock. So a waiter
//! that is not in the list sees the new time. No task is woken under the lock, because a woken task may wait again at
//! once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use std::{io, mem};

use super::{Clock, Ticks, Timestamp};

/// A clock that stands still until it is moved, forward or back. For tests and replays.
///
/// Moving it forward wakes, in order, the tasks whose time has come. Moving it back wakes all tasks, which check again.
///
/// ```
/// use std::sync::Arc;
/// use tidegate::{Limit, Limiter, ManualClock, SECOND};
///
/// let clock = Arc::new(ManualClock::new());
/// let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock.clone());
/// assert!(limiter.admit("ana").is_allowed());
/// assert!(!limiter.admit("ana").is_allowed());
/// clock.advance(SECOND); // no sleep
/// assert!(limiter.admit("ana").is_allowed());
/// ```
#[doc(alias = "mock clock")]
#[doc(alias = "fake time")]
#[doc(alias = "test clock")]
#[doc(alias = "time travel")]
#[derive(Debug, Default)]
pub struct ManualClock {
    ticks: AtomicU64,
    waiting: Mutex<Vec<(Timestamp, Waker)>>,
}

impl ManualClock {
    /// Creates a clock that shows its epoch.
    pub const fn new() -> ManualClock {
        ManualClock { ticks: AtomicU64::new(0), waiting: Mutex::new(Vec::new()) }
    }

    /// Sets the time.
    pub fn set(&self, now: Timestamp) {
        self.move_to(|_| now);
    }

    /// Moves forward, at most to [`Timestamp::LAST`].
    pub fn advance(&self, by: Duration) {
        self.move_to(|now| now.saturating_add(Ticks::saturating_from(by)));
    }

    /// Steps back, at most to the epoch. It simulates a wall clock that is set back, or a failover to a host whose
    /// clock is behind.
    pub fn step_back(&self, by: Duration) {
        self.move_to(|now| now.saturating_sub(Ticks::saturating_from(by)));
    }

    /// Moves the time, then wakes those waiters that the new time concerns, without the lock.
    fn move_to(&self, target: impl Fn(Timestamp) -> Timestamp) {
        let moved = |ticks| Some(target(Timestamp::from_ticks(ticks)).ticks());
        let before = self
            .ticks
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved)
            .map_or_else(Timestamp::from_ticks, Timestamp::from_ticks);
        let now = target(before);
        let until = if now < before { Timestamp::LAST } else { now };
        for waker in self.take_waiting(until) {
            waker.wake();
        }
    }

    /// Removes the waiters for a time up to this, ordered by time, then by arrival.
    fn take_waiting(&self, until: Timestamp) -> Vec<Waker> {
        let mut waiting = self.lock();
        let (mut taken, left): (Vec<_>, Vec<_>) =
            mem::take(&mut *waiting).into_iter().partition(|(at, _)| *at <= until);
        *waiting = left;
        drop(waiting);
        taken.sort_by_key(|(at, _)| *at);
        taken.into_iter().map(|(_, waker)| waker).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Timestamp, Waker)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.ticks.load(Ordering::SeqCst))
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        let mut waiting = self.lock();
        if self.now() >= at {
            return Ok(false);
        }
        let before = waiting.iter().position(|(_, other)| other.will_wake(&waker));
        let before = before.map(|before| waiting.remove(before));
        let earliest = before.as_ref().map_or(at, |(earlier, _)| at.min(*earlier));
        waiting.push((earliest, waker));
        drop(waiting);
        drop(before);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SECOND;
    use crate::time::woken::{Woken, waker};

    fn after(seconds: u32) -> Timestamp {
        Timestamp::after_epoch(seconds * SECOND)
    }

    /// Returns a clock at ten seconds and its waiters, named by the second they wait for.
    fn waited_for(seconds: &[u32]) -> (ManualClock, Woken) {
        let (clock, woken) = (ManualClock::new(), Woken::default());
        clock.set(after(10));
        for second in seconds {
            clock.wake_at(after(*second), woken.waker(*second)).expect("a manual clock needs no thread");
        }
        (clock, woken)
    }

    #[test]
    fn a_manual_clock_moves_only_when_it_is_set_or_advanced() {
        let clock = ManualClock::new();
        assert_eq!(clock.now(), Timestamp::EPOCH);
        clock.advance(3 * SECOND);
        clock.step_back(SECOND);
        assert_eq!(clock.now(), Timestamp::after_epoch(2 * SECOND));
        clock.step_back(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::EPOCH);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::LAST);
        clock.set(after(7));
        assert_eq!(clock.now(), after(7));
    }

    #[test]
    fn who_waits_is_woken_once_when_the_time_has_come() {
        let (clock, woken) = waited_for(&[12]);
        clock.advance(2 * SECOND - Duration::from_nanos(1));
        assert_eq!(woken.take(), []);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(woken.take(), [12]);
        clock.advance(SECOND);
        assert_eq!(woken.take(), []);
    }

    #[test]
    fn an_alarm_at_a_past_time_is_reported_and_wakes_no_task() {
        let (clock, woken) = waited_for(&[]);
        let is_to_come = |second| clock.wake_at(after(second), woken.waker(second)).unwrap();
        assert_eq!([9, 10, 11].map(is_to_come), [false, false, true]);
        clock.advance(SECOND);
        assert_eq!(woken.take(), [11]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a clone of a waker need not be known as the same")]
    fn of_several_requests_by_one_waker_the_earliest_counts() {
        let (clock, woken) = waited_for(&[12]);
        let waker = woken.waker(1);
        for second in [20, 11, 13] {
            assert!(clock.wake_at(after(second), waker.clone()).unwrap());
        }
        assert!(!clock.wake_at(after(10), waker).unwrap());
        clock.set(after(11));
        assert_eq!(woken.take(), [1]);
        clock.set(after(30));
        assert_eq!(woken.take(), [12]);
    }

    #[test]
    fn waiters_are_woken_by_time_and_then_as_they_came() {
        let (clock, woken) = waited_for(&[13, 12, 11, 20]);
        clock.wake_at(after(12), woken.waker(112)).unwrap();
        clock.set(after(13));
        assert_eq!(woken.take(), [11, 12, 112, 13]);
        clock.set(after(20));
        assert_eq!(woken.take(), [20]);
    }

    #[test]
    fn a_step_back_wakes_everybody() {
        let (clock, woken) = waited_for(&[13, 11]);
        clock.step_back(SECOND);
        assert_eq!(woken.take(), [11, 13]);
        clock.wake_at(after(30), woken.waker(30)).unwrap();
        clock.set(after(9));
        assert_eq!(woken.take(), [], "this is no step");
        clock.set(after(8));
        assert_eq!(woken.take(), [30]);
    }

    #[test]
    fn who_is_woken_sees_the_new_time_and_may_wait_again() {
        let (clock, woken) = (Arc::new(ManualClock::new()), Woken::default());
        let (again, log) = (Arc::clone(&clock), woken.clone());
        let wait_again = move || {
            assert_eq!(again.now(), after(1));
            assert!(!again.wake_at(after(1), log.waker(1)).unwrap());
            again.wake_at(after(2), log.waker(2)).unwrap();
        };
        clock.wake_at(after(1), waker(wait_again)).unwrap();
        clock.advance(SECOND);
        assert_eq!(woken.take(), []);
        clock.advance(SECOND);
        assert_eq!(woken.take(), [2]);
    }

    #[test]
    fn no_wake_up_is_lost_between_threads() {
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        for _ in 0..rounds {
            let (clock, woken) = (ManualClock::new(), Woken::default());
            let is_to_come = std::thread::scope(|scope| {
                scope.spawn(|| clock.advance(SECOND));
                clock.wake_at(after(1), woken.waker(1)).unwrap()
            });
            assert_eq!(woken.take().len(), usize::from(is_to_come));
        }
    }
}
