//! A limit with the namespace that it counts in, prepared once for all its decisions.
//!
//! A state is named by (namespace, algorithm, numbers, key). All but the key is the same for every decision under one
//! limit, so it is hashed when the limit is prepared, and a decision hashes its key only.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::Subject;
use super::bound::{BoundLimit, digest};
use super::limit_table::{LimitTable, StateLimit};
use crate::algorithm::Algorithm;
use crate::decisions::DecidedBy;
use crate::key::Key;
use crate::limit::{AlgorithmParams, Limit};
use crate::time::Timestamp;

/// A limit and the namespace that it counts in; clones share it.
///
/// It is kept where limits are parsed: beside a rule that was put in force, or beside a limit that came with a request.
/// The first store that uses it also stores its own data about the limit there.
///
/// ```
/// use tidegate::{Ask, Key, Limit, PreparedLimit, Zone};
///
/// let (zone, limit) = (Zone::new(1 << 20), PreparedLimit::dynamic("user", Limit::per_hour(1)));
/// let (ana, bob) = (Key::new("ana"), Key::new("bob"));
/// assert!(zone.take(limit.subject(&ana), Ask::ONE).0.is_allowed());
/// assert!(zone.take(limit.subject(&bob), Ask::ONE).0.is_allowed());
/// assert!(!zone.take(limit.subject(&ana), Ask::ONE).0.is_allowed());
/// ```
#[doc(alias = "rule")]
#[doc(alias = "precompute")]
#[derive(Clone)]
pub struct PreparedLimit(Arc<Inner>);

struct Inner {
    namespace: Box<str>,
    limit: Limit,
    scope: Scope,
    digest: u64,
    /// The limit in the in-memory store that used it first. Other stores bind it for each call.
    bound: OnceLock<Arc<BoundLimit>>,
    /// The data of a store outside of this crate.
    remote: OnceLock<Box<dyn Any + Send + Sync>>,
    share: OnceLock<NodeShare>,
    /// The flag of the rule, shared by all of its limits.
    dropped_counts: DroppedCounts,
}

/// The share of one of `nodes` nodes.
struct NodeShare {
    nodes: NonZeroU64,
    limit: PreparedLimit,
}

/// A flag, for a log, that counts under older limits of a rule are no longer carried; clones share it.
///
/// Counts are carried from at most [`MAX_PREDECESSORS`](crate::MAX_PREDECESSORS) limits.
#[derive(Clone, Debug, Default)]
pub struct DroppedCounts(Arc<AtomicBool>);

impl DroppedCounts {
    /// Sets the flag.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns the flag, and clears it.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// The way in which a limit counts in its namespace.
#[doc(alias = "reload")]
#[doc(alias = "hot reload")]
#[derive(Clone, Debug)]
pub enum Scope {
    /// A limit that comes with each request: other numbers are another limit, and a key starts full under it.
    Dynamic,
    /// The limit of a rule, in force from its first use on: counts are carried over from the limit before.
    Rule,
    /// A limit in force for single keys in place of another limit, from its first use on: counts are carried over from
    /// that limit.
    InsteadOf(PreparedLimit),
    /// The limit of a rule, in force again for single keys in place of another limit. Counts are carried over from that
    /// limit, and the limit of the rule comes into force, too.
    BackTo {
        /// The limit of the rule.
        rule: PreparedLimit,
        /// The limit that it replaces.
        before: PreparedLimit,
    },
    /// The permits of a rule, for a permit that is released: no limit comes into force by it.
    Release,
}

impl PreparedLimit {
    /// Prepares a limit that comes with each request. Other numbers in the same namespace are another state.
    pub fn dynamic(namespace: &str, limit: Limit) -> PreparedLimit {
        PreparedLimit::new(namespace, limit, Scope::Dynamic)
    }

