//! A limiter whose limit comes with each ask.

use std::fmt;
use std::sync::Arc;

use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::key::IntoKey;
use crate::limit::Limit;
use crate::store::bound::BoundLimit;
use crate::store::state_key::{EncodedKey, Namespace, StateKey};
use crate::store::together::{Bid, take_all};
use crate::store::zone::Placed;
use crate::store::{LimitStore, MemoryStore, PreparedLimit, StoreError, WhenFull, Zone};
use crate::time::{RECENT, Timestamp};

/// The number of asks in a group: more cells would evict each other from the L1 cache.
const TOGETHER: usize = 32;

/// A limiter of the keys on a store whose limit is given with each ask; clones share the states.
///
/// A server uses it when its clients name the limit. A state belongs to (name, algorithm, numbers, key). So two
/// limits on one key are two states that never interfere, and a key starts full under other numbers. A limit is
/// prepared once, where it is parsed, and decides any number of times.
///
/// ```
/// use tidegate::{DynamicLimiter, Ask, Limit, Zone};
///
/// let limiter = DynamicLimiter::on(&Zone::new(1 << 20), "");
/// let limit = limiter.prepare("2/60s".parse()?);
/// assert_eq!(limiter.admit("ana", &limit, Ask::ONE).remaining(), 1);
/// let other = limiter.prepare(Limit::per_minute(3));
/// assert_eq!(limiter.admit("ana", &other, Ask::ONE).remaining(), 2);
/// # Ok::<(), tidegate::LimitError>(())
/// ```
#[doc(alias("AdHoc", "ad-hoc limit", "CL.THROTTLE", "redis-cell"))]
#[derive(Clone)]
pub struct DynamicLimiter {
    inner: Arc<Inner>,
}

struct Inner {
    memory: MemoryStore,
    namespace: Namespace,
}

/// One ask of one key under one limit, for [`DynamicLimiter::admit_each`] and [`DynamicLimiter::admit_all`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DynamicAsk<'l, K> {
    /// The key.
    pub key: K,
    /// The limit, prepared by [`DynamicLimiter::prepare`].
    pub limit: &'l PreparedLimit,
    /// The cost and the max wait.
    pub ask: Ask,
}

impl<'l, K> DynamicAsk<'l, K> {
    /// Creates an ask of this key under this limit.
    pub const fn new(key: K, limit: &'l PreparedLimit, ask: Ask) -> DynamicAsk<'l, K> {
        DynamicAsk { key, limit, ask }
    }
}

impl DynamicLimiter {
    /// Creates a limiter for the keys under this name, on a store that other limiters may use, too.
    pub fn on(store: impl Into<MemoryStore>, name: &str) -> DynamicLimiter {
        DynamicLimiter { inner: Arc::new(Inner { memory: store.into(), namespace: Namespace::new(name) }) }
    }

    /// Prepares a limit for all its decisions here: its numbers and this name are hashed once.
    ///
    /// Keep the result: preparing costs more than a decision.
    pub fn prepare(&self, limit: Limit) -> PreparedLimit {
        PreparedLimit::dynamic(self.inner.namespace.name(), limit)
    }

    /// Decides about one ask, and spends if allowed.
    #[must_use = "a decision that is not read limits nothing"]
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn admit(&self, key: impl IntoKey, limit: &PreparedLimit, ask: Ask) -> Decision {
        self.inner.with(limit, |bound| match self.inner.straight_to(bound) {
            Some(zone) => zone.spend_on(&key, bound, WhenFull::Share, ask),
            None => {
                let account = account(&key, bound);
                self.inner.holder(&account).spend(&account, ask)
            }
        })
    }

    /// Decides about many asks, each by itself and in order, and calls `tell` with each decision. It is faster than
    /// one call per ask, because the states of a group of 32 are fetched together.
    ///
    /// All asks are decided as of one instant, with the results of single asks at that instant. A call that takes
    /// longer than a twentieth of a second advances to a later instant.
    ///
    /// ```
    /// use tidegate::{DynamicLimiter, DynamicAsk, Ask, Limit, Zone};
    ///
    /// let limiter = DynamicLimiter::on(&Zone::new(1 << 20), "");
    /// let limit = limiter.prepare(Limit::per_hour(1));
    /// let asks = ["ana", "bob", "ana"].map(|key| DynamicAsk::new(key, &limit, Ask::ONE));
    /// let mut allowed = Vec::new();
    /// limiter.admit_each(asks.iter().copied(), |decision| allowed.push(decision.is_allowed()));
    /// assert_eq!(allowed, [true, true, false]);
    /// ```
    pub fn admit_each<'l, K: IntoKey>(
        &self,
        asks: impl Iterator<Item = DynamicAsk<'l, K>> + Clone,
        mut tell: impl FnMut(Decision),
    ) {
        let (mut rest, mut at) = (asks, None::<Timestamp>);
        loop {
            let mut places = [None; TOGETHER];
            let mut count = 0;
            for (place, asked) in places.iter_mut().zip(rest.clone()) {
                *place = self.inner.with(asked.limit, |bound| {
                    // Counts of previous limits are looked up by name.
                    let zone = self.inner.straight_to(bound).filter(|_| bound.history().is_empty())?;
                    Some(Placed::new(zone, bound, &asked.key, Some(asked.ask)))
                });
                count += 1;
            }
            if count == 0 {
                return;
            }
            let now = self.inner.memory.clock().now();
            let at = at.insert(at.filter(|at| now.since(*at) < RECENT).unwrap_or(now));
            for (place, asked) in places[..count].iter().zip(&mut rest) {
                tell(self.inner.with(asked.limit, |bound| match (self.inner.memory.zone(), place) {
                    (Some(zone), Some(placed)) => zone.spend_placed(at, placed, bound, WhenFull::Share),
                    _ => {
                        let account = account(&asked.key, bound);
                        self.inner.holder(&account).spend_as_of(&account, asked.ask, at)
                    }
                }));
            }
        }
    }

