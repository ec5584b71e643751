//! A permit of a concurrency limit, and the request of one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::ClassId;
use super::class_queue::{ClassQueues, ConcurrencyState};
use crate::adaptive::Outcome;
use crate::time::{Ticks, Timestamp};
use crate::wait::{Acquire, Joined, Queued, Request, Waiter};

/// A permit of [`ConcurrencyLimiter`](super::ConcurrencyLimiter).
///
/// Report the outcome of the call with [`ConcurrencyPermit::done`]; a drop gives the permit back without an outcome.
///
/// ```
/// use tidegate::{AdaptiveLimit, Outcome, ClassId, ConcurrencyLimiter};
///
/// let limiter = ConcurrencyLimiter::adaptive(AdaptiveLimit::aimd(1..=100));
/// let permit = limiter.admit(ClassId::FIRST)?;
/// let reply = Ok::<_, std::io::Error>("the reply of the service");
/// permit.done(if reply.is_ok() { Outcome::Done } else { Outcome::Failed });
/// # Ok::<(), tidegate::Denied>(())
/// ```
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct ConcurrencyPermit {
    shared: Arc<ConcurrencyState>,
    class: usize,
    entered: Option<Timestamp>,
    outcome: Outcome,
}

impl ConcurrencyPermit {
    /// Creates the permit of a slot that has been taken, as of now.
    #[inline]
    pub(super) fn new(shared: Arc<ConcurrencyState>, class: usize) -> ConcurrencyPermit {
        let entered = shared.entered_at();
        ConcurrencyPermit { shared, class, entered, outcome: Outcome::Ignored }
    }

    /// Returns the class to which it was given.
    pub fn class(&self) -> ClassId {
        self.shared.settings.list.id(self.class)
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

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.shared.leave(self.class, self.entered, self.outcome);
    }
}

impl fmt::Debug for ConcurrencyPermit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ConcurrencyPermit").field("class", &self.class).finish_non_exhaustive()
    }
}

/// A future that waits for a slot; created by [`ConcurrencyLimiter::acquire`](super::ConcurrencyLimiter::acquire).
pub type AcquireConcurrencyPermit = Acquire<ConcurrencyRequest>;

/// A queued waiter for a slot; created by [`AcquireConcurrencyPermit::enqueue`](Acquire::enqueue).
pub type QueuedConcurrencyPermit = Queued<ConcurrencyRequest>;

/// A request of one slot.
#[derive(Debug)]
pub struct ConcurrencyRequest {
    pub(super) shared: Arc<ConcurrencyState>,
    pub(super) class: usize,
}

impl Request for ConcurrencyRequest {
    type Policy = ClassQueues;
    type Passed = ConcurrencyPermit;

    fn join(&self, max_wait: Option<Ticks>) -> Joined<ClassQueues, Waiter<ClassQueues>> {
        self.shared.acquire(self.class, max_wait)
    }

    fn passed(&self, (): ()) -> ConcurrencyPermit {
        ConcurrencyPermit::new(Arc::clone(&self.shared), self.class)
    }
}