    /// Prepares the limit of a rule, which comes into force with its first use. If the rule had another limit, counts
    /// are carried over. Permits of a rule are one set whatever its numbers.
    ///
    /// ```
    /// use tidegate::{Ask, Cost, Key, Limit, PreparedLimit, Zone};
    ///
    /// let (zone, key) = (Zone::new(1 << 20), Key::new("ana"));
    /// let old = PreparedLimit::of_rule("login", Limit::per_day(5));
    /// assert!(zone.take(old.subject(&key), Ask::new(Cost::of(5))).0.is_allowed());
    /// let new = PreparedLimit::of_rule("login", Limit::per_day(100));
    /// assert_eq!(zone.peek(new.subject(&key), Ask::ONE).remaining(), 95);
    /// ```
    pub fn of_rule(rule: &str, limit: Limit) -> PreparedLimit {
        PreparedLimit::new(rule, limit, Scope::Rule)
    }

    /// Prepares the next limit of this rule, which comes into force with its first use. Both have one flag for
    /// [dropped counts](PreparedLimit::dropped_counts).
    #[must_use]
    pub fn followed_by(&self, limit: Limit) -> PreparedLimit {
        PreparedLimit::noting(&self.0.namespace, limit, Scope::Rule, self.0.dropped_counts.clone())
    }

    /// Prepares the permits of a rule under a concurrency limit, to release one of them. The current limit of the rule
    /// stays in force.
    pub fn permits_of(rule: &str, limit: Limit) -> PreparedLimit {
        PreparedLimit::new(rule, limit, Scope::Release)
    }

    /// Prepares a limit that is in force for single keys in place of this one, from its first use on.
    #[must_use]
    pub fn instead(&self, limit: Limit) -> PreparedLimit {
        let scope = Scope::InsteadOf(self.clone());
        PreparedLimit::noting(&self.0.namespace, limit, scope, self.0.dropped_counts.clone())
    }

    /// Prepares the limit of the rule, for single keys that had this one in place of it, from its first use on.
    #[must_use]
    pub fn back_to(&self, rule: &PreparedLimit) -> PreparedLimit {
        let scope = Scope::BackTo { rule: rule.clone(), before: self.clone() };
        PreparedLimit::noting(&rule.0.namespace, rule.0.limit, scope, rule.0.dropped_counts.clone())
    }

    fn new(namespace: &str, limit: Limit, scope: Scope) -> PreparedLimit {
        PreparedLimit::noting(namespace, limit, scope, DroppedCounts::default())
    }

    fn noting(namespace: &str, limit: Limit, scope: Scope, dropped_counts: DroppedCounts) -> PreparedLimit {
        PreparedLimit(Arc::new(Inner {
            namespace: namespace.into(),
            limit,
            digest: digest(&state_limit(limit.terms(), &scope)),
            scope,
            bound: OnceLock::new(),
            remote: OnceLock::new(),
            share: OnceLock::new(),
            dropped_counts,
        }))
    }

    /// Returns the [share](Limit::shared_among) of one of `nodes` nodes, which replaces and is replaced as this limit
    /// is. It is cached for the first number of nodes, and prepared in each call for any other number.
    #[must_use]
    pub fn share(&self, nodes: NonZeroU64) -> PreparedLimit {
        let share = self.0.share.get_or_init(|| NodeShare { nodes, limit: self.prepare_share(nodes) });
        if share.nodes == nodes { share.limit.clone() } else { self.prepare_share(nodes) }
    }

    #[cold]
    fn prepare_share(&self, nodes: NonZeroU64) -> PreparedLimit {
        let Inner { namespace, limit, scope, dropped_counts, .. } = &*self.0;
        let scope = match scope {
            Scope::Dynamic | Scope::Rule | Scope::Release => scope.clone(),
            Scope::InsteadOf(before) => Scope::InsteadOf(before.share(nodes)),
            Scope::BackTo { rule, before } => {
                Scope::BackTo { rule: rule.share(nodes), before: before.share(nodes) }
            }
        };
        PreparedLimit::noting(namespace, limit.shared_among(nodes), scope, dropped_counts.clone())
    }

    /// Returns the limit of a decision made by `by`: the share if the local store decided by it.
    pub fn limit_of(&self, by: DecidedBy) -> &Limit {
        match (by, self.0.share.get()) {
            (DecidedBy::Local, Some(share)) => share.limit.limit(),
            _ => &self.0.limit,
        }
    }

