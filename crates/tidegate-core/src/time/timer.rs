//! A timer that wakes tasks at their deadlines, without any runtime.
//!
//! The process has one timer thread, started by the first waiter. It sleeps until the earliest deadline and keeps
//! nothing alive but wakers: a waiter costs an entry in a sorted map, and a dropped limiter leaves nothing behind.
//! Without the thread no task would be woken, so a failure to start it is returned to the caller.
//!
//! | cost | |
//! |---|---|
//! | one waiter | an entry in each of two sorted maps |
//! | a deadline that is not the earliest | no wake-up of the thread |
//! | a dropped waiter | its entry stays until its deadline; the wake-up is then spurious |

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::{DAY, Ticks};

/// The timer of the process.
static TIMER: Timer = Timer::new();

/// Arranges for a task to be woken after a span, always by the timer's thread. Of several requests with the same waker,
/// the earliest counts. Fails if the thread cannot be started: then the task is not woken, and the next call tries
/// again.
pub(super) fn wake_after(span: Ticks, waker: Waker) -> io::Result<()> {
    TIMER.wake_at(deadline(now(), span.to_duration()), waker, start)
}

/// Starts the thread, which never ends and is named `tidegate-timer`.
fn start() -> io::Result<()> {
    thread::Builder::new().name("tidegate-timer".to_owned()).spawn(|| TIMER.run()).map(|_| ())
}

/// Reads the monotonic clock of the system, which the timed wait of the thread also uses.
#[expect(clippy::disallowed_methods, reason = "the deadlines of the timer are the system's")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the deadline. A span longer than an [`Instant`] can represent becomes a day, after which the task checks
/// again.
fn deadline(now: Instant, span: Duration) -> Instant {
    now.checked_add(span).unwrap_or_else(|| now + DAY)
}

/// The deadlines, and the signal that the earliest one has changed.
struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

/// The state behind the lock of the timer.
struct State {
    queue: TimerQueue,
    /// True once the thread was started.
    is_running: bool,
}

impl Timer {
    const fn new() -> Timer {
        Timer {
            state: Mutex::new(State { queue: TimerQueue::new(), is_running: false }),
            changed: Condvar::new(),
        }
    }

    /// `start` starts the thread, under the lock, if it does not run yet. The replaced waker is dropped without the
    /// lock.
    fn wake_at(&self, at: Instant, waker: Waker, start: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        if !state.is_running {
            start()?;
            state.is_running = true;
        }
        let before = state.queue.push(at, waker);
        if state.queue.next() == Some(at) {
            self.changed.notify_one();
        }
        drop(state);
        drop(before);
        Ok(())
    }