    /// Takes all or none: spends only if every ask is allowed. One key under two limits is two states; under one
    /// limit its asks are decided one after the other.
    #[must_use = "a decision that is not read limits nothing"]
    pub fn admit_all<K: IntoKey>(&self, asks: &[DynamicAsk<'_, K>]) -> Decisions {
        let account =
            |asked: &DynamicAsk<'_, K>| self.inner.with(asked.limit, |bound| account(&asked.key, bound));
        let accounts: Vec<_> = asks.iter().map(account).collect();
        let bids = accounts.iter().zip(asks).map(|(account, asked)| Bid {
            holder: self.inner.holder(account),
            account,
            ask: asked.ask,
            is_peek: false,
        });
        take_all(&bids.collect::<Vec<_>>())
    }

    /// Returns the decision that [`DynamicLimiter::admit`] would return, without spending.
    ///
    /// For display and metrics: another caller may spend between a peek and an admit.
    #[must_use = "a decision that is not read limits nothing"]
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn peek(&self, key: impl IntoKey, limit: &PreparedLimit, ask: Ask) -> Decision {
        self.inner.on_account(&key, limit, |holder, account| holder.look(account, ask))
    }

    /// Charges units after the fact, or gives unused units back.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn adjust(&self, key: impl IntoKey, limit: &PreparedLimit, adjustment: Adjustment) -> Adjusted {
        self.inner.on_account(&key, limit, |holder, account| holder.adjust_in(account, adjustment))
    }

    /// Releases a permit under a concurrency limit. Returns true if it was still in flight.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn release(&self, key: impl IntoKey, limit: &PreparedLimit, permit: PermitId) -> bool {
        self.inner.on_account(&key, limit, |holder, account| holder.release_in(account, permit))
    }

    /// Restarts the lease of a permit under a concurrency limit. Returns true if it was still in flight.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn renew(&self, key: impl IntoKey, limit: &PreparedLimit, permit: PermitId) -> bool {
        self.inner.on_account(&key, limit, |holder, account| holder.renew_in(account, permit))
    }

    /// Removes the states of a key under every limit. Returns true if there was any state.
    ///
    /// # Errors
    /// While more limits are in use than the store lists (1,024), because then not all of them can be found.
    /// [`DynamicLimiter::reset_limit`] works nevertheless.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn reset(&self, key: impl IntoKey) -> Result<bool, StoreError> {
        let Inner { memory, namespace } = &*self.inner;
        memory.forget(namespace, &EncodedKey::new(namespace, &key)).map_err(StoreError::from)
    }

    /// Removes the state of a key under this limit only. Returns true if there was a state.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn reset_limit(&self, key: impl IntoKey, limit: &PreparedLimit) -> bool {
        let Inner { memory, .. } = &*self.inner;
        self.inner
            .with(limit, |bound| memory.forget_state(&EncodedKey::new(bound.namespace(), &key), bound.name()))
    }
}

impl Inner {
    /// Calls `use_it` with the limit in this store.
    #[inline]
    fn with<R>(&self, limit: &PreparedLimit, use_it: impl FnOnce(&Arc<BoundLimit>) -> R) -> R {
        limit.with_bound(self.memory.limits(), || self.memory.clock().now(), use_it)
    }

    /// Returns the zone, if it holds the states of this limit.
    #[inline]
    fn straight_to(&self, limit: &BoundLimit) -> Option<&Zone> {
        match self.memory.holder(limit.terms()) {
            LimitStore::Zone(zone) => Some(zone),
            LimitStore::Map(_) => None,
        }
    }

    fn holder(&self, account: &StateKey) -> LimitStore<'_> {
        self.memory.holder(account.terms())
    }

    fn on_account<R>(
        &self,
        key: &impl IntoKey,
        limit: &PreparedLimit,
        use_it: impl FnOnce(LimitStore<'_>, &StateKey) -> R,
    ) -> R {
        self.with(limit, |bound| {
            let account = account(key, bound);
            use_it(self.holder(&account), &account)
        })
    }
}

