//! A waiter as a value: a future for any runtime, which can also block a thread.

use std::fmt;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::{self, Thread};
use std::time::Duration;

use super::key_fifo::{KeyFifo, QueueGrant, WaiterAsk};
use super::policy::QueuePolicy;
use super::taken::Taken;
use super::wait_queue::{Joined, Waiter};
use super::{TrackedTake, WaitTarget};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::denied::Denied;
use crate::store::state_key::EncodedKey;
use crate::time::Ticks;

/// The length of a wait, and the decision at its end.
#[doc(alias = "latency")]
#[doc(alias = "queueing delay")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// The time from the ask to the admission.
    pub duration: Duration,
    /// The decision that admitted the waiter.
    pub decision: Decision,
}

/// A future that waits for its turn; created by the `acquire` method of limiters.
///
/// Await it on any runtime, or call [`Acquire::blocking`] on a thread. It asks, and joins the queue, when it is
/// first polled. Afterwards another task may poll it. If it is dropped before it has passed, it leaves the queue
/// and the waiters behind it move up; units that were already taken for it go to the next waiter.
///
/// # Panics
/// If it is polled again after it has returned its result.
#[doc(alias = "semaphore")]
#[doc(alias = "backpressure")]
#[doc(alias = "throttle")]
#[doc(alias = "await")]
#[must_use = "it waits only if it is awaited or blocked on"]
pub struct Acquire<R: Request = KeyRequest> {
    request: R,
    max_wait: Option<Ticks>,
    state: AcquireState<R::Policy>,
}

/// A future like [`Acquire`] that also returns a receipt of the take; created by [`Acquire::tracked`].
///
/// ```
/// use tidegate::{Limit, Limiter};
///
/// let limiter = Limiter::new(Limit::per_hour(60).burst(1));
/// let (waited, take) = limiter.acquire("ana").tracked().blocking()?;
/// assert!(waited.duration.is_zero());
/// take.refund(); // the work was not done
/// assert!(limiter.admit("ana").is_allowed());
/// # Ok::<(), tidegate::Denied>(())
/// ```
#[doc(alias = "idempotent refund")]
pub type AcquireTracked = Acquire<KeyRequest<Tracked>>;

/// A queued waiter; created by [`AcquireTracked::enqueue`](Acquire::enqueue).
#[doc(alias = "position in queue")]
pub type QueuedTracked = Queued<KeyRequest<Tracked>>;

/// The request of an [`Acquire`]: the queue that it joins, and the type of its result.
pub trait Request: Unpin {
    /// The policy of its queue.
    type Policy: QueuePolicy<Denial = Denied>;
    /// The result of a successful wait.
    type Passed;

    /// Asks, and joins the queue if it has to wait, for at most `max_wait`.
    fn join(&self, max_wait: Option<Ticks>) -> Joined<Self::Policy, Waiter<Self::Policy>>;

    /// Returns the result of a successful wait.
    fn passed(&self, grant: <Self::Policy as QueuePolicy>::Grant) -> Self::Passed;
}

/// The state machine behind [`Acquire`]: not queued, queued with a ticket, done.
enum AcquireState<P: QueuePolicy> {
    NotQueued,
    Queued(Waiter<P>),
    Done,
}

impl<R: Request> Acquire<R> {
    pub(crate) fn new(request: R, max_wait: Option<Duration>) -> Acquire<R> {
        Acquire { request, max_wait: max_wait.map(Ticks::saturating_from), state: AcquireState::NotQueued }
    }

    /// Sets the max wait. The ask is denied at once if the wait is known to be longer. Under a concurrency limit
    /// the time of the next release is unknown, so the waiter waits and is denied at the deadline.
    #[doc(alias = "timeout")]
    #[doc(alias = "deadline")]
    #[doc(alias = "within")]
    pub fn max_wait(self, longest: Duration) -> Acquire<R> {
        Acquire { max_wait: Some(Ticks::saturating_from(longest)), ..self }
    }

    /// Joins the queue now instead of at the first poll. One decision determines the result: passed, denied, or
    /// waiting.
    ///
    /// ```
    /// use tidegate::{Enqueued, Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_hour(60).burst(1));
    /// let Enqueued::Passed(waited) = limiter.acquire("ana").enqueue() else { panic!("the burst is free") };
    /// assert!(waited.duration.is_zero());
    /// let Enqueued::Waiting(first) = limiter.acquire("ana").enqueue() else { panic!("the burst is spent") };
    /// let Enqueued::Waiting(second) = limiter.acquire("ana").enqueue() else { panic!("the first one waits") };
    /// assert_eq!((first.position(), second.position()), (Some(0), Some(1)));
    /// drop(first);
    /// assert_eq!(second.position(), Some(0)); // a future: `second.await`, or poll it
    /// ```
    #[doc(alias = "try_acquire")]
    pub fn enqueue(mut self) -> Enqueued<R> {
        match self.join() {
            Some(Ok(passed)) => Enqueued::Passed(passed),
            Some(Err(refusal)) => Enqueued::Denied(refusal),
            None => Enqueued::Waiting(Queued { acquire: self }),
        }
    }

    /// Waits on this thread. Do not call it on a thread of an async runtime, which it would block.
    ///
    /// # Errors
    /// As when it is awaited: if the ask can never pass, if the wait is longer than the max wait, if the queue is full,
    /// or if the system starts no thread for the timer.
    #[doc(alias = "block_on")]
    #[doc(alias = "sync")]
    pub fn blocking(self) -> Result<R::Passed, Denied> {
        block_on(self)
    }

