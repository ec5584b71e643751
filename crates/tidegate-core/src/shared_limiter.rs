//! A limiter for many keys over any store, also over one that other machines share.
//!
//! [`Limiter`](crate::Limiter) needs a store in memory, so its decisions are immediate and cannot fail. A
//! [`SharedLimiter`] asks any [`Store`] and awaits the reply, which may be an error. Both count alike: with the same
//! name, limit and store, they share the states of their keys.
//!
//! ```text
//!   admit(ask) -> key, cost, max wait -> limit in force, prepared once -> store.take -> Decision
//!                                        set_limit: prepared anew; the store carries the counts over
//! ```

use std::fmt;
use std::sync::Arc;

use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask, Cost, IntoAsk, ask_for};
use crate::decision::{Decision, PermitId};
use crate::decisions::{DecidedBy, Decisions};
use crate::key::{IntoKey, Key};
use crate::limit::Limit;
use crate::store::{OpenReceipt, PreparedLimit, Store, StoreError, StoreFailures, StoreMeter};
use crate::sync::Mutex;
use crate::time::Timestamp;
use crate::trace;

/// An asynchronous rate limiter for any number of keys over any [`Store`]; clones share it.
///
/// It works with a [`Zone`](crate::Zone), a [`Map`](crate::Map), [`Zones`](crate::Zones), a `RedisStore` of the crate
/// `tidegate-redis`, and a [`FallbackStore`](crate::FallbackStore), which decides while a remote store is down.
///
/// ```
/// use tidegate::{Limit, Map, SharedLimiter, StoreError, ask};
///
/// # fn run<F: Future>(future: F) -> F::Output {
/// #     let (mut future, mut context) =
/// #         (std::pin::pin!(future), std::task::Context::from_waker(std::task::Waker::noop()));
/// #     let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) else { unreachable!() };
/// #     output
/// # }
/// # run(async {
/// let store = Map::new(); // or a `RedisStore`, which many machines share
/// let limiter = SharedLimiter::on(&store, "user", Limit::per_minute(5));
///
/// assert!(limiter.admit("ana").await?.is_allowed());
/// let decision = limiter.admit(ask("ana").cost(5)).await?;
/// assert!(!decision.is_allowed() && decision.retry_after().is_some());
///
/// limiter.set_limit(Limit::per_minute(10)); // the used unit stays used
/// assert_eq!(limiter.peek("ana").await?.remaining(), 9);
/// # Ok::<(), StoreError>(())
/// # }).expect("a map cannot fail");
/// ```
///
/// # Costs and errors
///
/// A call is one request to the store. A [`StoreError`] reports that the store did not decide; see
/// [`StoreError::is_retryable`] before a retry. A `FallbackStore` returns a decision in place of most errors.
///
/// # Cancellation
///
/// A dropped future is not sent if it was not polled. A request that was sent may have been spent. A `RedisStore`
/// releases the permit of a take whose future was dropped; the units of other limits stay spent.
#[doc(alias = "distributed rate limiter")]
#[doc(alias = "rate limiter")]
#[doc(alias = "redis")]
#[derive(Clone)]
pub struct SharedLimiter {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    limit: Mutex<PreparedLimit>,
}

