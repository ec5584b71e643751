//! Who holds the states.
//!
//! Stores in memory are called directly and cannot fail. What must not care where states live is written
//! once against [`Store`], whose answers may take a while and may be an error.

mod answer;
mod error;
mod holder;
pub(crate) mod map;
pub(crate) mod name;
mod nonce;
pub(crate) mod receipts;
mod subjects;
pub(crate) mod together;
pub(crate) mod zone;
mod zones;

pub use answer::Answer;
pub use error::StoreError;
pub(crate) use holder::Holder;
pub use holder::Memory;
pub use map::Map;
pub(crate) use nonce::nonce_for;
pub use receipts::{OpenReceipt, ReceiptCounts, TrackedDecisions};
pub use zone::{WhenFull, Zone, ZoneCounts, ZoneError};
pub use zones::Zones;

use std::fmt;

use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::key::Key;
use crate::limit::Limit;
use name::{Account, Name, Namespace};

/// What names a state, and the limit to decide it by.
///
/// A state belongs to (namespace, algorithm, key): other numbers in the limit leave it where it is, another
/// algorithm is another state.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The name of the rule, or of whatever else keeps its own counts.
    pub namespace: &'a str,
    /// Who it is.
    pub key: &'a Key,
    /// What is promised.
    pub limit: &'a Limit,
    /// What becomes of it when a zone has no cell for it; no other store cares.
    pub when_full: WhenFull,
    /// Which of several [`Zones`] holds it; no other store cares.
    pub zone: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// A subject that is never forgotten.
    pub const fn new(namespace: &'a str, key: &'a Key, limit: &'a Limit) -> Subject<'a> {
        Subject { namespace, key, limit, when_full: WhenFull::Share, zone: None }
    }

    fn account(&self) -> Account {
        let name = Name::new(&Namespace::new(self.namespace), self.key);
        name.under(*self.limit.terms()).when_full(self.when_full)
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
    /// Takes all or none: spends only if every ask passes.
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, Decisions>;

    /// What taking would say, without spending.
    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> Answer<'a, Decision>;

    /// Charges what turned out to be more, or gives back what was not used.
    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> Answer<'a, Adjusted>;

    /// Takes all or none like [`Store::take`], with a receipt for each take, by which [`Store::refund`] gives back just
    /// that one. A store that keeps no receipts gives none, and what was taken there stays charged.
    fn take_tracked<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, TrackedDecisions> {
        let taken = self.take(asks);
        Answer::later(async move { taken.await.map(TrackedDecisions::without_receipts) })
    }

    /// Gives units of one take back, at most what of it is still owed and was not refunded before.
    fn refund<'a>(&'a self, _: Subject<'a>, _: &'a mut OpenReceipt, _: Cost) -> Answer<'a, Adjusted> {
        Answer::ready(Adjusted::Capped)
    }

    /// Gives a place in flight back. Whether the permit was still holding one.
    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool>;

    /// Starts a permit's lease anew. Whether it was still holding its place.
    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool>;

    /// Forgets a subject, whatever the algorithm. Whether anything was remembered about it.
    fn reset<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, bool>;

    /// Whether it can hold what this limit counts, exactly as the limit says; if not, what is wrong and what would
    /// do, to be read behind the limit's text. Every store in memory holds every limit.
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
}
