//! Concurrency limits per key, with permits that have a lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Concurrency;
use crate::ask::IntoAsk;
use crate::decision::{Decision, PermitId};
use crate::denied::Denied;
use crate::key::IntoKey;
use crate::limit::Limit;
use crate::limiter::{Limiter, LimiterBuilder};
use crate::store::MemoryStore;
use crate::store::state_key::EncodedKey;
use crate::time::{Clock, HOUR};
use crate::wait::{Acquire, KeyRequest, Kind, QueueGrant, Queued};

/// A concurrency limit for each key, like a semaphore with leases; clones share the permits.
///
/// ```
/// use tidegate::{Permits, SECOND};
///
/// let permits = Permits::builder(1).lease(30 * SECOND).build();
/// let permit = permits.admit("ana")?;
/// assert!(permits.admit("ana").is_err()); // one at a time
/// assert!(permits.admit("bob").is_ok()); // each key has its own
/// drop(permit);
/// assert!(permits.admit("ana").is_ok());
/// # Ok::<(), tidegate::Denied>(())
/// ```
///
/// Use it where each customer may run only so many jobs at once. A process that dies without a release blocks its
/// permits until their leases end. For one service as a whole, without leases, use
/// [`ConcurrencyLimiter`](crate::ConcurrencyLimiter).
#[doc(alias("semaphore", "bulkhead", "concurrency limit", "max in flight"))]
#[derive(Clone, Debug)]
pub struct Permits {
    limiter: Limiter,
}

impl Permits {
    /// Creates a limit of at most `places` permits in flight per key. The lease is one hour;
    /// [`Permits::builder`] and [`Permits::set_lease`] set another.
    ///
    /// # Panics
    /// If `places` is 0 or more than 1,048,576.
    pub fn at_most(places: u64) -> Permits {
        Permits { limiter: Limiter::new(Limit::concurrency(places, HOUR)) }
    }

    /// Creates a builder for a limit of at most `places` permits in flight per key.
    ///
    /// # Panics
    /// If `places` is 0 or more than 1,048,576.
    pub fn builder(places: u64) -> PermitsBuilder {
        PermitsBuilder { limiter: Limiter::builder(Limit::concurrency(places, HOUR)), places }
    }

    /// Sets the lease: the time after which a permit ends if it was neither released nor renewed. It applies to all
    /// clones. Permits in flight keep the lease that they were given.
    ///
    /// Choose it longer than the longest call, or renew: a call that outlives its lease runs beside the next holder.
    ///
    /// # Panics
    /// If the lease is zero or more than ten years.
    #[doc(alias("ttl", "timeout"))]
    pub fn set_lease(&self, lease: Duration) {
        self.set_limit(self.places(), lease);
    }

    /// Sets the largest number of waiters at a time, for these permits and all clones. The default is 65,536.
    ///
    /// An `acquire` that finds the queue full is denied at once; `Denied::is_queue_full` is then true.
    pub fn set_max_waiters(&self, most: usize) {
        self.limiter.set_max_waiters(most);
    }

    /// Creates permits on a store that other limiters may use, too. To use the same permits in several places,
    /// clone them: two values with the same name share the count, but a release at one does not wake the waiters of
    /// the other.
    ///
    /// # Panics
    /// Like [`Permits::at_most`] and [`Permits::set_lease`].
    pub fn on(store: impl Into<MemoryStore>, name: &str, places: u64, lease: Duration) -> Permits {
        Permits { limiter: Limiter::on(store, name, Limit::concurrency(places, lease)) }
    }

    /// Creates permits from a limiter with a concurrency limit.
    pub(crate) fn over(limiter: Limiter) -> Permits {
        Permits { limiter }
    }

    /// Returns a permit now, or denies.
    ///
    /// An ask with a cost takes several units at once, under one permit. A queue of waiters is not overtaken: while it
    /// is not empty, this call is denied.
    #[doc(alias("try_acquire", "enter"))]
    pub fn admit(&self, ask: impl IntoAsk) -> Result<Permit, Denied> {
        let (name, ask, _) = self.limiter.named(ask);
        let decision = self.limiter.admit_named(&name, ask);
        Ok(Permit::of(&self.limiter, &name, decision.into_result()?))
    }

    /// Waits for a permit. The future runs on any runtime; it can also block a thread.
    ///
    /// Waiters of a key pass in FIFO order. The time of the next release is unknown, so a max wait ends at its
    /// deadline.
    ///
    /// ```
    /// use tidegate::{MILLISECOND, Permits};
    ///
    /// let permits = Permits::at_most(1);
    /// let first = permits.acquire("ana").blocking()?;
    /// assert!(permits.acquire("ana").max_wait(5 * MILLISECOND).blocking().is_err_and(|denied| denied.is_timed_out()));
    /// drop(first);
    /// assert!(permits.acquire("ana").blocking().is_ok()); // or `.await`, on any runtime
    /// # Ok::<(), tidegate::Denied>(())
    /// ```
    pub fn acquire(&self, ask: impl IntoAsk) -> AcquirePermit {
        self.limiter.acquire_as(ask, PermitKind(self.limiter.clone()))
    }

