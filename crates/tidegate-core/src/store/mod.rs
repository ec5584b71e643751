//! The stores, which hold the states of keys.
//!
//! In-memory stores are called directly and cannot fail. Code that works with every store is written once against
//! [`Store`], whose replies may take time and may be an error.

pub(crate) mod bound;
mod error;
mod fallback;
mod future;
pub(crate) mod limit_table;
pub(crate) mod map;
mod memory;
mod nonce;
mod penalty;
mod prepared;
pub(crate) mod receipts;
mod reported;
pub(crate) mod state_key;
mod subjects;
pub(crate) mod together;
mod twins;
pub(crate) mod zone;
mod zones;

pub use error::StoreError;
pub use fallback::{
    DecisionMeter, FallbackStore, OnStoreFailure, StoreFailure, StoreFailures, StoreMeter, WithoutStore,
};
pub use future::StoreFuture;
pub use map::Map;
pub(crate) use memory::LimitStore;
pub use memory::MemoryStore;
pub(crate) use nonce::nonce_for;
pub use penalty::{PenaltyError, PreparedPenalty};
pub use prepared::{DroppedCounts, PreparedLimit, Scope};
pub use receipts::{OpenReceipt, ReceiptCounts};
pub(crate) use reported::Reported;
pub use zone::{StateCounts, WhenFull, Zone, ZoneCounts, ZoneError};
pub use zones::Zones;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::key::Key;
use crate::limit::Limit;
use crate::time::Timestamp;
use bound::BoundLimit;
use limit_table::LimitTable;
use state_key::{EncodedKey, StateKey};

/// A key and the limit to decide it by, which together identify a state.
///
/// A state belongs to (namespace, algorithm, numbers, key): two limits on one key are two states.
#[doc(alias = "key")]
#[doc(alias = "descriptor")]
#[doc(alias = "bucket key")]
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    limit: SubjectLimit<'a>,
    key: &'a Key,
    when_full: WhenFull,
    zone: Option<&'a str>,
    fallback: Fallback,
    is_local: bool,
    is_tracked: bool,
    penalty: Option<&'a PreparedPenalty>,
}

/// The policy for a key while the remote store is down.
#[derive(Clone, Copy, Debug)]
enum Fallback {
    /// The policy of the store.
    OfStore,
    Policy(OnStoreFailure),
    /// No policy: the failure is an error.
    None,
}

#[derive(Clone, Copy, Debug)]
enum SubjectLimit<'a> {
    Prepared(&'a PreparedLimit),
    /// A dynamic limit, which is prepared for each call.
    Plain {
        namespace: &'a str,
        limit: &'a Limit,
    },
}

impl<'a> Subject<'a> {
    /// Names a key under a dynamic limit: other numbers in the same namespace are another state. A limit that is used
    /// more than once should be prepared: [`PreparedLimit::subject`].
    pub const fn new(namespace: &'a str, key: &'a Key, limit: &'a Limit) -> Subject<'a> {
        Subject::of(SubjectLimit::Plain { namespace, limit }, key)
    }

    /// Names a key under a prepared limit.
    pub const fn prepared(limit: &'a PreparedLimit, key: &'a Key) -> Subject<'a> {
        Subject::of(SubjectLimit::Prepared(limit), key)
    }

