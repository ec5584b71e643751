//! So many at a time: permits that come back by themselves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Concurrency;
use crate::ask::IntoAsk;
use crate::decision::{Decision, PermitId};
use crate::key::IntoKey;
use crate::limit::Limit;
use crate::limiter::Limiter;
use crate::refusal::Refusal;
use crate::store::Memory;
use crate::store::name::Name;
use crate::time::{Clock, HOUR};
use crate::wait::{Acquire, KeyRequest, Kind, Passed, Queued};

/// For each subject, at most so many in flight; clones share them.
///
/// ```
/// use tidegate::{Permits, SECOND};
///
/// let permits = Permits::at_most(1).lease(30 * SECOND);
/// let permit = permits.enter("ana")?;
/// assert!(permits.enter("ana").is_err()); // one at a time
/// assert!(permits.enter("bob").is_ok()); // each subject has its own
/// drop(permit);
/// assert!(permits.enter("ana").is_ok());
/// # Ok::<(), tidegate::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Permits {
    limiter: Limiter,
}

impl Permits {
    /// At most so many in flight per subject, each for at most an hour unless [`Permits::lease`] says so.
    ///
    /// # Panics
    /// If that is none, or more than 1,048,576.
    pub fn at_most(places: u64) -> Permits {
        Permits { limiter: Limiter::new(Limit::concurrency(places, HOUR)) }
    }

    /// Lets them come back after this time if nobody returns or renews them, here and in all clones.
    ///
    /// # Panics
    /// If that is no time, or more than ten years.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Permits {
        self.set_limit(self.places(), lease);
        self
    }

    /// New permits like these on a store of their own that goes by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Permits {
        Permits { limiter: Limiter::with_clock(self.limiter.limit(), clock) }
    }

    /// Lets at most so many wait at a time, here and in all clones; 65,536 unless set.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Permits {
        Permits { limiter: self.limiter.max_waiters(most) }
    }

    /// Permits on a store that others use, too. For the same permits in several places, clone: those who wait
    /// at one of two made with the same name do not hear of what comes back at the other.
    ///
    /// # Panics
    /// Like [`Permits::at_most`] and [`Permits::lease`].
    pub fn on(store: impl Into<Memory>, name: &str, places: u64, lease: Duration) -> Permits {
        Permits { limiter: Limiter::on(store, name, Limit::concurrency(places, lease)) }
    }

    /// The places of a limiter whose limit is about places in flight.
    pub(crate) fn over(limiter: Limiter) -> Permits {
        Permits { limiter }
    }

    /// A place now, or not at all.
    pub fn enter(&self, ask: impl IntoAsk) -> Result<Permit, Refusal> {
        let (name, ask, _) = self.limiter.named(ask);
        let decision = self.limiter.admit_named(&name, ask);
        Ok(Permit::of(&self.limiter, &name, decision.into_result()?))
    }

    /// Waits for a place; to be awaited on any runtime, or to block a thread with.
    pub fn acquire(&self, ask: impl IntoAsk) -> Entering {
        self.limiter.acquire_as(ask, OfPermits(self.limiter.clone()))
    }

    /// What [`Permits::enter`] would say, and how many places are free.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek(&self, ask: impl IntoAsk) -> Decision {
        self.limiter.peek(ask)
    }

    /// Gives back the place of a permit that is known by its number only. Whether it was still holding one.
    pub fn release(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.limiter.release(key, permit)
    }

    /// Starts a lease anew of a permit that is known by its number only. Whether it was still holding a place.
    pub fn renew(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.limiter.renew(key, permit)
    }

    /// Allows another number in flight, each for at most this long. Those who are in stay in.
    ///
    /// # Panics
    /// Like [`Permits::at_most`] and [`Permits::lease`].
    pub fn set_limit(&self, places: u64, lease: Duration) {
        self.limiter.set_limit(Limit::concurrency(places, lease));
    }

    fn places(&self) -> u64 {
        Concurrency::try_from(self.limiter.limit()).map_or(1, |limit| limit.max())
    }
}

/// A place in flight. Dropped or released, it goes back; forgotten, it comes back when its lease ends.
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit {
    limiter: Limiter,
    name: Name,
    id: Option<PermitId>,
}

impl Permit {
    fn of(limiter: &Limiter, name: &Name, decision: Decision) -> Permit {
        Permit { limiter: limiter.clone(), name: name.clone(), id: decision.permit() }
    }

    /// The permit of what a limiter decided about this key.
    pub(crate) fn claimed(limiter: &Limiter, key: impl IntoAsk, decision: Decision) -> Permit {
        Permit::of(limiter, &limiter.named(key).0, decision)
    }

    /// The number, to be written down elsewhere; `None` if it was asked for with a cost of 0 and holds no place.
    pub fn id(&self) -> Option<PermitId> {
        self.id
    }

    /// Gives the place back. Whether it was still held: a lease may have ended before.
    pub fn release(mut self) -> bool {
        self.give_back()
    }

    fn give_back(&mut self) -> bool {
        self.id.take().is_some_and(|id| self.limiter.release_named(&self.name, id))
    }

    /// Starts the lease anew. Whether it was still running; an ended one stays ended.
    pub fn renew(&self) -> bool {
        self.id.is_some_and(|id| self.limiter.renew_named(&self.name, id))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Permit").field(&self.id).finish()
    }
}

/// Waits for a place in flight; made by [`Permits::acquire`].
pub type Entering = Acquire<KeyRequest<OfPermits>>;

/// A waiter for a permit that joined by [`Entering::enqueue`](Acquire::enqueue).
pub type QueuedPermit = Queued<KeyRequest<OfPermits>>;

/// A request that passes with a permit.
#[derive(Debug)]
pub struct OfPermits(Limiter);

impl Kind for OfPermits {
    type Passed = Permit;

    fn passed(request: &KeyRequest<OfPermits>, passed: Passed) -> Permit {
        Permit::of(&request.kind.0, &request.name, passed.waited.decision)
    }
}
