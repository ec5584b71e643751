//! A limiter for many keys under one limit.

mod builder;
mod each;
mod in_force;
mod together;

pub use builder::LimiterBuilder;
pub use each::AdmitEach;
pub use together::{LimiterAsk, admit_all};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask, Cost, IntoAsk, ask_for};
use crate::decision::{Decision, PermitId};
use crate::key::IntoKey;
use crate::limit::Limit;
use crate::store::bound::BoundLimit;
use crate::store::state_key::{EncodedKey, Namespace, StateKey};
use crate::store::{LimitStore, MemoryStore, OpenReceipt, WhenFull, Zone};
use crate::sync::{AtomicUsize, Ordering};
use crate::time::{Clock, Source, Ticks, Timestamp};
use crate::trace;
use crate::wait::{
    Acquire, KeyFifo, KeyRequest, Kind, MAX_WAITERS, TrackedTake, Untracked, WaitQueue, WaitTarget, WaiterAsk,
};
use in_force::LimitInForce;

/// The size in bytes of the zone of a limiter that is created without a store.
const ZONE_BYTES: usize = if cfg!(any(tidegate_models, miri)) { 1 << 10 } else { 1 << 20 };

/// One limit for any number of keys, each with its own state; clones share the states.
///
/// ```
/// use tidegate::{Limit, Limiter, Verdict, ask};
///
/// let limiter = Limiter::new(Limit::per_second(10).burst(20));
/// match limiter.admit("ana").verdict() {
///     Verdict::Allowed { .. } => println!("welcome"),
///     Verdict::Denied { retry_after } => println!("try again in {retry_after:?}"),
///     Verdict::Impossible => println!("never"),
/// }
/// limiter.admit(("192.0.2.7", "login")).into_result()?; // any parts, joined injectively
/// limiter.admit(ask("ana").cost(3)).into_result()?;
/// # Ok::<(), tidegate::Denied>(())
/// ```
///
/// States are in a store: a [`Zone`] of fixed size by default, or a [`Map`](crate::Map). In a full zone, new
/// keys share cells and may be denied early, but none is admitted too much unless [`WhenFull::Forget`] is set.
#[doc(alias(
    "rate limiter",
    "throttle",
    "GCRA",
    "token bucket",
    "leaky bucket as a meter",
    "keyed limiter",
    "quota"
))]
#[derive(Clone)]
pub struct Limiter {
    inner: Arc<Inner>,
}

struct Inner {
    memory: MemoryStore,
    namespace: Namespace,
    /// 1 if keys may be evicted when the zone is full ([`WhenFull::Forget`]), else 0.
    forgets: AtomicUsize,
    limit: LimitInForce,
    queue: WaitQueue<KeyFifo>,
}

impl Limiter {
    /// Creates a limiter with a [`Zone`] of its own: one mebibyte, enough for about 40,000 keys at a time.
    ///
    /// For more keys, pass a larger zone to [`Limiter::on`].
    pub fn new(limit: Limit) -> Limiter {
        Limiter::on(&Zone::new(ZONE_BYTES), "", limit)
    }

