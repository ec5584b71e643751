//! Who holds the states.
//!
//! Stores in memory are called directly and cannot fail. What must not care where states live is written
//! once against [`Store`], whose answers may take a while and may be an error.

mod answer;
pub(crate) mod bound;
mod error;
mod fallback;
mod holder;
pub(crate) mod limit_table;
pub(crate) mod map;
pub(crate) mod name;
mod nonce;
mod prepared;
pub(crate) mod receipts;
mod reported;
mod subjects;
pub(crate) mod together;
mod twins;
pub(crate) mod zone;
mod zones;

pub use answer::Answer;
pub use error::StoreError;
pub use fallback::{
    DecisionMeter, FallbackStore, OnStoreFailure, StoreFailure, StoreFailures, StoreMeter, WithoutStore,
};
pub(crate) use holder::Holder;
pub use holder::Memory;
pub use map::Map;
pub(crate) use nonce::nonce_for;
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
use name::{Account, Name};

/// A key and the limit to decide it by, which together name a state.
///
/// A state belongs to (namespace, algorithm, numbers, key): two limits on one key are two states.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    limit: SubjectLimit<'a>,
    key: &'a Key,
    when_full: WhenFull,
    zone: Option<&'a str>,
    fallback: Fallback,
    is_local: bool,
    is_tracked: bool,
}

/// What decides about a subject while the remote store is down.
#[derive(Clone, Copy, Debug)]
enum Fallback {
    /// The policy of the store.
    OfStore,
    Policy(OnStoreFailure),
    /// Nothing: the failure is an error.
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
    /// A key under a dynamic limit: other numbers in the same namespace are another state. A limit that is used more
    /// than once is better prepared: [`PreparedLimit::subject`].
    pub const fn new(namespace: &'a str, key: &'a Key, limit: &'a Limit) -> Subject<'a> {
        Subject::of(SubjectLimit::Plain { namespace, limit }, key)
    }

    /// A key under a limit that was prepared.
    pub const fn prepared(limit: &'a PreparedLimit, key: &'a Key) -> Subject<'a> {
        Subject::of(SubjectLimit::Prepared(limit), key)
    }

    const fn of(limit: SubjectLimit<'a>, key: &'a Key) -> Subject<'a> {
        let (when_full, fallback) = (WhenFull::Share, Fallback::OfStore);
        Subject { limit, key, when_full, zone: None, fallback, is_local: false, is_tracked: false }
    }

    /// The same for a zone that has no cell for it; no other store cares.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Subject<'a> {
        Subject { when_full, ..self }
    }

    /// The same held by one of several [`Zones`]; no other store cares.
    #[must_use]
    pub const fn in_zone(self, zone: Option<&'a str>) -> Subject<'a> {
        Subject { zone, ..self }
    }

    /// The same with its own policy for a remote store that is down, in place of that of the [`FallbackStore`].
    #[must_use]
    pub const fn on_store_failure(self, policy: OnStoreFailure) -> Subject<'a> {
        Subject { fallback: Fallback::Policy(policy), ..self }
    }

    /// The same without a fallback: while the remote store is down, nothing is decided or counted about it.
    #[must_use]
    pub const fn without_fallback(self) -> Subject<'a> {
        Subject { fallback: Fallback::None, ..self }
    }

    /// The same in the local store of a [`FallbackStore`], if that took it while the remote store was down: a permit or
    /// a receipt goes back there. No other store has such states.
    #[must_use]
    pub const fn in_local_store(self, is_local: bool) -> Subject<'a> {
        Subject { is_local, ..self }
    }

    /// The same with a receipt for a take. If one of several subjects is tracked, all of them get receipts.
    #[must_use]
    pub const fn tracked(self) -> Subject<'a> {
        Subject { is_tracked: true, ..self }
    }

    /// Returns true if a take of one of these asks wants receipts.
    pub fn are_tracked(asks: &[(Subject<'_>, Ask)]) -> bool {
        asks.iter().any(|(subject, _)| subject.is_tracked)
    }

    /// The same under another limit.
    const fn under(self, limit: &'a PreparedLimit) -> Subject<'a> {
        Subject { limit: SubjectLimit::Prepared(limit), ..self }
    }

    /// The name of the rule, or of the place that dynamic limits count in.
    pub fn namespace(&self) -> &'a str {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.namespace(),
            SubjectLimit::Plain { namespace, .. } => namespace,
        }
    }

    /// The key.
    pub const fn key(&self) -> &'a Key {
        self.key
    }

    /// The limit.
    pub fn limit(&self) -> &'a Limit {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.limit(),
            SubjectLimit::Plain { limit, .. } => limit,
        }
    }

    /// The limit as it was prepared; a plain one is prepared now.
    pub fn prepared_limit(&self) -> PreparedLimit {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.clone(),
            SubjectLimit::Plain { namespace, limit } => PreparedLimit::dynamic(namespace, *limit),
        }
    }

    /// The zone that it names.
    pub const fn zone(&self) -> Option<&'a str> {
        self.zone
    }

    /// The limit in the store of this table, if it was used there before.
    #[inline]
    fn bound_in(&self, table: &Arc<LimitTable>) -> Option<&'a BoundLimit> {
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.bound_in(table),
            SubjectLimit::Plain { .. } => None,
        }
    }

    /// The state in the store of this table.
    fn account(&self, table: &Arc<LimitTable>, now: impl FnOnce() -> Timestamp) -> Account {
        let under = |limit: &Arc<BoundLimit>| {
            let name = Name::of_key(limit.namespace(), self.key);
            name.under(Arc::clone(limit)).when_full(self.when_full)
        };
        match self.limit {
            SubjectLimit::Prepared(limit) => limit.with_bound(table, now, under),
            SubjectLimit::Plain { .. } => self.prepared_limit().with_bound(table, now, under),
        }
    }
}

