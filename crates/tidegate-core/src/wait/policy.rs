//! The policy of a queue: it chooses the next waiter and its time.

use std::fmt;
use std::hash::Hash;

use super::state::{Entry, KeyQueue, QueueState, QueueTicket};
use super::wait_queue::WaitQueue;
use crate::time::{Clock, Ticks, Timestamp};

/// The policy of a [`WaitQueue`]: it chooses the next waiter and its time. All calls are made under the lock of the
/// queue.
pub trait QueuePolicy: fmt::Debug + Sized + Send + 'static {
    /// The value that owns the queue; the alarm of the queue does not keep it alive.
    type Owner: ?Sized + Send + Sync + 'static;
    /// The key whose waiters are served in turn.
    type Key: fmt::Debug + Clone + Eq + Hash + Send;
    /// The ask of one waiter.
    type Ask: fmt::Debug + Send;
    /// The state of one key beside its waiters.
    type State: fmt::Debug + Send;
    /// The result of a successful wait.
    type Grant: fmt::Debug + Send;
    /// The reason for a denial.
    type Denial: fmt::Debug + Send;

    /// True if the queue of a key without waiters is removed.
    const FORGETS_KEYS: bool = false;

    /// Returns the queue of its owner.
    fn queue(owner: &Self::Owner) -> &WaitQueue<Self>;

    /// Returns the clock of its owner.
    fn clock(owner: &Self::Owner) -> &impl Clock;

    /// Chooses the next waiter of a key that has waiters, and takes for it. It is called again after each settled
    /// waiter, and may advance `turn.at` for those behind it.
    fn next(&mut self, turn: &mut QueueTurn<'_, Self>, queue: &mut KeyQueue<Self>) -> Next<Self>;

    /// Returns the denial of a waiter that has left its queue without passing.
    fn deny(
        &mut self,
        turn: QueueTurn<'_, Self>,
        queue: &mut KeyQueue<Self>,
        ask: &Self::Ask,
        cause: Cause,
    ) -> Self::Denial;

    /// Gives back the grant of a waiter that left before it picked it up, and serves other waiters with it.
    fn give_back(
        state: &mut QueueState<Self>,
        turn: QueueTurn<'_, Self>,
        ticket: QueueTicket,
        grant: Self::Grant,
    );

    /// Reacts to a waiter that has left without passing, before the next one is chosen. `was_head` is true if the
    /// waiter was the oldest, so that a take made ahead for it can be given back.
    fn left(
        &mut self,
        _: QueueTurn<'_, Self>,
        _: &mut KeyQueue<Self>,
        _: &Entry<Self::Ask>,
        _was_head: bool,
    ) {
    }

    /// Reacts to a backward clock step. The length of the step is the last argument. All queues are served afterwards.
    fn stepped_back(_: &mut QueueState<Self>, _: QueueTurn<'_, Self>, _by: Ticks) {}
}

/// The owner of a queue that is being served, and the time.
#[derive(Debug)]
pub struct QueueTurn<'a, P: QueuePolicy> {
    /// The owner of the queue.
    pub owner: &'a P::Owner,
    /// The current time.
    pub now: Timestamp,
    /// The time at which the queue was due, if that is why it is served; else the current time.
    pub at: Timestamp,
}

impl<P: QueuePolicy> Clone for QueueTurn<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: QueuePolicy> Copy for QueueTurn<'_, P> {}

/// The choice of the next waiter of a key.
#[derive(Debug)]
pub enum Next<P: QueuePolicy> {
    /// The wait of the waiter with this number is over.
    Settle(u64, Result<P::Grant, P::Denial>),
    /// No waiter passes before this time, if it is known, or before the state changes.
    Wait(Option<Timestamp>),
}

/// The cause of a denial that the policy did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The max wait is over.
    TimedOut,
    /// The system starts no more threads, so no waiter can be woken.
    NoTimer,
}