    const fn of(limit: SubjectLimit<'a>, key: &'a Key) -> Subject<'a> {
        let (when_full, fallback) = (WhenFull::Share, Fallback::OfStore);
        let (is_local, is_tracked, penalty) = (false, false, None);
        Subject { limit, key, when_full, zone: None, fallback, is_local, is_tracked, penalty }
    }

    /// Sets the policy for a zone that has no cell for the key. Other stores ignore it.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Subject<'a> {
        Subject { when_full, ..self }
    }

    /// Selects one of several [`Zones`] by name. Other stores ignore it. An unknown name means the first zone.
    #[must_use]
    pub const fn in_zone(self, zone: Option<&'a str>) -> Subject<'a> {
        Subject { zone, ..self }
    }

    /// Sets the policy for a remote store that is down, in place of the policy of the [`FallbackStore`].
    #[doc(alias = "fail-open")]
    #[doc(alias = "fail-closed")]
    #[must_use]
    pub const fn on_store_failure(self, policy: OnStoreFailure) -> Subject<'a> {
        Subject { fallback: Fallback::Policy(policy), ..self }
    }

    /// Disables the fallback: while the remote store is down, the key is neither decided nor counted.
    #[must_use]
    pub const fn without_fallback(self) -> Subject<'a> {
        Subject { fallback: Fallback::None, ..self }
    }

    /// Selects the local store of a [`FallbackStore`], for a take that it decided while the remote store was down. Its
    /// permit or receipt goes back there. Other stores have no such states.
    #[must_use]
    pub const fn in_local_store(self, is_local: bool) -> Subject<'a> {
        Subject { is_local, ..self }
    }

    /// Requests a receipt for a take. If one of several asks is tracked, all of them get receipts.
    #[must_use]
    pub const fn tracked(self) -> Subject<'a> {
        Subject { is_tracked: true, ..self }
    }

    /// Adds a penalty: a key that this limit denies too often is denied for a time.
    ///
    /// [`Store::take`] and [`Store::peek`] deny while the key is banned, and a take that the limit denies is a strike.
    /// [`Store::reset`] lifts the ban. Other calls do not know of it.
    #[doc(alias = "fail2ban")]
    #[doc(alias = "ban")]
    #[must_use]
    pub const fn penalty(self, penalty: Option<&'a PreparedPenalty>) -> Subject<'a> {
        Subject { penalty, ..self }
    }

    /// Returns the key under the limit of the penalty's ban, and under that of its strikes.
    ///
    /// It is for stores. Everything but the limit is that of this subject.
    pub fn ban_and_strikes(&self) -> Option<[Subject<'a>; 2]> {
        let PreparedPenalty { ban, strikes } = self.penalty?;
        let plain = Subject { penalty: None, is_tracked: false, ..*self };
        Some([plain.under(ban), plain.under(strikes)])
    }

    /// Returns true if one of these asks has a penalty.
    pub fn have_penalties(asks: &[(Subject<'_>, Ask)]) -> bool {
        asks.iter().any(|(subject, _)| subject.penalty.is_some())
    }

    /// Returns true if a take of one of these asks requests receipts.
    pub fn are_tracked(asks: &[(Subject<'_>, Ask)]) -> bool {
        asks.iter().any(|(subject, _)| subject.is_tracked)
    }

    /// Returns the same key under another limit.
    const fn under(self, limit: &'a PreparedLimit) -> Subject<'a> {
        Subject { limit: SubjectLimit::Prepared(limit), ..self }
    }

    /// Returns the name of the rule, or the namespace of a dynamic limit.
    pub fn namespace(&self) -> &'a str {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.namespace(),
            SubjectLimit::Plain { namespace, .. } => namespace,
        }
    }

    /// Returns the key.
    pub const fn key(&self) -> &'a Key {
        self.key
    }

    /// Returns the limit.
    pub fn limit(&self) -> &'a Limit {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.limit(),
            SubjectLimit::Plain { limit, .. } => limit,
        }
    }

    /// Returns the prepared limit. A plain limit is prepared in this call.
    pub fn prepared_limit(&self) -> PreparedLimit {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.clone(),
            SubjectLimit::Plain { namespace, limit } => PreparedLimit::dynamic(namespace, *limit),
        }
    }

    /// Returns the name of the zone, if one was selected.
    pub const fn zone(&self) -> Option<&'a str> {
        self.zone
    }

    /// Returns the limit in the store of this table, if it was used there before.
    #[inline]
    fn bound_in(&self, table: &Arc<LimitTable>) -> Option<&'a BoundLimit> {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.bound_in(table),
            SubjectLimit::Plain { .. } => None,
        }
    }

    /// Returns the state's account in the store of this table.
    fn account(&self, table: &Arc<LimitTable>, now: impl FnOnce() -> Timestamp) -> StateKey {
        let under = |limit: &Arc<BoundLimit>| {
            let name = EncodedKey::of_key(limit.namespace(), self.key);
            name.under(Arc::clone(limit)).when_full(self.when_full)
        };
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.with_bound(table, now, under),
            SubjectLimit::Plain { .. } => self.prepared_limit().with_bound(table, now, under),
        }
    }
}