    /// Joins the queue, unless it has joined before. Returns the result if it does not have to wait.
    fn join(&mut self) -> Option<Result<R::Passed, Denied>> {
        let AcquireState::NotQueued = self.state else { return None };
        self.state = AcquireState::Done;
        match self.request.join(self.max_wait) {
            ControlFlow::Break(result) => Some(result.map(|grant| self.request.passed(grant))),
            ControlFlow::Continue(waiter) => {
                self.state = AcquireState::Queued(waiter);
                None
            }
        }
    }

    /// Returns the number of waiters ahead; `None` before it has joined and after its wait is over.
    pub(super) fn position(&self) -> Option<usize> {
        let AcquireState::Queued(waiter) = &self.state else { return None };
        waiter.position()
    }
}

impl Acquire {
    /// Turns it into a wait that returns a refundable take. A wait that has already joined is restarted, so call it
    /// before the first poll.
    pub fn tracked(self) -> AcquireTracked {
        let KeyRequest { target, name, ask, .. } = self.request;
        let request = KeyRequest { target, name, ask, kind: Tracked };
        Acquire { request, max_wait: self.max_wait, state: AcquireState::NotQueued }
    }
}

impl<R: Request> Future for Acquire<R> {
    type Output = Result<R::Passed, Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.join() {
            return Poll::Ready(result);
        }
        let AcquireState::Queued(waiter) = &mut self.state else {
            panic!("a wait was awaited again after it was over")
        };
        let result = ready!(waiter.poll(context.waker()));
        self.state = AcquireState::Done;
        Poll::Ready(result.map(|grant| self.request.passed(grant)))
    }
}

impl<R: Request> fmt::Debug for Acquire<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Acquire").field("position", &self.position()).finish_non_exhaustive()
    }
}

/// The outcome of joining a queue; created by [`Acquire::enqueue`](crate::Acquire::enqueue).
#[doc(alias = "try_acquire")]
#[must_use = "a waiter that is dropped leaves the queue"]
#[derive(Debug)]
pub enum Enqueued<R: Request = KeyRequest> {
    /// Passed at once.
    Passed(R::Passed),
    /// Denied at once; [`Denied::decision`] returns the decision.
    Denied(Denied),
    /// Queued.
    Waiting(Queued<R>),
}

/// A waiter in a queue: a future that is ready when its turn has come.
///
/// If it is dropped, it leaves the queue, and the waiters behind it move up.
#[doc(alias = "position in queue")]
#[doc(alias = "FIFO")]
#[doc(alias = "cancel")]
#[must_use = "a waiter that is dropped leaves the queue"]
#[derive(Debug)]
pub struct Queued<R: Request = KeyRequest> {
    acquire: Acquire<R>,
}

impl<R: Request> Queued<R> {
    /// Returns the number of waiters of its key ahead of it, 0 for the head; `None` once its wait is over.
    pub fn position(&self) -> Option<usize> {
        self.acquire.position()
    }
}

impl<R: Request> Future for Queued<R> {
    type Output = Result<R::Passed, Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.acquire).poll(context)
    }
}

/// A request of units of one key.
pub struct KeyRequest<K = Untracked> {
    target: Arc<dyn WaitTarget>,
    pub(crate) name: EncodedKey,
    /// The ask; `None` if its cost is 0.
    ask: Option<Ask>,
    pub(crate) kind: K,
}

/// The kind of a request, which determines the type of its result.
pub trait Kind: Sized + Unpin {
    /// The result of a successful wait.
    type Passed;
    /// True if the request needs a receipt of its take.
    const IS_TRACKED: bool = false;

    /// Returns the result of a successful wait.
    fn passed(request: &KeyRequest<Self>, passed: QueueGrant) -> Self::Passed;
}

impl<K: Kind> KeyRequest<K> {
    pub(crate) fn new(
        target: Arc<dyn WaitTarget>,
        name: EncodedKey,
        ask: Option<Ask>,
        kind: K,
    ) -> KeyRequest<K> {
        // A waiter waits for its turn in the queue; it never reserves units ahead.
        KeyRequest { target, name, ask: ask.map(|ask| Ask { max_wait: Ticks::ZERO, ..ask }), kind }
    }
}

impl<K: Kind> Request for KeyRequest<K> {
    type Policy = KeyFifo;
    type Passed = K::Passed;

    fn join(&self, max_wait: Option<Ticks>) -> Joined<KeyFifo, Waiter<KeyFifo>> {
        let (target, name) = (&self.target, &self.name);
        let Some(ask) = self.ask else {
            let taken = Taken::nothing(&**target, target.account(name));
            return ControlFlow::Break(Ok(QueueGrant::after(Ticks::ZERO, taken)));
        };
        target.queue().acquire(target, name, WaiterAsk { ask, is_tracked: K::IS_TRACKED }, max_wait)
    }

    fn passed(&self, passed: QueueGrant) -> K::Passed {
        K::passed(self, passed)
    }
}

impl<K> fmt::Debug for KeyRequest<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KeyRequest").field("ask", &self.ask).finish_non_exhaustive()
    }
}

/// The kind of request that returns a [`Waited`].
#[derive(Debug)]
pub struct Untracked;

impl Kind for Untracked {
    type Passed = Waited;

    fn passed(_: &KeyRequest, passed: QueueGrant) -> Waited {
        passed.waited
    }
}

/// The kind of request that returns a [`Waited`] and a [`TrackedTake`].
#[derive(Debug)]
pub struct Tracked;

impl Kind for Tracked {
    type Passed = (Waited, TrackedTake);
    const IS_TRACKED: bool = true;

    fn passed(request: &KeyRequest<Tracked>, passed: QueueGrant) -> (Waited, TrackedTake) {
        (passed.waited, passed.taken.tracked(request.target.clone()))
    }
}

/// Runs a future on this thread, which is parked between polls.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