    /// Wakes the due tasks without the lock, because a woken task may request the next wake-up at once.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = now();
            let due = state.queue.due(now);
            if !due.is_empty() {
                drop(state);
                wake_all(due);
                state = self.lock();
                continue;
            }
            state = self.wait(state, now);
        }
    }

    /// Sleeps until the next deadline, a change or a spurious wake-up.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, now: Instant) -> MutexGuard<'a, State> {
        match state.queue.next() {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(at) => {
                let left = at.saturating_duration_since(now);
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Locks the state. No code of callers runs under the lock, so a poisoned state is still valid.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wakers, by deadline and then by number.
struct TimerQueue {
    wakers: BTreeMap<(Instant, u64), Waker>,
    /// The place of each waker.
    places: BTreeMap<WakerIdentity, (Instant, u64)>,
    /// The number of wakers so far, which orders those with one deadline.
    pushed: u64,
}

/// The identity of a waker: the addresses of its data and its vtable.
type WakerIdentity = (usize, usize);

/// Returns the identity of a waker. Clones of a waker usually have the same one; if not, the task is woken twice.
fn identity(waker: &Waker) -> WakerIdentity {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
}

impl TimerQueue {
    const fn new() -> TimerQueue {
        TimerQueue { wakers: BTreeMap::new(), places: BTreeMap::new(), pushed: 0 }
    }

    /// Adds a waker once, with the earliest of its deadlines. Returns the waker that is no longer needed, to be dropped
    /// outside the lock.
    fn push(&mut self, at: Instant, waker: Waker) -> Option<Waker> {
        let identity = identity(&waker);
        let before = self.places.get(&identity).copied();
        if before.is_some_and(|(earlier, _)| earlier <= at) {
            return Some(waker);
        }
        let place = (at, self.pushed);
        self.pushed += 1;
        self.places.insert(identity, place);
        self.wakers.insert(place, waker);
        before.and_then(|before| self.wakers.remove(&before))
    }

    /// Returns the earliest deadline.
    fn next(&self) -> Option<Instant> {
        self.wakers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the wakers whose deadline has come.
    fn due(&mut self, now: Instant) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.wakers.first_entry().filter(|first| first.key().0 <= now) {
            let waker = first.remove();
            self.places.remove(&identity(&waker));
            due.push(waker);
        }
        due
    }
}

/// Wakes all tasks, including those after a waker that panics. They are woken in order. The caller must not hold a lock
/// that a woken task may need.
pub(crate) fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // The panic payload may panic again when it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::time::woken::{Woken, waker};

    const SOON: Duration = Duration::from_secs(10);

    fn milliseconds(count: u64) -> Ticks {
        Ticks::saturating_from(Duration::from_millis(count))
    }

    /// Returns a queue of these wakers, named by the seconds after the returned instant at which they are due.
    fn queue(woken: &Woken, seconds: &[u32]) -> (TimerQueue, Instant) {
        let (mut queue, start) = (TimerQueue::new(), now());
        for second in seconds {
            let _ = queue.push(start + Duration::from_secs((*second).into()), woken.waker(*second));
        }
        (queue, start)
    }

    #[test]
    fn who_is_due_is_taken_out_by_deadline() {
        let woken = Woken::default();
        let (mut queue, start) = queue(&woken, &[3, 1, 2, 9]);
        assert_eq!(queue.next(), Some(start + Duration::from_secs(1)));
        wake_all(queue.due(start));
        assert_eq!(woken.take(), []);
        wake_all(queue.due(start + Duration::from_secs(3)));
        assert_eq!(woken.take(), [1, 2, 3]);
        assert_eq!(queue.next(), Some(start + Duration::from_secs(9)));
        wake_all(queue.due(start + SOON));
        assert_eq!(woken.take(), [9]);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn those_with_one_deadline_are_woken_as_they_came() {
        let woken = Woken::default();
        let (mut queue, start) = queue(&woken, &[]);
        for name in [5, 3, 8, 1] {
            let _ = queue.push(start, woken.waker(name));
        }
        wake_all(queue.due(start));
        assert_eq!(woken.take(), [5, 3, 8, 1]);
    }

    #[test]
    fn a_waker_that_panics_does_not_stop_the_next_one() {
        let woken = Woken::default();
        let broken = waker(|| panic!("a waker that panics, for a test"));
        wake_all(vec![woken.waker(1), broken, woken.waker(2)]);
        assert_eq!(woken.take(), [1, 2]);
    }

    #[test]
    fn without_a_thread_the_call_fails_and_the_next_one_tries_again() {
        let (timer, woken) = (Timer::new(), Woken::default());
        let refused = || Err(io::ErrorKind::WouldBlock.into());
        let error = timer.wake_at(now(), woken.waker(1), refused).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(timer.lock().queue.next(), None);

        timer.wake_at(now(), woken.waker(2), || Ok(())).unwrap();
        timer.wake_at(now(), woken.waker(3), || unreachable!("there is a thread")).unwrap();
        wake_all(timer.lock().queue.due(now()));
        assert_eq!(woken.take(), [2, 3]);
    }

    #[test]
    fn who_waits_for_longer_than_there_are_instants_is_woken_earlier() {
        let start = now();
        assert_eq!(deadline(start, Duration::MAX), start + DAY);
        assert_eq!(deadline(start, SOON), start + SOON);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a clone of a waker need not be known as the same")]
    fn of_several_requests_by_one_waker_the_earliest_counts() {
        let woken = Woken::default();
        let (mut queue, start) = queue(&woken, &[2]);
        let waker = woken.waker(1);
        assert!(queue.push(start + SOON, waker.clone()).is_none());
        assert!(queue.push(start, waker.clone()).is_some_and(|before| before.will_wake(&waker)));
        assert!(queue.push(start + SOON, waker.clone()).is_some());
        assert_eq!((queue.wakers.len(), queue.places.len()), (2, 2));
        wake_all(queue.due(start));
        assert_eq!(woken.take(), [1]);
        assert!(queue.push(start, waker).is_none(), "who was woken may ask anew");
        wake_all(queue.due(start + SOON));
        assert_eq!(woken.take(), [1, 2]);
        assert_eq!((queue.wakers.len(), queue.places.len()), (0, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn an_earlier_deadline_is_not_kept_waiting_by_a_later_one() {
        let (woken, wakes) = mpsc::channel();
        let name = |name: u64| {
            let woken = woken.clone();
            waker(move || woken.send(name).expect("the test waits"))
        };
        let start = now();
        wake_after(Ticks::MAX, name(0)).unwrap();
        wake_after(milliseconds(20), name(20)).unwrap();
        wake_after(milliseconds(1), waker(|| panic!("a waker that panics, for a test"))).unwrap();
        wake_after(milliseconds(10), name(10)).unwrap();
        for expected in [10, 20] {
            assert_eq!(wakes.recv_timeout(SOON), Ok(expected));
            assert!(start.elapsed() >= Duration::from_millis(expected));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn a_thread_that_sleeps_hears_of_every_earlier_deadline() {
        wake_after(Ticks::MAX, Waker::noop().clone()).unwrap();
        let (woken, wakes) = mpsc::channel();
        for _ in 0..50 {
            let woken = woken.clone();
            wake_after(milliseconds(1), waker(move || woken.send(()).expect("the test waits"))).unwrap();
            assert_eq!(wakes.recv_timeout(SOON), Ok(()));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "the timer's thread never ends")]
    fn who_is_woken_may_wait_again() {
        let (woken, wakes) = mpsc::channel();
        let wait_again = move || {
            let woken = woken.clone();
            let done = waker(move || woken.send(()).expect("the test waits"));
            wake_after(milliseconds(1), done).expect("the thread runs");
        };
        wake_after(milliseconds(1), waker(wait_again)).unwrap();
        assert_eq!(wakes.recv_timeout(SOON), Ok(()));
    }
}