    /// Creates a limiter like [`Limiter::new`] that reads another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Limiter {
        Limiter::on(&Zone::with_clock(ZONE_BYTES, clock), "", limit)
    }

    /// Creates a limiter on a store that other limiters may use, too.
    ///
    /// Limiters with the same name and the same limit on the same store share the states of their keys, but not
    /// their queues of waiters. To use one limit in several places, clone one limiter.
    ///
    /// A name has one limit at a time. If the store or its file holds the name with another limit, this limit
    /// replaces it, and keys start with the units that they used under the previous limit. Two limits that apply at
    /// the same time need two names.
    pub fn on(store: impl Into<MemoryStore>, name: &str, limit: Limit) -> Limiter {
        let (memory, namespace): (MemoryStore, _) = (store.into(), Namespace::new(name));
        let limit = LimitInForce::new(&memory, name, limit);
        let queue = WaitQueue::new(KeyFifo, MAX_WAITERS);
        let forgets = AtomicUsize::new(0);
        Limiter { inner: Arc::new(Inner { memory, namespace, forgets, limit, queue }) }
    }

    /// Sets what a zone does with a new key when it has no free cell, for this limiter and all its clones. It has
    /// no effect on a map, or on limits that do not [fit a cell](Limit::fits_cell).
    #[doc(alias("eviction"))]
    pub fn set_when_full(&self, when_full: WhenFull) {
        self.inner.forgets.store((when_full == WhenFull::Forget).into(), Ordering::Relaxed);
    }

    /// Sets the largest number of waiters at a time, for this limiter and all its clones. The default is 65,536.
    /// Waiters beyond a lower number stay queued.
    ///
    /// An `acquire` that finds the queue full is denied at once; `Denied::is_queue_full` is then true.
    #[doc(alias("backpressure", "load shedding"))]
    pub fn set_max_waiters(&self, most: usize) {
        self.inner.queue.lock(|state| state.set_max_waiters(most));
    }

    /// Returns the limit in force.
    pub fn limit(&self) -> Limit {
        self.inner.limit.limit()
    }

    /// Returns the limit in force if the first limit was ever replaced, else `None`. The `None` case costs one
    /// atomic load.
    #[inline]
    pub fn replaced_limit(&self) -> Option<Limit> {
        self.inner.limit.unreplaced().is_none().then(|| self.inner.limit.limit())
    }

    /// Decides about one ask of one key, and spends if allowed.
    ///
    /// While waiters are queued for the same key ([`Limiter::acquire`]), this ask is denied, so that it cannot
    /// overtake them. Its `retry_after` is then the predicted wait at the end of that queue, or a lower bound of it. A
    /// caller that wants to wait behind them uses `acquire`.
    #[doc(alias("check", "try_acquire", "hit"))]
    #[must_use = "a decision that is not read limits nothing"]
    #[inline]
    pub fn admit(&self, ask: impl IntoAsk) -> Decision {
        let (key, units, max_wait) = ask.into_parts();
        match ask_for(units, max_wait) {
            Some(ask) => trace::decided(self.inner.namespace.name(), || self.inner.admit_key(&key, ask)),
            None => self.inner.ask_nothing(&self.inner.account(&self.inner.name(&key))),
        }
    }

    /// Decides like [`Limiter::admit`]. If allowed, it also returns a [`TrackedTake`], which refunds exactly that
    /// take.
    ///
    /// [`Limiter::refund`] subtracts units from the whole current debt of the key, even if the take itself has been
    /// repaid by time. A [`TrackedTake`] gives back at most the part of its own take that is still owed.
    #[doc(alias("idempotent refund", "reservation"))]
    pub fn admit_tracked(&self, ask: impl IntoAsk) -> (Decision, Option<TrackedTake>) {
        let (account, ask) = self.inner.read(ask);
        let Some(ask) = ask else {
            let decision = self.inner.ask_nothing(&account);
            return (decision, Some(TrackedTake::new(self.target(), account, None)));
        };
        let name = self.inner.namespace.name();
        if let Some(decision) = self.inner.put_off(&account, ask) {
            trace::observed(name, &decision);
            return (decision, None);
        }
        let (decision, receipt) = self.inner.holder(&account).take_tracked(&account, ask);
        trace::observed(name, &decision);
        let take = decision.is_allowed().then(|| TrackedTake::new(self.target(), account, receipt));
        (decision, take)
    }

    /// Decides about many asks, each by itself and in order. It is faster than one call per ask, because the states
    /// of a group are fetched together and the clock is read once per group.
    ///
    /// Asks are taken from the iterator and decided in groups of up to 32. The asks of a group are decided as of
    /// one instant, with the results of single asks at that instant.
    ///
    /// ```
    /// use tidegate::{Limit, Limiter};
    ///
    /// let limiter = Limiter::new(Limit::per_second(1));
    /// let allowed: Vec<_> = limiter.admit_each(["ana", "bob", "ana"]).map(|decision| decision.is_allowed()).collect();
    /// assert_eq!(allowed, [true, true, false]);
    /// ```
    #[doc(alias("batch", "pipeline"))]
    pub fn admit_each<I>(&self, asks: I) -> AdmitEach<'_, I::IntoIter>
    where
        I: IntoIterator<Item: IntoAsk>,
    {
        AdmitEach::new(self, asks.into_iter())
    }

    /// Creates an ask for [`admit_all`].
    pub fn ask(&self, ask: impl IntoAsk) -> LimiterAsk {
        let (key, units, max_wait) = ask.into_parts();
        LimiterAsk::new(self.clone(), self.inner.name(&key), ask_for(units, max_wait))
    }

    /// Returns the decision that [`Limiter::admit`] would return, without spending.
    ///
    /// For display and metrics: another caller may spend between a peek and an admit.
    #[must_use = "a decision that is not read limits nothing"]
    pub fn peek(&self, ask: impl IntoAsk) -> Decision {
        let (account, ask) = self.inner.read(ask);
        self.inner.decide(&account, ask, |holder, ask| holder.look(&account, ask))
    }

    /// Gives unused units back: the cost of the ask, but at most the debt of the key.
    ///
    /// Returns [`Adjusted::Capped`] if the debt was smaller, and [`Adjusted::NeedsPermit`] under a concurrency limit.
    /// The waiters of the key are served at once.
    ///
    /// ```
    /// use tidegate::{Adjusted, Limit, Limiter, ask};
    ///
    /// let limiter = Limiter::new(Limit::per_hour(100));
    /// assert!(limiter.admit(ask("ana").cost(80)).is_allowed()); // an estimate
    /// assert_eq!(limiter.refund(ask("ana").cost(30)), Adjusted::Whole); // it was 50
    /// assert_eq!(limiter.peek("ana").remaining(), 50);
    /// ```
    #[doc(alias("credit", "give back"))]
    pub fn refund(&self, ask: impl IntoAsk) -> Adjusted {
        self.adjust(ask, Adjustment::Refund)
    }

    /// Charges units after the fact, whether or not the limit allows them, up to the limit's `max_debt`.
    ///
    /// For a cost that is known only afterwards, such as the bytes of a response. Later asks wait until the debt is
    /// repaid.
    #[doc(alias("debit", "post-paid"))]
    pub fn charge(&self, ask: impl IntoAsk) -> Adjusted {
        self.adjust(ask, Adjustment::Charge)
    }

    /// Adjusts the state of one key, and then serves its waiters.
    fn adjust(&self, ask: impl IntoAsk, adjustment: impl FnOnce(Cost) -> Adjustment) -> Adjusted {
        let (key, units, _) = ask.into_parts();
        let Ok(cost) = Cost::new(units) else { return Adjusted::Whole };
        let account = self.inner.account(&self.inner.name(&key));
        let adjusted = self.inner.holder(&account).adjust_in(&account, adjustment(cost));
        self.inner.queue.serve_key(&self.target(), account.name());
        adjusted
    }

    /// Removes the state of a key: the key is full again.
    ///
    /// It removes the states under all limits of this name. Waiters stay queued, and are served from the full state.
    /// Takes made before can no longer be refunded.
    #[doc(alias("unblock", "clear"))]
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn reset(&self, key: impl IntoKey) {
        let (inner, name) = (&self.inner, self.inner.name(&key));
        // An error means that the store does not list all its limits; the missing ones belong to other limiters.
        let _ = inner.memory.forget(&inner.namespace, &name);
        inner.limit.with(|limit| {
            inner.memory.forget_state(&name, limit.name());
            limit.names_before().iter().for_each(|before| {
                inner.memory.forget_state(&name, before);
            });
        });
        inner.queue.begin_anew(&self.target(), &name);
    }

    /// Replaces the limit. Keys keep the units that they have used; permits stay valid and keep their leases.
    ///
    /// Every ask is decided under either the old limit or the new one. Waiters are decided again under the new one.
    #[doc(alias("reload", "dynamic limit"))]
    pub fn set_limit(&self, limit: Limit) {
        let inner = &self.inner;
        let set = || inner.limit.set(&inner.memory, inner.namespace.name(), limit);
        inner.queue.replace_limit(&self.target(), set);
    }

    /// Waits until the ask is allowed. The future runs on any runtime; it can also block a thread.
    ///
    /// The waiters of one key pass in FIFO order.
    ///
    /// A dropped future leaves the queue and spends nothing; the waiters behind it move up.
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, SECOND};
    ///
    /// let limiter = Limiter::new(Limit::per_second(100).burst(1));
    /// limiter.acquire("ana").blocking()?; // or `.await`, on any runtime
    /// limiter.acquire("ana").max_wait(SECOND).blocking()?; // about 10 ms later
    /// # Ok::<(), tidegate::Denied>(())
    /// ```
    #[doc(alias("wait", "until_ready", "backpressure"))]
    pub fn acquire(&self, ask: impl IntoAsk) -> Acquire {
        self.acquire_as(ask, Untracked)
    }

    /// Releases a permit under a concurrency limit. Returns true if it was still in flight, false if it had been
    /// released or its lease had ended.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn release(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.release_named(&self.inner.name(&key), permit)
    }

    /// Restarts the lease of a permit under a concurrency limit. Returns true if it was still in flight.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn renew(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.renew_named(&self.inner.name(&key), permit)
    }

    /// Waits like [`Limiter::acquire`], with the result of this kind.
    pub(crate) fn acquire_as<K: Kind>(&self, ask: impl IntoAsk, kind: K) -> Acquire<KeyRequest<K>> {
        let (name, ask, max_wait) = self.named(ask);
        Acquire::new(KeyRequest::new(self.target(), name, ask, kind), max_wait)
    }

    /// Returns the name of the key, the ask (`None` for a cost of 0), and the max wait.
    pub(crate) fn named(&self, ask: impl IntoAsk) -> (EncodedKey, Option<Ask>, Option<Duration>) {
        let (key, units, max_wait) = ask.into_parts();
        (self.inner.name(&key), ask_for(units, None), max_wait)
    }

    pub(crate) fn admit_named(&self, name: &EncodedKey, ask: Option<Ask>) -> Decision {
        let account = self.inner.account(name);
        trace::decided(self.inner.namespace.name(), || self.inner.admit(&account, ask))
    }

    pub(crate) fn release_named(&self, name: &EncodedKey, permit: PermitId) -> bool {
        let account = self.inner.account(name);
        let released = self.inner.holder(&account).release_in(&account, permit);
        self.inner.queue.serve_key(&self.target(), name);
        released
    }

    pub(crate) fn renew_named(&self, name: &EncodedKey, permit: PermitId) -> bool {
        let account = self.inner.account(name);
        self.inner.holder(&account).renew_in(&account, permit)
    }

    fn target(&self) -> Arc<dyn WaitTarget> {
        self.inner.clone()
    }
}

