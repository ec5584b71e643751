//! A queue of waiters behind one lock, with one alarm.
//!
//! Nothing of callers runs under the lock but the reading of a clock: wakers are cloned before it is taken, and woken
//! and dropped after it is released. No thread, task or timer belongs to a waiter.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Wake, Waker};

use super::policy::{QueuePolicy, Turn};
use super::state::{After, QueueState, Ticket};
use crate::sync::{AtomicUsize, Mutex, Ordering, fence};
use crate::time::{Clock as _, Timestamp, wake_all};

/// A queue of waiters; its policy says which one is next, and when.
pub struct WaitQueue<P: QueuePolicy> {
    /// How many wait or are about to; zero spares all others the lock.
    waiting: AtomicUsize,
    state: Mutex<QueueState<P>>,
    alarm: OnceLock<Waker>,
}

/// The outcome of joining a queue.
#[derive(Debug)]
pub enum Joined<P: QueuePolicy, W = Ticket> {
    /// Passed or denied at once.
    Over(Result<P::Grant, P::Denial>),
    /// Waiting.
    Waiting(W),
}

impl<P: QueuePolicy> WaitQueue<P> {
    /// A queue in which at most so many wait.
    pub fn new(policy: P, max_waiters: usize) -> WaitQueue<P> {
        WaitQueue {
            waiting: AtomicUsize::new(0),
            state: Mutex::new(QueueState::new(policy, max_waiters)),
            alarm: OnceLock::new(),
        }
    }

    /// Returns true if there are no waiters.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Returns true if there are waiters that may not have seen what was just changed. A waiter counts itself before
    /// it reads the state; a caller that changes the state does so before this reads the count. One of them always
    /// sees the other.
    pub fn has_waiters(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.is_empty()
    }

    /// Works under the lock, without the time.
    #[inline]
    pub fn lock<R>(&self, work: impl FnOnce(&mut QueueState<P>) -> R) -> R {
        work(&mut self.state.lock())
    }

    /// Joins: the work says whether that passes at once, is denied at once, or waits.
    pub fn join(
        &self,
        owner: &Arc<P::Owner>,
        work: impl FnOnce(&mut QueueState<P>, Turn<'_, P>) -> Joined<P>,
    ) -> Joined<P, Waiter<P>> {
        let announced = Announced::new(&self.waiting);
        let joined = self.with(owner, work);
        drop(announced);
        match joined {
            Joined::Over(result) => Joined::Over(result),
            Joined::Waiting(ticket) => {
                let mut waiter = Waiter::new(owner, ticket);
                // If no alarm could be set, or its time had come meanwhile, the wait is over already.
                match waiter.poll_with(&mut None) {
                    Poll::Ready(result) => Joined::Over(result),
                    Poll::Pending => Joined::Waiting(waiter),
                }
            }
        }
    }

    /// Works on the queue at this time; then, without the lock, sets the alarm and wakes.
    pub fn with<R>(
        &self,
        owner: &Arc<P::Owner>,
        work: impl FnOnce(&mut QueueState<P>, Turn<'_, P>) -> R,
    ) -> R {
        let mut after = After::default();
        let (result, mut alarm) = self.locked(owner, &mut after, work);
        while let Some(at) = alarm {
            ((), alarm) = match P::clock(owner).wake_at(at, self.alarm(owner)) {
                Ok(true) => break,
                Ok(false) => self.locked(owner, &mut after, |state, _| state.forget_alarm()),
                Err(_) => self.locked(owner, &mut after, QueueState::deny_without_timer),
            };
        }
        wake_all(after.wake);
        result
    }

    /// Returns the result of the work, and the time at which the clock has to call, if it does not know yet.
    fn locked<R>(
        &self,
        owner: &P::Owner,
        after: &mut After,
        work: impl FnOnce(&mut QueueState<P>, Turn<'_, P>) -> R,
    ) -> (R, Option<Timestamp>) {
        let mut state = self.state.lock();
        let counted = state.waiting();
        let now = P::clock(owner).now();
        let turn = Turn { owner, now, at: now };
        state.see(turn);
        state.serve_due(turn);
        let result = work(&mut state, turn);
        let alarm = state.next_alarm();
        state.move_after(after);
        // Those who have joined count before they stop to be about to.
        self.waiting.fetch_add(state.waiting().wrapping_sub(counted), Ordering::SeqCst);
        (result, alarm)
    }

    fn alarm(&self, owner: &Arc<P::Owner>) -> Waker {
        let alarm = || Waker::from(Arc::new(Alarm::<P>(Arc::downgrade(owner))));
        self.alarm.get_or_init(alarm).clone()
    }
}

impl<P: QueuePolicy> fmt::Debug for WaitQueue<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.load(Ordering::Relaxed);
        out.debug_struct("WaitQueue").field("waiting", &waiting).finish_non_exhaustive()
    }
}

/// A waiter in a queue. Dropped, it leaves; what was taken for it goes to the next one.
pub struct Waiter<P: QueuePolicy> {
    owner: Arc<P::Owner>,
    ticket: Option<Ticket>,
}

impl<P: QueuePolicy> Waiter<P> {
    /// The waiter with this ticket.
    pub fn new(owner: &Arc<P::Owner>, ticket: Ticket) -> Waiter<P> {
        Waiter { owner: Arc::clone(owner), ticket: Some(ticket) }
    }

    /// Returns its result once its wait is over; until then, this waker is woken for it.
    ///
    /// # Panics
    /// If the result was returned before.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Result<P::Grant, P::Denial>> {
        self.poll_with(&mut Some(waker.clone()))
    }

    fn poll_with(&mut self, waker: &mut Option<Waker>) -> Poll<Result<P::Grant, P::Denial>> {
        let ticket = self.ticket.expect("a wait is polled until it is over");
        let poll = P::queue(&self.owner).lock(|state| state.poll(ticket, waker));
        if poll.is_ready() {
            self.ticket = None;
        }
        poll
    }

    /// Returns how many waiters of its key came before it and still wait; `None` once its wait is over.
    pub fn position(&self) -> Option<usize> {
        let ticket = self.ticket?;
        P::queue(&self.owner).lock(|state| state.position(ticket))
    }

    /// Returns the owner of its queue.
    pub fn owner(&self) -> &Arc<P::Owner> {
        &self.owner
    }
}

impl<P: QueuePolicy> Drop for Waiter<P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            P::queue(&self.owner).with(&self.owner, |state, turn| state.leave(turn, ticket));
        }
    }
}

impl<P: QueuePolicy> fmt::Debug for Waiter<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Waiter").field(&self.ticket).finish()
    }
}

/// The count of a caller that may be about to wait.
struct Announced<'a>(&'a AtomicUsize);

impl<'a> Announced<'a> {
    fn new(waiting: &'a AtomicUsize) -> Announced<'a> {
        waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Announced(waiting)
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The alarm of a queue; it does not keep the owner of the queue alive.
struct Alarm<P: QueuePolicy>(Weak<P::Owner>);

impl<P: QueuePolicy> Wake for Alarm<P> {
    fn wake(self: Arc<Self>) {
        if let Some(owner) = self.0.upgrade() {
            P::queue(&owner).with(&owner, |state, _| state.forget_alarm());
        }
    }
}
