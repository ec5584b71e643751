//! A waiter as a value: to be awaited on any runtime, or to block a thread with.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use super::key_fifo::{KeyFifo, Passed, Request, WaiterAsk};
use super::taken::Taken;
use super::wait_queue::Joined;
use super::{AcquireState, Acquiring, Enqueued, TrackedTake, WaitTarget};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::refusal::Refusal;
use crate::store::name::Name;
use crate::time::Ticks;

/// The length of a wait, and the decision at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// The time from the ask to the passing.
    pub duration: Duration,
    /// The decision that let it pass.
    pub decision: Decision,
}

impl Waited {
    pub(super) fn new(span: Ticks, decision: Decision) -> Waited {
        Waited { duration: span.to_duration(), decision }
    }
}

/// Waits its turn; made by the `acquire` of limiters.
///
/// Await it on any runtime, or call [`Acquire::blocking`] on a thread. It asks, and joins the
/// queue, when it is first polled, and may be moved and polled by another task afterwards. Dropped before it has
/// passed, it leaves the queue and those behind move up.
#[must_use = "it waits only if it is awaited or blocked on"]
pub struct Acquire {
    inner: KeyAcquire,
}

impl Acquire {
    pub(crate) fn new(inner: KeyAcquire) -> Acquire {
        Acquire { inner }
    }

    /// Waits at most this long: refused at once if it would take longer.
    pub fn within(self, longest: Duration) -> Acquire {
        Acquire { inner: self.inner.within(longest) }
    }

    /// Waits for a take that can be refunded.
    pub fn tracked(self) -> AcquireTracked {
        let mut inner = self.inner;
        inner.is_tracked = true;
        AcquireTracked { inner }
    }

    /// Joins the queue now instead of when it is first polled, by one decision: passed, denied, or waiting.
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
    pub fn enqueue(self) -> Enqueued<Acquire> {
        Enqueued::of(self)
    }

    /// Waits on this thread. Not for use inside of an async runtime, whose thread it would block.
    pub fn blocking(self) -> Result<Waited, Refusal> {
        block_on(self)
    }
}

impl Acquiring for Acquire {
    type Passed = Waited;

    fn join(&mut self) -> Option<Result<Waited, Refusal>> {
        self.inner.join_for_wait()
    }

    fn position(&self) -> Option<usize> {
        self.inner.position()
    }
}

impl Future for Acquire {
    type Output = Result<Waited, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.poll(context)
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Acquire").field("ask", &self.inner.ask).finish_non_exhaustive()
    }
}

/// Waits its turn like [`Acquire`], with a receipt of the take; made by [`Acquire::tracked`].
#[must_use = "nothing waits until this is awaited or blocked on"]
pub struct AcquireTracked {
    inner: KeyAcquire,
}

impl AcquireTracked {
    /// Joins the queue now instead of when it is first polled, as [`Acquire::enqueue`] does.
    pub fn enqueue(self) -> Enqueued<AcquireTracked> {
        Enqueued::of(self)
    }

    /// Waits on this thread. Not for use inside of an async runtime, whose thread it would block.
    pub fn blocking(self) -> Result<(Waited, TrackedTake), Refusal> {
        block_on(self)
    }
}

impl Acquiring for AcquireTracked {
    type Passed = (Waited, TrackedTake);

    fn join(&mut self) -> Option<Result<(Waited, TrackedTake), Refusal>> {
        Some(self.inner.join()?.map(|passed| self.inner.tracked(passed)))
    }

    fn position(&self) -> Option<usize> {
        self.inner.position()
    }
}

impl Future for AcquireTracked {
    type Output = Result<(Waited, TrackedTake), Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.poll_passed(context).map_ok(|passed| self.inner.tracked(passed))
    }
}

impl fmt::Debug for AcquireTracked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AcquireTracked").field("ask", &self.inner.ask).finish_non_exhaustive()
    }
}

/// An ask of a key that passes or waits: what all futures over [`KeyFifo`] are made of.
pub(crate) struct KeyAcquire {
    target: Arc<dyn WaitTarget>,
    name: Name,
    /// Nothing, if its cost is 0.
    ask: Option<Ask>,
    is_tracked: bool,
    max_wait: Option<Ticks>,
    state: AcquireState<KeyFifo>,
}

impl KeyAcquire {
    pub(crate) fn new(
        target: Arc<dyn WaitTarget>,
        name: Name,
        ask: Option<Ask>,
        max_wait: Option<Duration>,
    ) -> KeyAcquire {
        let max_wait = max_wait.map(Ticks::saturating_from);
        // A turn is waited for in the queue, never reserved ahead.
        let ask = ask.map(|ask| Ask { patience: Ticks::ZERO, ..ask });
        KeyAcquire { target, name, ask, is_tracked: false, max_wait, state: AcquireState::NotQueued }
    }

    pub(crate) fn within(mut self, longest: Duration) -> KeyAcquire {
        self.max_wait = Some(Ticks::saturating_from(longest));
        self
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn ask(&self) -> Option<Ask> {
        self.ask
    }

    pub(crate) fn position(&self) -> Option<usize> {
        self.state.position()
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Waited, Refusal>> {
        self.poll_passed(context).map_ok(|passed| passed.waited)
    }

    fn poll_passed(&mut self, context: &mut Context<'_>) -> Poll<Result<Passed, Refusal>> {
        match self.join() {
            Some(result) => Poll::Ready(result),
            None => self.state.poll(context.waker()),
        }
    }

    fn tracked(&self, passed: Passed) -> (Waited, TrackedTake) {
        let (account, receipt) = passed.taken.into_tracked();
        (passed.waited, TrackedTake::new(self.target.clone(), account, receipt))
    }

    /// Joins like [`KeyAcquire::join`], and returns the wait alone.
    pub(crate) fn join_for_wait(&mut self) -> Option<Result<Waited, Refusal>> {
        Some(self.join()?.map(|passed| passed.waited))
    }

    /// Joins the queue, unless it has done so before; returns the result if it does not wait.
    pub(super) fn join(&mut self) -> Option<Result<Passed, Refusal>> {
        let KeyAcquire { target, name, ask, is_tracked, max_wait, state } = self;
        state.join(|| match *ask {
            Some(ask) => {
                let ask = WaiterAsk { ask, is_tracked: *is_tracked };
                target.queue().acquire(target, Request { name, ask, max_wait: *max_wait })
            }
            None => {
                let taken = Taken::nothing(&**target, target.account(name));
                Joined::Over(Ok(Passed::after(Ticks::ZERO, taken)))
            }
        })
    }
}

/// Runs a future on this thread, which sleeps while there is nothing to do.
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