impl SharedLimiter {
    /// Creates a limiter on a store that other limiters, and other machines, may use, too.
    ///
    /// A name has one limit at a time, which comes into force with the first request. If the store holds the name with
    /// another limit, keys start with the units that they used under that limit.
    pub fn on<S: Store + Clone + 'static>(store: &S, name: &str, limit: Limit) -> SharedLimiter {
        SharedLimiter::over(Arc::new(store.clone()), name, limit)
    }

    /// Creates a limiter like [`SharedLimiter::on`], on a store whose type is not known at compile time.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidegate::{Limit, SharedLimiter, Store, Zone};
    ///
    /// let store: Arc<dyn Store> = Arc::new(Zone::new(1 << 20));
    /// let limiter = SharedLimiter::over(store, "user", Limit::per_minute(5));
    /// assert_eq!(limiter.limit(), Limit::per_minute(5));
    /// ```
    pub fn over(store: Arc<dyn Store>, name: &str, limit: Limit) -> SharedLimiter {
        let limit = Mutex::new(PreparedLimit::of_rule(name, limit));
        SharedLimiter { inner: Arc::new(Inner { store, limit }) }
    }

    /// Decides about one ask of one key, and spends if allowed.
    ///
    /// A cost of 0 is allowed without a request to the store. The other fields of that decision are those of an unused
    /// key; [`SharedLimiter::peek`] returns the current ones.
    pub fn admit(&self, ask: impl IntoAsk) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        let (key, ask) = read(ask);
        async move {
            let Some(ask) = ask else { return Ok(self.nothing()) };
            let limit = self.in_force();
            let decisions = self.inner.store.take(&[(limit.subject(&key), ask)]).await?;
            self.report(&limit, &decisions)
        }
    }

    /// Decides like [`SharedLimiter::admit`]. If allowed, it also returns a [`SharedTake`], which refunds exactly that
    /// take.
    ///
    /// The store keeps a receipt of the take until the [`SharedTake`] is dropped or its units are no longer owed.
    pub fn admit_tracked(
        &self,
        ask: impl IntoAsk,
    ) -> impl Future<Output = Result<(Decision, Option<SharedTake>), StoreError>> + Send {
        let (key, ask) = read(ask);
        async move {
            let (limiter, limit) = (self.clone(), self.in_force());
            let Some(ask) = ask else {
                let take = SharedTake { limiter, limit, key, receipt: None, decided_by: DecidedBy::Memory };
                return Ok((self.nothing(), Some(take)));
            };
            let mut decisions = self.inner.store.take(&[(limit.subject(&key).tracked(), ask)]).await?;
            let (decision, decided_by) = (self.report(&limit, &decisions)?, decisions.decided_by(0));
            let receipt = decisions.take_receipts().pop().flatten();
            let take = SharedTake { limiter, limit, key, receipt, decided_by };
            Ok((decision, decision.is_allowed().then_some(take)))
        }
    }

    /// Returns the decision that [`SharedLimiter::admit`] would return, without spending. For a cost of 0, the fields
    /// are those for a cost of 1.
    pub fn peek(&self, ask: impl IntoAsk) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        let (key, ask) = read(ask);
        async move {
            let limit = self.in_force();
            let decision = self.inner.store.peek(limit.subject(&key), ask.unwrap_or(Ask::ONE)).await?;
            Ok(if ask.is_some() { decision } else { decision.asking_nothing() })
        }
    }

    /// Gives unused units back: the cost of the ask, but at most the debt of the key.
    ///
    /// Use [`SharedLimiter::admit_tracked`] to refund one take exactly.
    pub fn refund(&self, ask: impl IntoAsk) -> impl Future<Output = Result<Adjusted, StoreError>> + Send {
        let (key, ask) = read(ask);
        async move {
            let Some(ask) = ask else { return Ok(Adjusted::Whole) };
            let limit = self.in_force();
            self.inner.store.adjust(limit.subject(&key), Adjustment::Refund(ask.cost)).await
        }
    }

    /// Charges units after the fact, whether or not the limit allows them, up to the limit's `max_debt`.
    ///
    /// If the remote store of a [`FallbackStore`](crate::FallbackStore) is down and its policy is `local`, the local
    /// store is charged and the error is still returned.
    pub fn charge(&self, ask: impl IntoAsk) -> impl Future<Output = Result<Adjusted, StoreError>> + Send {
        let (key, ask) = read(ask);
        async move {
            let Some(ask) = ask else { return Ok(Adjusted::Whole) };
            let limit = self.in_force();
            let (adjusted, _) = self.inner.store.charge(limit.subject(&key), ask.cost).await?;
            Ok(adjusted)
        }
    }

    /// Removes the states of a key: it is full again. Returns true if there were any.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn reset(&self, key: impl IntoKey) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let key = Key::new(Parts(&key));
        async move {
            let limit = self.in_force();
            self.inner.store.reset(limit.subject(&key)).await
        }
    }

    /// Releases a permit under a concurrency limit. Returns true if it was still in flight, false if it had been
    /// released or its lease had ended.
    ///
    /// A permit that a [`FallbackStore`](crate::FallbackStore) granted while its remote store was down is released in
    /// the local store.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn release(
        &self,
        key: impl IntoKey,
        permit: PermitId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let key = Key::new(Parts(&key));
        async move {
            let (limit, store) = (self.in_force(), &self.inner.store);
            let subject = limit.subject(&key);
            let released = store.release(subject, permit).await;
            if store.meter().is_some() && !matches!(released, Ok(true)) {
                let local = store.release(subject.in_local_store(true), permit).await?;
                return if local { Ok(true) } else { released };
            }
            released
        }
    }

    /// Restarts the lease of a permit under a concurrency limit. Returns true if it was still in flight.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn renew(
        &self,
        key: impl IntoKey,
        permit: PermitId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let key = Key::new(Parts(&key));
        async move {
            let (limit, store) = (self.in_force(), &self.inner.store);
            let subject = limit.subject(&key);
            let renewed = store.renew(subject, permit).await;
            if store.meter().is_some() && !matches!(renewed, Ok(true)) {
                let local = store.renew(subject.in_local_store(true), permit).await?;
                return if local { Ok(true) } else { renewed };
            }
            renewed
        }
    }

    /// Returns the limit in force.
    pub fn limit(&self) -> Limit {
        *self.inner.limit.lock().limit()
    }

    /// Replaces the limit, for this limiter and all its clones. The change comes into force with the next request;
    /// requests that are already on their way are decided by the previous limit.
    ///
    /// Keys keep the units that they have used. Permits stay valid and keep their leases. Other processes that use the
    /// name have to be given the limit as well: each request is decided by the limit of its process.
    pub fn set_limit(&self, limit: Limit) {
        let mut in_force = self.inner.limit.lock();
        // The same limit stays prepared, so that a store does not prepare its data about it again.
        if *in_force.limit() != limit {
            *in_force = PreparedLimit::of_rule(in_force.namespace(), limit);
        }
    }

    /// Returns the failures of a remote store with a fallback, and the decisions of its fallback. All counts are 0 for
    /// other stores.
    pub fn store_failures(&self) -> StoreFailures {
        self.inner.store.meter().map(StoreMeter::failures).unwrap_or_default()
    }

    fn in_force(&self) -> PreparedLimit {
        self.inner.limit.lock().clone()
    }

    /// Returns the decision about the only ask of a take, and counts it by the store or policy that made it.
    fn report(&self, limit: &PreparedLimit, decisions: &Decisions) -> Result<Decision, StoreError> {
        let decision = only(decisions)?;
        if let Some(meter) = self.inner.store.meter() {
            meter.decided.count(decisions.decided_by(0), decision.is_allowed());
        }
        trace::observed(limit.namespace(), &decision);
        Ok(decision)
    }

    /// Returns the decision about a cost of 0, for which the store is not asked.
    fn nothing(&self) -> Decision {
        self.limit().peek(&State::default(), Timestamp::EPOCH, Ask::ONE).asking_nothing()
    }
}

