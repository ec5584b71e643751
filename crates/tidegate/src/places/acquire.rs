//! A waiter for a place as a value: to be awaited on any runtime, or to block a thread with.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::class_queue::{ClassQueues, Shared};
use super::place::Place;
use crate::refusal::Refusal;
use crate::time::Ticks;
use crate::wait::{AcquireState, Acquiring, Enqueued, block_on};

/// Waits for a place; made by [`Places::acquire`](super::Places::acquire).
///
/// It asks, and joins the queue, when it is first polled.
/// Dropped before that, it was never there; dropped while it waits, it leaves the queue; dropped when a place had
/// just been taken for it, it hands that on.
#[must_use = "it waits only if it is awaited or blocked on"]
pub struct AcquirePlace {
    shared: Arc<Shared>,
    class: usize,
    max_wait: Option<Ticks>,
    state: AcquireState<ClassQueues>,
}

impl AcquirePlace {
    pub(super) fn new(shared: Arc<Shared>, class: usize) -> AcquirePlace {
        AcquirePlace { shared, class, max_wait: None, state: AcquireState::NotQueued }
    }

    /// Waits at most this long. It is not known when a place comes back, so this is found out by waiting.
    pub fn within(self, longest: Duration) -> AcquirePlace {
        let mut acquire = self;
        acquire.max_wait = Some(Ticks::saturating_from(longest));
        acquire
    }

    /// Joins the queue now instead of when it is first polled, as [`Acquire::enqueue`](crate::Acquire::enqueue) does.
    pub fn enqueue(self) -> Enqueued<AcquirePlace> {
        Enqueued::of(self)
    }

    /// Waits on this thread. Not for use inside of an async runtime, whose thread it would block.
    pub fn blocking(self) -> Result<Place, Refusal> {
        block_on(self)
    }

    fn place(&self) -> Place {
        Place::new(Arc::clone(&self.shared), self.class)
    }
}

impl Acquiring for AcquirePlace {
    type Passed = Place;

    fn join(&mut self) -> Option<Result<Place, Refusal>> {
        let AcquirePlace { shared, class, max_wait, state } = self;
        let result = state.join(|| shared.acquire(*class, *max_wait))?;
        Some(result.map(|()| self.place()))
    }

    fn position(&self) -> Option<usize> {
        self.state.position()
    }
}

impl Future for AcquirePlace {
    type Output = Result<Place, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.join() {
            Some(result) => Poll::Ready(result),
            None => self.state.poll(context.waker()).map_ok(|()| self.place()),
        }
    }
}

impl fmt::Debug for AcquirePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AcquirePlace").field("class", &self.class).finish_non_exhaustive()
    }
}
