//! Limits as this store uses them: the names of their states, their table entries, and their predecessors.
//!
//! A [`PreparedLimit`] of the library caches the data of each store about it, so a decision derives no names. Limits
//! without a cache, given with each request, are prepared anew, but share their listing.
//!
//! The order of files: `table` lists a limit before it is used, `listing` caches that, `upkeep` verifies it, `carry`
//! carries counts over from previous limits, and `turns` keeps takes in order meanwhile.

mod carry;
mod listing;
mod table;
mod turns;
mod upkeep;

pub(crate) use carry::StatesBefore;
pub(crate) use listing::Listings;
pub(crate) use turns::{Place, Turn, Turns};
pub(crate) use upkeep::Upkeep;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tidegate_core::{
    Clock as _, CounterClock, DroppedCounts, History, Limit, PreparedLimit, Scope, Subject, Ticks, Timestamp,
};

use crate::script::{self, InForce, LimitName, TableEntry, Target, Unsupported};
use crate::store::Inner;
use listing::Listing;

/// A limit, with the data that this store keeps about it. It is created on first use, and lives as long as the prepared
/// limit.
#[derive(Debug)]
pub(crate) struct StoredLimit {
    /// The relation to other limits: of a rule, in place of another limit, or dynamic.
    prepared_scope: Scope,
    /// The namespace: the name of the rule, or the one given with a dynamic limit.
    namespace: Box<str>,
    /// The limit as a script applies it.
    limit: Limit,
    /// True if the permits of a rule are one set for all of its numbers.
    is_one_set: bool,
    /// The part of key names that all states of the limit share.
    name: LimitName,
    /// The entry that this process has written to the table.
    listing: Arc<Listing>,
    /// The previous limits, once this limit is in force.
    history: OnceLock<LimitHistory>,
    /// True if counts of previous limits mattered at the time of the last reply.
    carries: AtomicBool,
    /// The counter that the library reports, for predecessors beyond the bound.
    dropped_counts: DroppedCounts,
}

/// The previous limits, and the names of states under each of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitHistory {
    /// The position of this limit among those of its rule.
    force: InForce,
    /// The previous limits, newest first.
    history: History,
    /// Their names, in the same order.
    names: Vec<LimitName>,
}

impl StoredLimit {
    /// Derives the names of a limit. Fails if no script supports it.
    fn new(inner: &Inner, prepared: &PreparedLimit) -> Result<StoredLimit, Unsupported> {
        let name = LimitName::of(prepared);
        let history = OnceLock::new();
        // Dynamic limits have no predecessors, and a release puts nothing in force.
        if matches!(prepared.scope(), Scope::Dynamic | Scope::Release) {
            let _ = history.set(LimitHistory::default());
        }
        Ok(StoredLimit {
            prepared_scope: prepared.scope().clone(),
            namespace: prepared.namespace().into(),
            limit: script::held(prepared.limit())?,
            is_one_set: prepared.is_one_set(),
            listing: inner.listings.of(&name, || TableEntry::new(inner.prefix(), prepared, &name)),
            name,
            history,
            carries: AtomicBool::new(false),
            dropped_counts: prepared.dropped_counts().clone(),
        })
    }

    /// Returns the limit as a script applies it.
    pub(crate) fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the state of a key.
    ///
    /// Returns the state of a key, with the limit.
    pub(crate) fn target(&self, prefix: &[u8], key: &tidegate_core::Key) -> Target {
        Target { name: self.name.state(prefix, key), limit: self.limit, is_one_set: self.is_one_set }
    }

    /// Returns true while counts of previous limits may matter. As long as it is true, takes use the slower scripts
    /// that accept an initial state.
    pub(crate) fn carries(&self) -> bool {
        self.carries.load(Ordering::Relaxed)
    }

    /// Returns true if a key may have states under previous limits, whether they matter now or not.
    pub(crate) fn has_predecessors(&self) -> bool {
        self.history.get().is_some_and(|known| !known.history.is_empty())
    }

    /// Records the time of a reply. Once previous counts no longer matter, takes use the faster scripts again.
    pub(crate) fn saw(&self, now: Timestamp) {
        if let Some(LimitHistory { history, .. }) =
            self.history.get().filter(|known| !known.history.is_empty())
        {
            self.carries.store(history.matters_at(&self.limit, now), Ordering::Relaxed);
        }
    }

    /// Stores the previous limits, once.
    fn came_into_force(&self, history: LimitHistory, now: Timestamp) {
        // Another request may have been first; then its time counts.
        let _ = self.history.set(history);
        self.saw(now);
    }
}

/// The data of all stores of this process about a prepared limit, by the number of the store. A process usually has one
/// store, so a vector is searched.
#[derive(Debug, Default)]
struct OfStores(RwLock<Vec<(u64, Arc<StoredLimit>)>>);

impl OfStores {
    /// Returns the data of one store.
    fn get(&self, store: u64) -> Option<Arc<StoredLimit>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(number, _)| *number == store).map(|(_, limit)| Arc::clone(limit))
    }

    /// Stores the limit, unless another thread was first.
    fn keep(&self, store: u64, limit: StoredLimit) -> Arc<StoredLimit> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, limit)) = known.iter().find(|(number, _)| *number == store) {
            return Arc::clone(limit);
        }
        let limit = Arc::new(limit);
        known.push((store, Arc::clone(&limit)));
        limit
    }
}

impl Inner {
    /// Returns the limit of a key in this store.
    pub(crate) fn stored(&self, subject: &Subject<'_>) -> Result<Arc<StoredLimit>, Unsupported> {
        self.stored_limit(&subject.prepared_limit())
    }

    /// Returns the cached data about a limit, or derives it.
    fn stored_limit(&self, prepared: &PreparedLimit) -> Result<Arc<StoredLimit>, Unsupported> {
        let Some(of_stores) = prepared.remote(OfStores::default) else {
            return StoredLimit::new(self, prepared).map(Arc::new);
        };
        match of_stores.get(self.number) {
            Some(limit) => Ok(limit),
            None => Ok(of_stores.keep(self.number, StoredLimit::new(self, prepared)?)),
        }
    }
}

/// The time of the server, extrapolated from its last reply. It is precise to about half a round trip. It never
/// decides: it only says whether a table entry still lasts long enough.
#[derive(Debug)]
pub(crate) struct ServerTime {
    /// The local clock that advances it.
    clock: CounterClock,
    /// The offset of the server's clock, in ticks.
    ahead: AtomicU64,
}

impl ServerTime {
    /// Creates a clock that is at its epoch until the first reply.
    pub(crate) fn new() -> ServerTime {
        ServerTime { clock: CounterClock::new(), ahead: AtomicU64::new(0) }
    }

    /// Records the time of a server's reply.
    pub(crate) fn saw(&self, now: Timestamp) {
        self.ahead.store(now.ticks().wrapping_sub(self.clock.now().ticks()), Ordering::Relaxed);
    }

    /// Returns the extrapolated time.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.clock.now().ticks().wrapping_add(self.ahead.load(Ordering::Relaxed)))
    }
}

/// Returns a unique number for a store, by which the data about a limit is found.
pub(crate) fn next_store_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns the longest time for which a state that is written by such a change can matter.
fn longest_use(limit: &Limit, extra: Ticks) -> Ticks {
    script::longest_use(limit).saturating_add(extra)
}
