//! The order of a queue: which waiter is next, and when.

use std::fmt;
use std::hash::Hash;

use super::state::{Entry, KeyQueue, QueueState, Ticket};
use super::wait_queue::WaitQueue;
use crate::time::{Clock, Ticks, Timestamp};

/// The order of a [`WaitQueue`]: which waiter is next, and when. All calls are made under the lock of the queue.
pub trait QueuePolicy: fmt::Debug + Sized + Send + 'static {
    /// The value that owns the queue; the alarm of the queue does not keep it alive.
    type Owner: ?Sized + Send + Sync + 'static;
    /// The key whose waiters are served in turn.
    type Key: fmt::Debug + Clone + Eq + Hash + Send;
    /// The ask of one waiter.
    type Ask: fmt::Debug + Send;
    /// The state of one key beside its waiters.
    type State: fmt::Debug + Send;
    /// The result of a wait that ended well.
    type Grant: fmt::Debug + Send;
    /// The reason why a waiter does not pass.
    type Denial: fmt::Debug + Send;

    /// True if a key without waiters is forgotten.
    const FORGETS_KEYS: bool = false;

    /// Returns the queue of its owner.
    fn queue(owner: &Self::Owner) -> &WaitQueue<Self>;

    /// Returns the clock of its owner.
    fn clock(owner: &Self::Owner) -> &impl Clock;

    /// Chooses the next waiter of a key that has waiters, and takes what it asks for.
    fn next(&mut self, turn: &mut Turn<'_, Self>, queue: &mut KeyQueue<Self>) -> Next<Self>;

    /// Returns the denial of a waiter that has left its queue without having passed.
    fn deny(
        &mut self,
        turn: Turn<'_, Self>,
        queue: &mut KeyQueue<Self>,
        ask: &Self::Ask,
        cause: Cause,
    ) -> Self::Denial;

    /// Gives back what was taken for a waiter that left before it picked that up, and lets others have it.
    fn give_back(state: &mut QueueState<Self>, turn: Turn<'_, Self>, ticket: Ticket, grant: Self::Grant);

    /// Notes that a waiter has left without having passed, before the next one is chosen.
    fn left(&mut self, _: Turn<'_, Self>, _: &mut KeyQueue<Self>, _: &Entry<Self::Ask>, _was_head: bool) {}

    /// Notes that the clock has stepped back by so much.
    fn stepped_back(_: &mut QueueState<Self>, _: Turn<'_, Self>, _by: Ticks) {}
}

/// The time at which a queue is served, and for which owner.
#[derive(Debug)]
pub struct Turn<'a, P: QueuePolicy> {
    /// The owner of the queue.
    pub owner: &'a P::Owner,
    /// The time now.
    pub now: Timestamp,
    /// The time at which the queue was due, if it is served because of that; the time now if not.
    pub at: Timestamp,
}

impl<P: QueuePolicy> Clone for Turn<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: QueuePolicy> Copy for Turn<'_, P> {}

/// The next waiter of a key.
#[derive(Debug)]
pub enum Next<P: QueuePolicy> {
    /// The wait of the one with this number is over.
    Settle(u64, Result<P::Grant, P::Denial>),
    /// None passes before this time, if any is known, or before something changes.
    Wait(Option<Timestamp>),
}

/// The cause of a denial that is not of the policy's making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The max wait is over.
    TimedOut,
    /// The system starts no more threads, so no waiter can be woken.
    NoTimer,
}
