//! The timeouts of a connection.
//!
//! A connection has one timer. It is not reset for each request: a deadline later than the timer's is checked when the
//! timer expires.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep_until};

use super::link::{Link, Mark, Stage};
use crate::settings::Bounds;

/// A time span longer than any server runs, and short enough to be added to an `Instant`.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The timer of one connection.
#[derive(Debug)]
pub(super) struct Watch {
    /// The timer. It may expire before the deadline, but never after it.
    alarm: Pin<Box<Sleep>>,
    /// The stay in a stage that the deadline is for.
    mark: Mark,
    /// The deadline of the current stay.
    due: Instant,
    /// True if the timer wakes the task.
    is_set: bool,
}

impl Watch {
    /// Starts the timeout of the current stage.
    pub(super) fn new(link: &Link) -> Watch {
        let mark = link.mark();
        let due = due(mark.stage(), &link.worker.engine.settings().bounds);
        Watch { alarm: Box::pin(sleep_until(due)), mark, due, is_set: false }
    }

    /// Resolves when the connection has exceeded the timeout of its stage.
    ///
    /// Returns the stage that timed out. Usually it costs one comparison.
    #[inline]
    pub(super) fn poll(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<Stage> {
        let mark = link.mark();
        if mark != self.mark {
            self.mark = mark;
            self.due = due(mark.stage(), &link.worker.engine.settings().bounds);
            if self.due < self.alarm.deadline() {
                self.set();
            }
        }
        if self.is_set && !self.alarm.is_elapsed() {
            return Poll::Pending;
        }
        loop {
            // A task without coop budget gets `Pending` before the timer registers its waker.
            self.is_set = has_budget_remaining();
            ready!(self.alarm.as_mut().poll(cx));
            if self.alarm.deadline() >= self.due {
                return Poll::Ready(mark.stage());
            }
            self.set();
        }
    }

    /// Sets the timer to the deadline.
    fn set(&mut self) {
        self.alarm.as_mut().reset(self.due);
        self.is_set = false;
    }
}

/// Returns the deadline of a stage that begins now.
fn due(stage: Stage, bounds: &Bounds) -> Instant {
    let longest = match stage {
        Stage::Fresh | Stage::Head | Stage::Body => bounds.request_timeout,
        Stage::Idle => bounds.idle_timeout,
        Stage::Answer => bounds.write_timeout,
        Stage::Held => FOR_EVER,
    };
    Instant::now() + longest.min(FOR_EVER)
}
