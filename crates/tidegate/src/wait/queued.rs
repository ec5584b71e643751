//! Joining a queue before anything is awaited.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use super::policy::QueuePolicy;
use super::wait_queue::{Joined, Waiter};
use crate::refusal::Refusal;

/// A future that joins a queue when it is first polled.
pub trait Acquiring: Future<Output = Result<<Self as Acquiring>::Passed, Refusal>> + Unpin {
    /// The result of a wait that ended well.
    type Passed;

    /// Joins the queue; returns the result if it does not wait.
    fn join(&mut self) -> Option<Result<Self::Passed, Refusal>>;

    /// Returns how many waiters are ahead of it; `None` if it does not wait.
    fn position(&self) -> Option<usize>;
}

/// The state machine behind a future that acquires.
#[derive(Debug)]
pub(crate) enum AcquireState<P: QueuePolicy> {
    NotQueued,
    Queued(Waiter<P>),
    Done,
}

impl<P: QueuePolicy> AcquireState<P> {
    /// Joins the queue, unless it has done so before; returns the result if it does not wait.
    pub(crate) fn join(
        &mut self,
        join: impl FnOnce() -> Joined<P, Waiter<P>>,
    ) -> Option<Result<P::Grant, P::Denial>> {
        let AcquireState::NotQueued = self else { return None };
        *self = AcquireState::Done;
        match join() {
            Joined::Over(result) => return Some(result),
            Joined::Waiting(waiter) => *self = AcquireState::Queued(waiter),
        }
        None
    }

    /// Returns the result once the wait is over.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Result<P::Grant, P::Denial>> {
        let AcquireState::Queued(waiter) = self else { panic!("a wait was awaited again after it was over") };
        let result = ready!(waiter.poll(waker));
        *self = AcquireState::Done;
        Poll::Ready(result)
    }

    pub(crate) fn position(&self) -> Option<usize> {
        match self {
            AcquireState::Queued(waiter) => waiter.position(),
            AcquireState::NotQueued | AcquireState::Done => None,
        }
    }
}

/// The outcome of joining a queue, by one decision; made by [`Acquire::enqueue`](crate::Acquire::enqueue).
#[must_use = "a waiter that is dropped leaves the queue"]
pub enum Enqueued<A: Acquiring> {
    /// It passed at once.
    Passed(A::Passed),
    /// It was denied at once; [`Refusal::decision`] has the decision.
    Denied(Refusal),
    /// It waits in the queue.
    Waiting(Queued<A>),
}

/// A waiter in a queue: a future that is ready when its turn has come.
///
/// Dropped, it leaves the queue, and the waiters behind it move up.
#[must_use = "a waiter that is dropped leaves the queue"]
pub struct Queued<A> {
    acquire: A,
}

impl<A: Acquiring> Enqueued<A> {
    pub(crate) fn of(mut acquire: A) -> Enqueued<A> {
        match acquire.join() {
            Some(Ok(passed)) => Enqueued::Passed(passed),
            Some(Err(refusal)) => Enqueued::Denied(refusal),
            None => Enqueued::Waiting(Queued { acquire }),
        }
    }
}

impl<A: Acquiring> Queued<A> {
    /// Returns how many waiters of its key are ahead of it, 0 for the next one; `None` once its wait is over.
    pub fn position(&self) -> Option<usize> {
        self.acquire.position()
    }
}

impl<A: Acquiring> Future for Queued<A> {
    type Output = A::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A::Output> {
        Pin::new(&mut self.acquire).poll(context)
    }
}

impl<A: Acquiring> fmt::Debug for Enqueued<A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Enqueued::Passed(_) => out.write_str("Passed"),
            Enqueued::Denied(refusal) => out.debug_tuple("Denied").field(refusal).finish(),
            Enqueued::Waiting(queued) => queued.fmt(out),
        }
    }
}

impl<A: Acquiring> fmt::Debug for Queued<A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Queued").field("position", &self.position()).finish()
    }
}