/// Returns the key under a limit, as the store names its state.
fn account(key: &impl IntoKey, limit: &Arc<BoundLimit>) -> StateKey {
    EncodedKey::new(limit.namespace(), key).under(Arc::clone(limit))
}

impl fmt::Debug for DynamicLimiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DynamicLimiter").field("store", &self.inner.memory).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Cost, Map};

    type Owned = (&'static str, PreparedLimit, Ask);

    fn asked(key: &'static str, limit: &str, units: u64) -> Owned {
        let limit = PreparedLimit::dynamic("x", limit.parse().expect("a limit"));
        (key, limit, Ask::new(Cost::of(units)))
    }

    fn each(asks: &[Owned]) -> impl Iterator<Item = DynamicAsk<'_, &'static str>> + Clone {
        asks.iter().map(|(key, limit, ask)| DynamicAsk { key: *key, limit, ask: *ask })
    }

    fn mixed() -> Vec<Owned> {
        let limits =
            ["3/h", "5/h burst 2", "2/h sliding-log", "4/h fixed-window", "2/h leaky-bucket queue 1"];
        (0..200).map(|at| asked(["ana", "bob", "eve"][at % 3], limits[at % 5], 1 + at as u64 % 2)).collect()
    }

    fn all_at_once(adhoc: &DynamicLimiter) -> Vec<Decision> {
        let (asks, mut decisions) = (mixed(), Vec::new());
        adhoc.admit_each(each(&asks), |decision| decisions.push(decision));
        decisions
    }

    #[test]
    fn many_at_once_are_decided_as_one_by_one_also_by_a_map() {
        let clock = Arc::new(crate::ManualClock::new());
        let zone = || Zone::with_clock(1 << 16, clock.clone());
        let one_by_one = DynamicLimiter::on(&zone(), "x");
        let expected: Vec<_> =
            mixed().iter().map(|(key, limit, ask)| one_by_one.admit(key, limit, *ask)).collect();
        assert_eq!(all_at_once(&DynamicLimiter::on(&zone(), "x")), expected);
        assert_eq!(all_at_once(&DynamicLimiter::on(&Map::with_clock(clock), "x")), expected);
        assert!(expected.iter().any(Decision::is_allowed) && !expected.iter().all(Decision::is_allowed));
    }

    #[test]
    fn a_state_is_that_of_a_limiter_with_the_same_name() {
        let zone = Zone::new(1 << 16);
        let (adhoc, limiter) =
            (DynamicLimiter::on(&zone, "user"), crate::Limiter::on(&zone, "user", Limit::per_hour(3)));
        let hourly = adhoc.prepare(Limit::per_hour(3));
        assert!(adhoc.admit("ana", &hourly, Ask::ONE).is_allowed());
        assert_eq!(limiter.peek("ana").remaining(), 2);
        let reset = |key: &str| adhoc.reset(key).expect("few limits are in use");
        assert!(reset("ana") && !reset("ana"));
        assert_eq!(limiter.peek("ana").remaining(), 3);
        let log = adhoc.prepare(Limit::sliding_log(3, crate::SECOND));
        assert!(adhoc.admit("ana", &log, Ask::ONE).is_allowed());
        assert!(adhoc.admit("ana", &hourly, Ask::ONE).is_allowed());
        assert!(adhoc.reset_limit("ana", &log) && !adhoc.reset_limit("ana", &log));
        assert_eq!(limiter.peek("ana").remaining(), 2, "the other limit keeps its state");
        assert!(reset("ana") && !reset("ana") && !reset("bob"));
    }

    #[test]
    fn all_or_none_charges_no_key_when_one_is_denied() {
        let adhoc = DynamicLimiter::on(&Zone::new(1 << 16), "x");
        let both = [asked("ana", "3/h", 2), asked("site", "1/h", 1)];
        let take_both = || adhoc.admit_all(&each(&both).collect::<Vec<_>>()).is_allowed();
        assert!(take_both() && !take_both());
        assert_eq!(adhoc.peek("ana", &both[0].1, Ask::ONE).remaining(), 1);
    }

    #[test]
    fn permits_come_back() {
        let adhoc = DynamicLimiter::on(&Zone::new(1 << 16), "");
        let limit = adhoc.prepare(Limit::concurrency(1, crate::SECOND));
        let permit = adhoc.admit("ana", &limit, Ask::ONE).permit().expect("the first is allowed");
        assert!(!adhoc.admit("ana", &limit, Ask::ONE).is_allowed());
        assert!(adhoc.renew("ana", &limit, permit) && adhoc.release("ana", &limit, permit));
        assert!(!adhoc.release("ana", &limit, permit));
        assert!(adhoc.admit("ana", &limit, Ask::ONE).is_allowed());
    }
}