impl Inner {
    /// Returns the account of the key, and the ask (`None` for a cost of 0).
    #[inline]
    fn read(&self, ask: impl IntoAsk) -> (StateKey, Option<Ask>) {
        let (key, units, max_wait) = ask.into_parts();
        (self.account(&self.name(&key)), ask_for(units, max_wait))
    }

    /// Encodes the key under the namespace of the limiter.
    #[inline]
    fn name(&self, key: &impl IntoKey) -> EncodedKey {
        EncodedKey::new(&self.namespace, key)
    }

    /// Decides under the limit in force, without a reference count while it is the first one.
    #[inline]
    fn admit_key(&self, key: &impl IntoKey, ask: Ask) -> Decision {
        match self.limit.unreplaced() {
            Some(limit) => self.admit_under(limit, key, ask),
            None => self.admit_replaced(key, ask),
        }
    }

    /// Decides under a limit that has replaced the first one.
    #[inline(never)]
    fn admit_replaced(&self, key: &impl IntoKey, ask: Ask) -> Decision {
        self.limit.with(|limit| self.admit_under(limit, key, ask))
    }

    #[inline(always)]
    fn admit_under(&self, limit: &BoundLimit, key: &impl IntoKey, ask: Ask) -> Decision {
        match self.straight_to(limit) {
            Some(zone) => zone.spend_on(key, limit, self.when_full(), ask),
            None => self.admit(&self.account(&self.name(key)), Some(ask)),
        }
    }

