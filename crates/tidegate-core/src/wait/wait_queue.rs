//! A queue of waiters behind one lock, with one alarm.
//!
//! No code of callers runs under the lock, except the clock. Wakers are cloned before the lock is taken, and woken
//! and dropped after it is released. A waiter has no thread, task or timer of its own.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Poll, Wake, Waker};

use super::policy::{QueuePolicy, QueueTurn};
use super::state::{QueueState, QueueTicket};
use crate::sync::{AtomicUsize, Mutex, Ordering, fence};
use crate::time::{Clock as _, Timestamp, wake_all};

/// A queue of waiters; its policy chooses the next waiter and its time.
#[derive(Debug)]
pub struct WaitQueue<P: QueuePolicy> {
    /// The number of waiters, including callers that are about to join. While it is zero, other callers skip the
    /// lock.
    waiting: AtomicUsize,
    /// The waiters and the policy. No wait for anything else happens under this lock.
    state: Mutex<QueueState<P>>,
    /// The waker that serves the queue, created by the first waiter that needs a time.
    alarm: OnceLock<Waker>,
}

/// The outcome of joining a queue: passed or denied at once (`Break`), or waiting.
pub type Joined<P, W = QueueTicket> =
    ControlFlow<Result<<P as QueuePolicy>::Grant, <P as QueuePolicy>::Denial>, W>;

impl<P: QueuePolicy> WaitQueue<P> {
    /// Creates a queue of at most `max_waiters` waiters. The bound can be changed later by
    /// [`QueueState::set_max_waiters`].
    pub fn new(policy: P, max_waiters: usize) -> WaitQueue<P> {
        let state = Mutex::new(QueueState::new(policy, max_waiters));
        WaitQueue { waiting: AtomicUsize::new(0), state, alarm: OnceLock::new() }
    }

    /// Returns true if there are no waiters. This is one load. The answer may be outdated at once; use
    /// [`WaitQueue::has_waiters`] after a change of the state.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Returns true if there are waiters that may not have seen the latest state change. A waiter counts itself
    /// before it reads the state; a caller writes the state before it reads the count here. One of them always sees
    /// the other.
    pub fn has_waiters(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.is_empty()
    }

    /// Runs `work` under the lock, without reading the clock. Due queues are not served and no waiter is woken by this
    /// call, so `work` must not settle a waiter.
    #[inline]
    pub fn lock<R>(&self, work: impl FnOnce(&mut QueueState<P>) -> R) -> R {
        work(&mut self.state.lock())
    }

    /// Joins the queue: `work` decides to pass at once, to deny at once, or to wait. The caller counts as a waiter
    /// while `work` runs. A release at the same time therefore takes the lock, and serves it.
    pub fn join(
        &self,
        owner: &Arc<P::Owner>,
        work: impl FnOnce(&mut QueueState<P>, QueueTurn<'_, P>) -> Joined<P>,
    ) -> Joined<P, Waiter<P>> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let joined = self.with(owner, work);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        ControlFlow::Continue(Waiter::new(owner, joined?))
    }

    /// Runs `work` under the lock at the current time. Then, without the lock, it sets the alarm and wakes the settled
    /// waiters. If the clock has passed the time of the alarm meanwhile, the queue is served again. If no alarm can be
    /// set, the waiters that need one are denied.
    pub fn with<R>(
        &self,
        owner: &Arc<P::Owner>,
        work: impl FnOnce(&mut QueueState<P>, QueueTurn<'_, P>) -> R,
    ) -> R {
        let mut wake = Vec::new();
        let (result, mut alarm) = self.locked(owner, &mut wake, work);
        while let Some(at) = alarm {
            let waker = self.alarm.get_or_init(|| Waker::from(Arc::new(Alarm::<P>(Arc::downgrade(owner)))));
            ((), alarm) = match P::clock(owner).wake_at(at, waker.clone()) {
                Ok(true) => break,
                Ok(false) => self.locked(owner, &mut wake, |state, _| state.alarm = None),
                Err(_) => self.locked(owner, &mut wake, QueueState::deny_without_timer),
            };
        }
        wake_all(wake);
        result
    }

    /// Returns the result of the work, and the time for which the alarm has to be set, if it is not set yet.
    fn locked<R>(
        &self,
        owner: &P::Owner,
        wake: &mut Vec<Waker>,
        work: impl FnOnce(&mut QueueState<P>, QueueTurn<'_, P>) -> R,
    ) -> (R, Option<Timestamp>) {
        let mut state = self.state.lock();
        let counted = state.waiting();
        let now = P::clock(owner).now();
        let turn = QueueTurn { owner, now, at: now };
        state.see(turn);
        let result = work(&mut state, turn);
        wake.append(&mut state.wakers);
        // A waiter that has joined is counted before its caller stops counting as about to join.
        self.waiting.fetch_add(state.waiting().wrapping_sub(counted), Ordering::SeqCst);
        (result, state.next_alarm())
    }
}

/// A waiter in a queue. If it is dropped, it leaves the queue; a grant that it has not picked up goes to the next
/// waiter.
pub struct Waiter<P: QueuePolicy> {
    owner: Arc<P::Owner>,
    ticket: Option<QueueTicket>,
}

impl<P: QueuePolicy> Waiter<P> {
    /// Creates the waiter with this ticket.
    pub fn new(owner: &Arc<P::Owner>, ticket: QueueTicket) -> Waiter<P> {
        Waiter { owner: Arc::clone(owner), ticket: Some(ticket) }
    }

    /// Returns its result once its wait is over; until then, this waker is registered.
    ///
    /// # Panics
    /// If the result was returned before.
    pub fn poll(&mut self, waker: &Waker) -> Poll<Result<P::Grant, P::Denial>> {
        let ticket = self.ticket.expect("a wait is polled until it is over");
        // The previous waker is dropped without the lock.
        let mut waker = Some(waker.clone());
        let poll = P::queue(&self.owner).lock(|state| state.poll(ticket, &mut waker));
        if poll.is_ready() {
            self.ticket = None;
        }
        poll
    }

    /// Returns the number of earlier waiters of its key that still wait; `None` once its wait is over.
    pub fn position(&self) -> Option<usize> {
        let ticket = self.ticket?;
        P::queue(&self.owner).lock(|state| state.queue(ticket.queue)?.position(ticket.number))
    }

    /// Returns the owner of its queue.
    pub fn owner(&self) -> &Arc<P::Owner> {
        &self.owner
    }
}

impl<P: QueuePolicy> Drop for Waiter<P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // Its waker is dropped without the lock.
            drop(P::queue(&self.owner).with(&self.owner, |state, turn| state.leave(turn, ticket)));
        }
    }
}

impl<P: QueuePolicy> fmt::Debug for Waiter<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Waiter").field(&self.ticket).finish()
    }
}

/// The alarm of a queue; it does not keep the owner of the queue alive.
struct Alarm<P: QueuePolicy>(Weak<P::Owner>);

impl<P: QueuePolicy> Wake for Alarm<P> {
    fn wake(self: Arc<Self>) {
        if let Some(owner) = self.0.upgrade() {
            P::queue(&owner).with(&owner, |state, _| state.alarm = None);
        }
    }
}