impl fmt::Debug for SharedLimiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.in_force();
        out.debug_struct("SharedLimiter")
            .field("name", &limit.namespace())
            .field("limit", limit.limit())
            .field("store", &self.inner.store)
            .finish()
    }
}

/// One take of a [`SharedLimiter`], which can be refunded by itself; created by [`SharedLimiter::admit_tracked`].
///
/// A refund gives back at most the part of this take that is still owed: not the part that time has repaid, and
/// nothing of other takes. It goes to the store, and under the limit, that decided the take. A dropped take stays
/// charged.
#[must_use = "a take that is dropped cannot be refunded"]
pub struct SharedTake {
    limiter: SharedLimiter,
    limit: PreparedLimit,
    key: Key,
    receipt: Option<OpenReceipt>,
    decided_by: DecidedBy,
}

impl SharedTake {
    /// Returns the units that can still be refunded; 0 if the store has no receipt of the take.
    pub fn units(&self) -> u64 {
        self.receipt.as_ref().map_or(0, OpenReceipt::units)
    }

    /// Returns the store or policy that decided the take.
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Gives back everything of the take that is still owed.
    pub async fn refund(mut self) -> Result<Adjusted, StoreError> {
        self.refund_units(self.units()).await
    }

    /// Gives back this many units, as far as they are still owed. A refund whose reply is an error is not repeated: its
    /// units are no longer refundable.
    pub async fn refund_units(&mut self, units: u64) -> Result<Adjusted, StoreError> {
        let Ok(cost) = Cost::new(units) else { return Ok(Adjusted::Whole) };
        let Some(receipt) = &mut self.receipt else { return Ok(Adjusted::Capped) };
        let is_local = self.decided_by == DecidedBy::Local;
        let subject = self.limit.subject(&self.key).in_local_store(is_local);
        self.limiter.inner.store.refund(subject, receipt, cost).await
    }
}