/// A store of states: in memory, in files, or remote. The replies are futures.
///
/// ```
/// use tidegate::{Ask, Key, Limit, Map, Store, Subject, StoreError};
///
/// async fn may_log_in(store: &dyn Store, user: &str) -> Result<bool, StoreError> {
///     let (limit, key) = (Limit::per_minute(5), Key::new(user));
///     let subject = Subject::new("login", &key, &limit);
///     Ok(store.take(&[(subject, Ask::ONE)]).await?.is_allowed())
/// }
/// # let map = Map::new();
/// # let future = std::pin::pin!(may_log_in(&map, "ana"));
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(matches!(future.poll(&mut context), std::task::Poll::Ready(Ok(true))));
/// ```
#[doc(alias = "backend")]
#[doc(alias = "storage")]
#[doc(alias = "Redis")]
#[doc(alias = "distributed rate limiter")]
pub trait Store: fmt::Debug + Send + Sync {
    /// Takes all or none: spends only if every ask is allowed. If an ask is tracked ([`Subject::tracked`]), the
    /// decisions contain a receipt for each take, by which [`Store::refund`] gives back only that take. A store without
    /// receipts returns none, and its takes cannot be refunded.
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions>;

    /// Returns the decision that a take would get, without spending.
    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision>;

    /// Charges additional cost, or refunds unused cost.
    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> StoreFuture<'a, Adjusted>;

    /// Charges additional cost for a take. Returns a receipt if all of it was charged and the store keeps receipts of
    /// charges.
    fn charge<'a>(
        &'a self,
        subject: Subject<'a>,
        cost: Cost,
    ) -> StoreFuture<'a, (Adjusted, Option<OpenReceipt>)> {
        self.adjust(subject, Adjustment::Charge(cost)).then(|adjusted| Ok((adjusted?, None)))
    }

    /// Refunds units of one take, at most those that are still owed and were not refunded before.
    fn refund<'a>(&'a self, _: Subject<'a>, _: &'a mut OpenReceipt, _: Cost) -> StoreFuture<'a, Adjusted> {
        StoreFuture::ready(Adjusted::Capped)
    }

    /// Releases a permit. Returns true if it was still in flight.
    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool>;

    /// Releases a permit without a reply, for a caller that cannot wait for one. An in-memory store does it at once. A
    /// store whose [`Store::release`] is not done after one poll should override this; otherwise the permit expires
    /// with its lease.
    fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        let mut release = std::pin::pin!(self.release(subject, permit));
        // A store that replies at once has released the permit after one poll.
        let _ = release.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    }

    /// Completes a task whose caller is gone, so that an operation that was started is brought to its end. The default
    /// polls the task once, which completes it for an in-memory store.
    fn in_background(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut task = task;
        let _ = task.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    }

    /// Restarts a permit's lease. Returns true if the permit was still in flight.
    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool>;

    /// Removes the states of a key under every limit that its namespace has had. Returns true if there were any.
    ///
    /// The store lists the limits of each namespace. While it has more limits than it can list, this is an error, and
    /// [`Store::reset_limit`] still works.
    fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool>;

    /// Removes the state of a key under this limit only. Returns true if there was one.
    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool>;

    /// Checks that the store can count this limit exactly. The error text states the fault and the remedy, and is
    /// printed after the limit's text. An in-memory store supports every limit, except a zone whose state file belongs
    /// to another process.
    fn supports(&self, _limit: &Limit) -> Result<(), String> {
        Ok(())
    }

    /// Returns the most asks that one [`Store::take`] decides; more are an error that [is unfit](StoreError::is_unfit).
    /// An in-memory store decides any number.
    fn most_together(&self) -> usize {
        usize::MAX
    }

    /// Clears the denial cache, because other limits are in force from now on. A store without a denial cache does
    /// nothing.
    fn forget_refusals(&self) {}

    /// Returns the counters of a remote store that has a fallback. An in-memory store cannot fail, and has none.
    fn meter(&self) -> Option<&StoreMeter> {
        None
    }
}
