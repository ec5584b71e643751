//! A permit of a concurrency limit, and the request of one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::class_queue::{ClassQueues, Shared};
use crate::adaptive::Outcome;
use crate::time::{Ticks, Timestamp};
use crate::wait::{Acquire, Joined, Queued, Request, Waiter};

/// A permit of [`Places`](super::Places). Report the outcome of the call with [`Place::done`]; a drop gives the
/// permit back without an outcome.
///
/// ```
/// use tidegate::{Adapt, Outcome, Places};
///
/// let places = Places::adaptive(Adapt::aimd(1..=100));
/// let place = places.enter(0)?;
/// let answer = Ok::<_, std::io::Error>("what the service said");
/// place.done(if answer.is_ok() { Outcome::Done } else { Outcome::Failed });
/// # Ok::<(), tidegate::Refusal>(())
/// ```
#[must_use = "a place that is dropped at once limits nothing"]
pub struct Place {
    shared: Arc<Shared>,
    class: usize,
    entered: Option<Timestamp>,
    outcome: Outcome,
}

impl Place {
    /// Creates the permit of a slot that has been taken, as of now.
    #[inline]
    pub(super) fn new(shared: Arc<Shared>, class: usize) -> Place {
        let entered = shared.entered_at();
        Place { shared, class, entered, outcome: Outcome::Ignored }
    }

    /// Returns the rank of the class to which it was given.
    pub fn class(&self) -> usize {
        self.class
    }

    /// Returns the time since admission; zero if the limit is fixed, because then no clock is read.
    pub fn lasted(&self) -> Duration {
        let lasted = |entered| self.shared.settings.clock.now().since(entered).to_duration();
        self.entered.map_or(Duration::ZERO, lasted)
    }

    /// Gives the permit back and reports the outcome of the call, which an adaptive limit uses.
    pub fn done(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.leave(self.class, self.entered, self.outcome);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Place").field("class", &self.class).finish_non_exhaustive()
    }
}

/// A future that waits for a slot; created by [`Places::acquire`](super::Places::acquire).
pub type AcquirePlace = Acquire<PlaceRequest>;

/// A queued waiter for a slot; created by [`AcquirePlace::enqueue`](Acquire::enqueue).
pub type QueuedPlace = Queued<PlaceRequest>;

/// A request of one slot.
#[derive(Debug)]
pub struct PlaceRequest {
    pub(super) shared: Arc<Shared>,
    pub(super) class: usize,
}

impl Request for PlaceRequest {
    type Policy = ClassQueues;
    type Passed = Place;

    fn join(&self, max_wait: Option<Ticks>) -> Joined<ClassQueues, Waiter<ClassQueues>> {
        self.shared.acquire(self.class, max_wait)
    }

    fn passed(&self, (): ()) -> Place {
        Place::new(Arc::clone(&self.shared), self.class)
    }
}