/// Where states live, for those who must not care.
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
pub trait Store: fmt::Debug + Send + Sync {
    /// Takes all or none: spends only if every ask passes. If a subject is [tracked](Subject::tracked), the decisions
    /// carry a receipt for each take, by which [`Store::refund`] gives back just that one. A store that keeps no receipts
    /// gives none, and what was taken there stays charged.
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, Decisions>;

    /// What taking would say, without spending.
    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> Answer<'a, Decision>;

    /// Charges what turned out to be more, or gives back what was not used.
    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> Answer<'a, Adjusted>;

    /// Charges more for a take, with a receipt if all of it was charged and the store keeps receipts of charges.
    fn charge<'a>(&'a self, subject: Subject<'a>, cost: Cost) -> Answer<'a, (Adjusted, Option<OpenReceipt>)> {
        self.adjust(subject, Adjustment::Charge(cost)).then(|adjusted| Ok((adjusted?, None)))
    }

    /// Gives units of one take back, at most what of it is still owed and was not refunded before.
    fn refund<'a>(&'a self, _: Subject<'a>, _: &'a mut OpenReceipt, _: Cost) -> Answer<'a, Adjusted> {
        Answer::ready(Adjusted::Capped)
    }

    /// Gives a place in flight back. Whether the permit was still holding one.
    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool>;

    /// Gives a place in flight back without an answer, for those who cannot wait for one: who held it is gone. A store
    /// in memory does it at once. Unless a store does anything here, the place comes back with its lease.
    fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        let mut release = std::pin::pin!(self.release(subject, permit));
        // A store that answers at once has done it when it is asked.
        let _ = release.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    }

    /// Goes on with a task that nobody waits for: who asked is gone, and what it began has to be brought to its end. A store
    /// in memory answers at once, so such a task is over when it was polled once.
    fn in_background(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let mut task = task;
        let _ = task.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    }

    /// Starts a permit's lease anew. Whether it was still holding its place.
    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool>;

    /// Forgets a key under every limit that its namespace has had. Whether anything was remembered about it.
    ///
    /// The store lists the limits of each namespace. While it has no room to list them all, this is an error, and
    /// [`Store::reset_limit`] still works.
    fn reset<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, bool>;

    /// Forgets a key under this limit only. Whether anything was remembered about it.
    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, bool>;

    /// Whether it can hold what this limit counts, exactly as the limit says; if not, what is wrong and what would
    /// do, to be read behind the limit's text. A store in memory holds every limit, but for a zone whose state file belongs
    /// to another process.
    fn supports(&self, _limit: &Limit) -> Result<(), String> {
        Ok(())
    }

    /// The most asks that one [`Store::take`] decides; more are an error that [is unfit](StoreError::is_unfit). A store
    /// in memory decides any number.
    fn most_together(&self) -> usize {
        usize::MAX
    }

    /// Other limits hold from now on: refusals that it remembers, so as not to ask again, are worth nothing any more.
    /// A store that remembers none has nothing to do.
    fn forget_refusals(&self) {}

    /// The counts of a remote store that has a fallback. A store in memory cannot fail, and has none.
    fn meter(&self) -> Option<&StoreMeter> {
        None
    }
}
