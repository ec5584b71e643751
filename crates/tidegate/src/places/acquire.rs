//! One who waits for a place, as a value: to be awaited on any runtime, or to block a thread with.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::hall::{Arrived, Hall};
use super::line::Ticket;
use super::place::Place;
use crate::refusal::Refusal;
use crate::time::Ticks;
use crate::wait::block_on;

/// Waits for a place; made by [`Places::acquire`](super::Places::acquire).
///
/// It asks, and gets its place in the line, when it is first polled.
/// Dropped before that, it was never there; dropped while it waits, it leaves the line; dropped when a place had
/// just been taken for it, it hands that on.
#[must_use = "nobody waits until this is awaited or blocked on"]
pub struct AcquirePlace {
    hall: Arc<Hall>,
    class: usize,
    patience: Option<Ticks>,
    progress: Progress,
}

#[derive(Clone, Copy)]
enum Progress {
    Outside,
    InLine(Ticket),
    Over,
}

impl AcquirePlace {
    pub(super) fn new(hall: Arc<Hall>, class: usize) -> AcquirePlace {
        AcquirePlace { hall, class, patience: None, progress: Progress::Outside }
    }

    /// Waits at most this long. Nobody knows when a place comes back, so this is found out by waiting.
    pub fn within(self, longest: Duration) -> AcquirePlace {
        let mut acquire = self;
        acquire.patience = Some(Ticks::saturating_from(longest));
        acquire
    }

    /// Waits on this thread. Not for use inside of an async runtime, whose thread it would block.
    pub fn blocking(self) -> Result<Place, Refusal> {
        block_on(self)
    }
}

impl Future for AcquirePlace {
    type Output = Result<Place, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = match self.progress {
            Progress::Outside => match self.hall.arrive(self.class, self.patience, context.waker()) {
                Arrived::In => Ok(()),
                Arrived::Refused(refusal) => Err(refusal),
                Arrived::Waits(ticket) => {
                    self.progress = Progress::InLine(ticket);
                    return Poll::Pending;
                }
            },
            Progress::InLine(ticket) => match self.hall.poll(ticket, context.waker()) {
                Poll::Ready(result) => result,
                Poll::Pending => return Poll::Pending,
            },
            Progress::Over => panic!("a wait was awaited again after it was over"),
        };
        self.progress = Progress::Over;
        Poll::Ready(result.map(|()| Place::new(Arc::clone(&self.hall), self.class)))
    }
}

impl Drop for AcquirePlace {
    fn drop(&mut self) {
        if let Progress::InLine(ticket) = self.progress {
            self.hall.abandon(ticket);
        }
    }
}

impl fmt::Debug for AcquirePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AcquirePlace").field("class", &self.class).finish_non_exhaustive()
    }
}