impl fmt::Debug for SharedTake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedTake")
            .field("units", &self.units())
            .field("decided_by", &self.decided_by)
            .finish_non_exhaustive()
    }
}

/// A borrowed key, so that futures own only its encoded bytes.
struct Parts<'a, K>(&'a K);

impl<K: IntoKey> IntoKey for Parts<'_, K> {
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        self.0.each_part(use_part);
    }

    fn only_part(&self) -> Option<&[u8]> {
        self.0.only_part()
    }
}

/// Returns the encoded key, and the ask (`None` for a cost of 0).
fn read(ask: impl IntoAsk) -> (Key, Option<Ask>) {
    let (key, units, max_wait) = ask.into_parts();
    (Key::new(key), ask_for(units, max_wait))
}

/// Returns the decision about the only ask of a take.
fn only(decisions: &Decisions) -> Result<Decision, StoreError> {
    match decisions.each() {
        [decision] => Ok(*decision),
        each => {
            Err(StoreError::outcome_unknown(format!("the store decided about {} of 1 limits", each.len())))
        }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Map, StoreFuture, Subject};

    /// A store that decides about no ask.
    #[derive(Clone, Debug)]
    struct Mute;

    impl Store for Mute {
        fn take<'a>(&'a self, _: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
            StoreFuture::ready(Vec::new().into())
        }

        fn peek<'a>(&'a self, _: Subject<'a>, _: Ask) -> StoreFuture<'a, Decision> {
            StoreFuture::failed(StoreError::unavailable("mute"))
        }

        fn adjust<'a>(&'a self, _: Subject<'a>, _: Adjustment) -> StoreFuture<'a, Adjusted> {
            StoreFuture::failed(StoreError::unavailable("mute"))
        }

        fn release<'a>(&'a self, _: Subject<'a>, _: PermitId) -> StoreFuture<'a, bool> {
            StoreFuture::failed(StoreError::unavailable("mute"))
        }

        fn renew<'a>(&'a self, _: Subject<'a>, _: PermitId) -> StoreFuture<'a, bool> {
            StoreFuture::failed(StoreError::unavailable("mute"))
        }

        fn reset<'a>(&'a self, _: Subject<'a>) -> StoreFuture<'a, bool> {
            StoreFuture::failed(StoreError::unavailable("mute"))
        }

        fn reset_limit<'a>(&'a self, _: Subject<'a>) -> StoreFuture<'a, bool> {
            StoreFuture::failed(StoreError::unavailable("mute"))
        }
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(output) => output,
            std::task::Poll::Pending => panic!("the store replies at once"),
        }
    }

    #[test]
    fn a_take_without_a_decision_is_an_error_and_not_an_admission() {
        let limiter = SharedLimiter::on(&Mute, "a", Limit::per_hour(1));
        assert!(now(limiter.admit("ana")).is_err_and(|error| !error.is_retryable()));
        assert!(now(limiter.admit_tracked("ana")).is_err());
        assert!(now(limiter.peek("ana")).is_err() && now(limiter.charge("ana")).is_err());
        let nothing = now(limiter.admit(crate::ask("ana").cost(0))).expect("the store is not asked");
        assert!(nothing.is_allowed());
        assert_eq!(limiter.store_failures(), StoreFailures::default());
    }

    #[test]
    fn the_same_limit_stays_prepared() {
        let limiter = SharedLimiter::on(&Map::new(), "a", Limit::per_hour(1));
        let same = |limiter: &SharedLimiter| std::ptr::from_ref(limiter.in_force().limit());
        let before = same(&limiter);
        limiter.set_limit(Limit::per_hour(1));
        assert_eq!(same(&limiter), before);
        limiter.clone().set_limit(Limit::per_hour(2));
        assert_ne!(same(&limiter), before);
        assert_eq!(limiter.limit(), Limit::per_hour(2));
    }

    #[test]
    fn debug_names_the_limit_and_the_store() {
        let limiter = SharedLimiter::on(&Mute, "a", Limit::per_hour(1));
        let text = format!("{limiter:?}");
        assert!(text.contains("Limit(1/h)") && text.contains("Mute"), "{text}");
    }
}