    /// Returns the limit that this one replaced, for single keys.
    pub fn before(&self) -> Option<&PreparedLimit> {
        match &self.0.scope {
            Scope::InsteadOf(before) | Scope::BackTo { before, .. } => Some(before),
            Scope::Dynamic | Scope::Rule | Scope::Release => None,
        }
    }

    /// Returns the name of the rule, or the namespace of a dynamic limit.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Returns the limit.
    pub fn limit(&self) -> &Limit {
        &self.0.limit
    }

    /// Returns the way in which it counts.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// Returns a digest of the algorithm and the numbers that decide, the same in every process and version. Limits
    /// that are written differently and decide alike have one digest. Permits of a rule are one set, so their numbers
    /// are not included.
    pub fn digest(&self) -> u64 {
        self.0.digest
    }

    /// Returns true if its states are one set of permits whatever the numbers: permits of a rule.
    pub fn is_one_set(&self) -> bool {
        is_one_set(self.0.limit.terms(), &self.0.scope)
    }

    /// Names a key under this limit, which is never forgotten before its state is clear.
    pub fn subject<'a>(&'a self, key: &'a Key) -> Subject<'a> {
        Subject::prepared(self, key)
    }

    /// Returns the data of a store outside of this crate about this limit. It is created once. Returns `None` if the
    /// data has another type than `T`.
    pub fn remote<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.remote.get_or_init(|| Box::new(make())).downcast_ref()
    }

    /// Returns the flag that counts of the rule were dropped when this limit came into force. All limits that were
    /// prepared from one limit of a rule share it.
    pub fn dropped_counts(&self) -> &DroppedCounts {
        &self.0.dropped_counts
    }

    /// Calls `use_it` with the limit in the store of this table.
    #[inline]
    pub(crate) fn with_bound<R>(
        &self,
        table: &Arc<LimitTable>,
        now: impl FnOnce() -> Timestamp,
        use_it: impl FnOnce(&Arc<BoundLimit>) -> R,
    ) -> R {
        match self.0.bound.get() {
            Some(bound) if bound.is_in(table) => use_it(bound),
            // A dynamic limit has no start time.
            _ if matches!(self.0.scope, Scope::Dynamic | Scope::Release) => {
                use_it(&self.bound_at(table, Timestamp::EPOCH))
            }
            _ => use_it(&self.bound_at(table, now())),
        }
    }

    /// Returns the limit in the store of this table, if that store used it first.
    #[inline]
    pub(super) fn bound_in(&self, table: &Arc<LimitTable>) -> Option<&BoundLimit> {
        self.0.bound.get().map(|bound| &**bound).filter(|bound| bound.is_in(table))
    }

    /// Returns the limit in the store of this table. It comes into force at `now` if it was not used there before.
    #[cold]
    pub(super) fn bound_at(&self, table: &Arc<LimitTable>, now: Timestamp) -> Arc<BoundLimit> {
        if let Some(bound) = self.0.bound.get().filter(|bound| bound.is_in(table)) {
            return Arc::clone(bound);
        }
        let bound = Arc::new(BoundLimit::new(table, self, now));
        // Two threads may bind it at once: one result is kept, and both are valid.
        Arc::clone(self.0.bound.get_or_init(|| Arc::clone(&bound))).only_in(table).unwrap_or(bound)
    }

    pub(crate) fn terms(&self) -> &AlgorithmParams {
        self.0.limit.terms()
    }

    pub(crate) fn state_limit(&self) -> StateLimit {
        state_limit(self.terms(), &self.0.scope)
    }
}

fn is_one_set(terms: &AlgorithmParams, scope: &Scope) -> bool {
    terms.algorithm() == Algorithm::Concurrency && !matches!(scope, Scope::Dynamic)
}

fn state_limit(terms: &AlgorithmParams, scope: &Scope) -> StateLimit {
    let packed = terms.pack();
    if is_one_set(terms, scope) { [packed[0], 0, 0, 0, 0, 0] } else { packed }
}

impl fmt::Debug for PreparedLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { namespace, limit, scope, .. } = &*self.0;
        out.debug_struct("PreparedLimit")
            .field("namespace", namespace)
            .field("limit", limit)
            .field("scope", scope)
            .finish_non_exhaustive()
    }
}