    /// Returns the decision that [`Permits::admit`] would be based on, without taking a permit. Its `remaining` is
    /// the number of free permits.
    #[must_use = "a decision that is not read limits nothing"]
    pub fn peek(&self, ask: impl IntoAsk) -> Decision {
        self.limiter.peek(ask)
    }

    /// Releases a permit by its number. Returns true if it was still in flight.
    ///
    /// For a permit that is held by another process, which sent its number. A repeated release has no effect.
    pub fn release(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.limiter.release(key, permit)
    }

    /// Restarts the lease of a permit by its number. Returns true if it was still in flight.
    ///
    /// An ended lease is not revived: its units may belong to another holder.
    pub fn renew(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.limiter.renew(key, permit)
    }

    /// Replaces the limit and the lease. Permits in flight stay valid.
    ///
    /// # Panics
    /// Like [`Permits::at_most`] and [`Permits::set_lease`].
    pub fn set_limit(&self, places: u64, lease: Duration) {
        self.limiter.set_limit(Limit::concurrency(places, lease));
    }

    /// Returns the maximum in flight of the limit in force.
    fn places(&self) -> u64 {
        Concurrency::try_from(self.limiter.limit()).map_or(1, |limit| limit.max())
    }
}

/// A builder for [`Permits`]: the lease, the store, the clock and the queue.
///
/// ```
/// use tidegate::{MINUTE, Permits, Zone};
///
/// let zone = Zone::new(1 << 20);
/// let permits = Permits::builder(8).lease(MINUTE).on(&zone, "export").max_waiters(100).build();
/// assert_eq!(permits.peek("ana").remaining(), 8);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct PermitsBuilder {
    limiter: LimiterBuilder,
    places: u64,
}

impl PermitsBuilder {
    /// Sets the lease: the time after which a permit ends if it was neither released nor renewed. It is one hour unless
    /// set.
    ///
    /// # Panics
    /// If the lease is zero or more than ten years.
    #[doc(alias("ttl", "timeout"))]
    pub fn lease(mut self, lease: Duration) -> PermitsBuilder {
        self.limiter = self.limiter.limit(Limit::concurrency(self.places, lease));
        self
    }

    /// Sets the store and the name; see [`Permits::on`].
    pub fn on(mut self, store: impl Into<MemoryStore>, name: &str) -> PermitsBuilder {
        self.limiter = self.limiter.on(store, name);
        self
    }

    /// Sets the clock of permits with a store of their own. It has no effect on a store that was set by
    /// [`PermitsBuilder::on`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> PermitsBuilder {
        self.limiter = self.limiter.clock(clock);
        self
    }

    /// Sets the largest number of waiters at a time; see [`Permits::set_max_waiters`].
    pub fn max_waiters(mut self, most: usize) -> PermitsBuilder {
        self.limiter = self.limiter.max_waiters(most);
        self
    }

    /// Creates the permits.
    pub fn build(self) -> Permits {
        Permits { limiter: self.limiter.build() }
    }
}

/// A permit in flight. Dropping or releasing it gives it back; a leaked permit (`mem::forget`) ends with its lease.
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit {
    limiter: Limiter,
    name: EncodedKey,
    id: Option<PermitId>,
}

impl Permit {
    fn of(limiter: &Limiter, name: &EncodedKey, decision: Decision) -> Permit {
        Permit { limiter: limiter.clone(), name: name.clone(), id: decision.permit() }
    }

    /// Creates the permit of a limiter's decision about this key.
    pub(crate) fn claimed(limiter: &Limiter, key: impl IntoAsk, decision: Decision) -> Permit {
        Permit::of(limiter, &limiter.named(key).0, decision)
    }

    /// Returns the number, for storage or transfer; `None` if the permit was taken with a cost of 0 and holds
    /// nothing.
    ///
    /// With the number, another process or a later request can release or renew the permit. Then pass this value
    /// to `mem::forget`, because its drop would release the permit.
    pub fn id(&self) -> Option<PermitId> {
        self.id
    }

    /// Gives the permit back. Returns true if it was still in flight, false if its lease had ended.
    pub fn release(mut self) -> bool {
        self.give_back()
    }

    /// Releases the permit once: a later call has no number left.
    fn give_back(&mut self) -> bool {
        self.id.take().is_some_and(|id| self.limiter.release_named(&self.name, id))
    }

    /// Restarts the lease. Returns true if it was still running; an ended lease stays ended.
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

/// A future that waits for a permit; created by [`Permits::acquire`].
pub type AcquirePermit = Acquire<KeyRequest<PermitKind>>;

/// A queued waiter for a permit; created by [`AcquirePermit::enqueue`](Acquire::enqueue).
pub type QueuedPermit = Queued<KeyRequest<PermitKind>>;

/// The kind of request that returns a [`Permit`].
#[derive(Debug)]
pub struct PermitKind(Limiter);

impl Kind for PermitKind {
    type Passed = Permit;

    fn passed(request: &KeyRequest<PermitKind>, passed: QueueGrant) -> Permit {
        Permit::of(&request.kind.0, &request.name, passed.waited.decision)
    }
}