    /// Returns the zone if one of its cells is enough for a decision: the zone holds the state, and no waiter is
    /// queued.
    #[inline]
    fn straight_to(&self, limit: &BoundLimit) -> Option<&Zone> {
        match self.memory.holder(limit.terms()) {
            LimitStore::Zone(zone) if self.queue.is_empty() => Some(zone),
            _ => None,
        }
    }

    fn admit(&self, account: &StateKey, ask: Option<Ask>) -> Decision {
        self.decide(account, ask, |holder, ask| holder.spend(account, ask))
    }

    /// Decides behind the waiters of the key; an ask with a cost of 0 is allowed.
    fn decide(
        &self,
        account: &StateKey,
        ask: Option<Ask>,
        decide: impl FnOnce(LimitStore<'_>, Ask) -> Decision,
    ) -> Decision {
        let Some(ask) = ask else { return self.ask_nothing(account) };
        self.put_off(account, ask).unwrap_or_else(|| decide(self.holder(account), ask))
    }

    /// Returns the denial of an ask because waiters are queued for the same key; `None` if there are none.
    fn put_off(&self, account: &StateKey, ask: Ask) -> Option<Decision> {
        let wait = self.wait_behind(account, ask)?;
        Some(self.holder(account).look(account, ask).denied_for(wait))
    }

    /// Decides about a cost of 0, without spending.
    #[cold]
    fn ask_nothing(&self, account: &StateKey) -> Decision {
        let look = |holder: LimitStore<'_>, ask| holder.look(account, ask);
        self.decide(account, Some(Ask::ONE), look).asking_nothing()
    }

    #[inline]
    fn when_full(&self) -> WhenFull {
        if self.forgets.load(Ordering::Relaxed) == 0 { WhenFull::Share } else { WhenFull::Forget }
    }

    /// Returns the store that keeps the state of this account.
    fn holder(&self, account: &StateKey) -> LimitStore<'_> {
        self.memory.holder(account.terms())
    }

