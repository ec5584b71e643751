//! One who waits, as a value: to be awaited on any runtime, or to block a thread with.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::thread::{self, Thread};
use std::time::Duration;

use super::room::{Coming, Entered, Passed, Ticket};
use super::taken::Taken;
use super::{Acquiring, Enqueued, TrackedTake, Venue};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::refusal::Refusal;
use crate::store::name::Name;
use crate::time::Ticks;

/// How long somebody waited, and what was decided then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// The time from the ask to the passing.
    pub duration: Duration,
    /// The decision that let it pass.
    pub decision: Decision,
}

impl Waited {
    pub(super) fn at_once(decision: Decision) -> Waited {
        Waited::new(Ticks::ZERO, decision)
    }

    pub(super) fn new(span: Ticks, decision: Decision) -> Waited {
        Waited { duration: span.to_duration(), decision }
    }
}

/// Waits its turn; made by the `acquire` of limiters.
///
/// Await it on any runtime, or call [`Acquire::blocking`] on a thread. It asks, and gets its place in the
/// line, when it is first polled, and may be moved and polled elsewhere afterwards. Dropped before it has
/// passed, it gives the place back and those behind move up.
#[must_use = "nobody waits until this is awaited or blocked on"]
pub struct Acquire {
    visit: Visit,
}

impl Acquire {
    pub(crate) fn new(visit: Visit) -> Acquire {
        Acquire { visit }
    }

    /// Waits at most this long: refused at once if it would take longer.
    pub fn within(self, longest: Duration) -> Acquire {
        Acquire { visit: self.visit.within(longest) }
    }

    /// Waits for a take that can be refunded.
    pub fn tracked(self) -> AcquireTracked {
        let mut visit = self.visit;
        visit.is_tracked = true;
        AcquireTracked { visit }
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

    fn position(&self) -> Option<usize> {
        self.visit.position()
    }
}

impl Future for Acquire {
    type Output = Result<Waited, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.visit.poll(context)
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Acquire").field("ask", &self.visit.ask).finish_non_exhaustive()
    }
}

/// Waits its turn like [`Acquire`], with a receipt of the take; made by [`Acquire::tracked`].
#[must_use = "nothing waits until this is awaited or blocked on"]
pub struct AcquireTracked {
    visit: Visit,
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

    fn position(&self) -> Option<usize> {
        self.visit.position()
    }
}

impl Future for AcquireTracked {
    type Output = Result<(Waited, TrackedTake), Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let passed = ready!(self.visit.poll_passed(context));
        Poll::Ready(passed.map(|Passed { waited, taken }| {
            let (account, receipt) = taken.into_tracked();
            (waited, TrackedTake::new(self.visit.venue.clone(), account, receipt))
        }))
    }
}

impl fmt::Debug for AcquireTracked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AcquireTracked").field("ask", &self.visit.ask).finish_non_exhaustive()
    }
}

/// One who comes, waits if need be, and goes.
pub(crate) struct Visit {
    venue: Arc<dyn Venue>,
    name: Name,
    /// Nothing, if its cost is 0.
    ask: Option<Ask>,
    is_tracked: bool,
    patience: Option<Ticks>,
    progress: Progress,
}

enum Progress {
    Outside,
    InLine(Ticket),
    Over,
}

impl Visit {
    pub(crate) fn new(
        venue: Arc<dyn Venue>,
        name: Name,
        ask: Option<Ask>,
        patience: Option<Duration>,
    ) -> Visit {
        let patience = patience.map(Ticks::saturating_from);
        // A place is waited for in the line, never reserved ahead.
        let ask = ask.map(|ask| Ask { patience: Ticks::ZERO, ..ask });
        Visit { venue, name, ask, is_tracked: false, patience, progress: Progress::Outside }
    }

    pub(crate) fn within(mut self, longest: Duration) -> Visit {
        self.patience = Some(Ticks::saturating_from(longest));
        self
    }

    pub(crate) fn position(&self) -> Option<usize> {
        match self.progress {
            Progress::InLine(ticket) => self.venue.room().position(ticket),
            Progress::Outside | Progress::Over => None,
        }
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn ask(&self) -> Option<Ask> {
        self.ask
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Waited, Refusal>> {
        self.poll_passed(context).map_ok(|passed| passed.waited)
    }

    fn poll_passed(&mut self, context: &mut Context<'_>) -> Poll<Result<Passed, Refusal>> {
        let poll = match self.progress {
            Progress::Outside => match self.enter(context.waker()) {
                Entered::Settled(result) => Poll::Ready(result),
                Entered::Waits(ticket) => {
                    self.progress = Progress::InLine(ticket);
                    Poll::Pending
                }
            },
            Progress::InLine(ticket) => self.venue.room().poll(ticket, context.waker()),
            Progress::Over => panic!("a wait was awaited again after it was over"),
        };
        if poll.is_ready() {
            self.progress = Progress::Over;
        }
        poll
    }

    /// Asks, and gets a place in the line if it has to wait.
    fn enter(&self, waker: &Waker) -> Entered {
        let Visit { venue, name, is_tracked, patience, .. } = self;
        let Some(ask) = self.ask else {
            let taken = Taken::nothing(&**venue, venue.account(name));
            return Entered::Settled(Ok(Passed::at_once(taken)));
        };
        let coming = Coming { name, ask, is_tracked: *is_tracked, patience: *patience };
        venue.room().enter(venue, coming, waker)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Progress::InLine(ticket) = self.progress {
            self.venue.room().leave(&self.venue, ticket);
        }
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