    #[inline]
    fn wait_behind(&self, account: &StateKey, ask: Ask) -> Option<Ticks> {
        if self.queue.is_empty() { None } else { self.queue.wait_behind(self, account.name(), ask) }
    }
}

impl WaitTarget for Inner {
    fn queue(&self) -> &WaitQueue<KeyFifo> {
        &self.queue
    }

    fn clock(&self) -> &Source {
        self.memory.clock()
    }

    fn account(&self, name: &EncodedKey) -> StateKey {
        name.clone().under(self.limit.bound()).when_full(self.when_full())
    }

    fn take_if_free(&self, account: &StateKey, ask: Ask) -> Decision {
        self.holder(account).take_if_free(account, ask, None).0
    }

    fn take_for_waiter(
        &self,
        account: &StateKey,
        WaiterAsk { ask, is_tracked }: WaiterAsk,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        match is_tracked {
            true => self.holder(account).take_if_free_tracked(account, ask, at),
            false => self.holder(account).take_for_waiter(account, ask, at),
        }
    }

    fn refund(&self, account: &StateKey, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted {
        self.holder(account).refund(account, receipt, cost)
    }

    fn look(&self, account: &StateKey, ask: Ask) -> Decision {
        self.holder(account).look(account, ask)
    }

    fn state(&self, account: &StateKey) -> State {
        self.holder(account).state_of(account)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Limiter").field("limit", &self.limit()).field("store", &self.inner.memory).finish()
    }
}
