//! A limit in one in-memory store: the names of its states there, and the states that a key may start with.
//!
//! A [`PreparedLimit`] is independent of any store. When a store uses it for the first time, it is bound: the limit of
//! a rule comes into force, its predecessors are read from the table, and the common prefix of its state names is
//! hashed under the seed of the store.
//!
//! Binding costs a lock of the table. A decision under a bound limit compares two numbers to find out whether an
//! earlier limit matters, and whether the table has to be written.

use std::sync::Arc;

use super::limit_table::{LimitTable, StateLimit};
use super::prepared::{PreparedLimit, Scope};
use super::state_key::Namespace;
use super::zone::StatePrefix;
use crate::algorithm::worst_word;
use crate::history::{History, Predecessor};
use crate::limit::{AlgorithmParams, Limit};
use crate::sync::{AtomicU64, Ordering};
use crate::time::Timestamp;

/// A limit, and the namespace that it counts in, in one in-memory store.
#[derive(Debug)]
pub(crate) struct BoundLimit {
    /// The parameters of the limit.
    terms: AlgorithmParams,
    /// The table of limits of the store, which also identifies the store.
    table: Arc<LimitTable>,
    /// The namespace as bytes, the first part of every name under this limit.
    namespace: Namespace,
    /// The names of states under this limit.
    name: StateName,
    /// The earlier limits; `before` has the names of states under each of them.
    history: History,
    before: Vec<StateName>,
    /// The time at which it came into force, if it is the limit of a rule.
    since: Option<Timestamp>,
    /// The time until which counts of earlier limits matter.
    carries_until: Timestamp,
    /// The word above which a one-word state outlasts all counts that could be carried.
    carries_word: u64,
    /// The time, in ticks, up to which live states need not be noted in the table.
    noted_until: AtomicU64,
}

/// The part of a state's name that is the same for all keys under one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateName {
    /// The algorithm and the numbers, as the table lists them.
    limit: StateLimit,
    /// The digest of the limit, by which a map and a remote store name it.
    pub(crate) digest: u64,
    /// The hash state after limit and namespace, by which a zone finds its cells.
    pub(crate) prefix: StatePrefix,
}

impl StateName {
    /// Hashes limit and namespace under the seed of the table.
    pub(crate) fn new(table: &LimitTable, namespace: &Namespace, limit: StateLimit) -> StateName {
        let prefix = StatePrefix::new(table.seed(), &limit, namespace.bytes());
        StateName { limit, digest: digest(&limit), prefix }
    }
}

impl BoundLimit {
    /// Binds a limit to the store of this table. The limit of a rule comes into force. A dynamic limit has no history:
    /// other numbers are another limit, and keys start full under it.
    pub(super) fn new(table: &Arc<LimitTable>, prepared: &PreparedLimit, now: Timestamp) -> BoundLimit {
        let terms = *prepared.terms();
        let history = match prepared.scope() {
            Scope::Dynamic | Scope::Release => History::default(),
            Scope::Rule => {
                let announced = table.announce(prepared.namespace(), &prepared.state_limit(), now);
                if announced.drops_counts {
                    prepared.dropped_counts().note();
                }
                announced.history
            }
            Scope::InsteadOf(before) => followed_by(table, before, prepared, now),
            Scope::BackTo { rule, before } => {
                let _ = rule.bound_at(table, now);
                followed_by(table, before, prepared, now)
            }
        };
        let namespace = Namespace::new(prepared.namespace());
        let name = StateName::new(table, &namespace, prepared.state_limit());
        let since = matches!(prepared.scope(), Scope::Rule).then_some(history.since());
        BoundLimit { since, ..BoundLimit::with_history(table, namespace, terms, name, history) }
    }

    /// Binds the limit of a handle, in force from now on.
    pub(crate) fn of_rule(
        table: &Arc<LimitTable>,
        namespace: &str,
        limit: &Limit,
        now: Timestamp,
    ) -> BoundLimit {
        BoundLimit::new(table, &PreparedLimit::of_rule(namespace, *limit), now)
    }

    /// The names under all predecessors are hashed here, so that a carry later only hashes the key.
    fn with_history(
        table: &Arc<LimitTable>,
        namespace: Namespace,
        terms: AlgorithmParams,
        name: StateName,
        history: History,
    ) -> BoundLimit {
        let named = |before: &Predecessor| StateName::new(table, &namespace, before.terms().pack());
        let before = history.before().iter().map(named).collect();
        let carries_until = history.matters_until(&terms);
        BoundLimit {
            terms,
            table: Arc::clone(table),
            name,
            before,
            since: None,
            carries_until,
            carries_word: if carries_until == Timestamp::EPOCH { 0 } else { worst_word(carries_until) },
            history,
            noted_until: AtomicU64::new(0),
            namespace,
        }
    }

    /// Returns the parameters by which states are decided.
    #[inline]
    pub(crate) fn terms(&self) -> &AlgorithmParams {
        &self.terms
    }

    /// Returns the namespace, encoded.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Returns the common part of the names under this limit.
    #[inline]
    pub(crate) fn name(&self) -> &StateName {
        &self.name
    }

    /// Returns the earlier limits of the rule; empty for a dynamic limit.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Returns the names of states under each of the earlier limits.
    pub(crate) fn names_before(&self) -> &[StateName] {
        &self.before
    }

    /// Returns the name of states under the predecessor of this number.
    ///
    /// # Panics
    /// If there is no such predecessor.
    pub(crate) fn name_before(&self, predecessor: usize) -> &StateName {
        &self.before[predecessor]
    }

    /// Returns true while a key without a live state may start with counts of earlier limits.
    #[inline]
    pub(crate) fn carries_at(&self, now: Timestamp) -> bool {
        now < self.carries_until
    }

    /// Returns true if a key with this one-word state may have to be decided by counts of earlier limits, now or once
    /// the state is clear. One comparison on the hot path. It may return true too often, and never false by mistake.
    #[inline(always)]
    pub(crate) fn may_carry_to(&self, word: u64) -> bool {
        word <= self.carries_word
    }

    /// Returns a number that identifies the store of a limit.
    pub(super) fn table_address(&self) -> usize {
        Arc::as_ptr(&self.table).addr()
    }

    /// Returns true if it belongs to the store of this table.
    #[inline]
    pub(crate) fn is_in(&self, table: &Arc<LimitTable>) -> bool {
        Arc::ptr_eq(&self.table, table)
    }

    /// Returns the same limit, if it belongs to the store of this table.
    pub(super) fn only_in(self: Arc<Self>, table: &Arc<LimitTable>) -> Option<Arc<Self>> {
        self.is_in(table).then_some(self)
    }

    /// Returns true if a state that is live until this time, in ticks, has to be noted first. The load is relaxed: a
    /// stale value only causes one more write of the table.
    #[inline]
    pub(crate) fn is_unnoted(&self, clear_at: u64) -> bool {
        clear_at > self.noted_until.load(Ordering::Relaxed)
    }

    /// Lists the limit in the table, before such a state is written. If the table has no room, the limit stays
    /// unlisted, and a reset by key is an error until its states have expired.
    #[cold]
    pub(crate) fn note(&self, clear_at: u64, now: Timestamp) {
        let (namespace, clear_at) = (self.namespace.name(), Timestamp::from_ticks(clear_at));
        let until = self.table.note(namespace, &self.name.limit, self.since, clear_at, now);
        self.noted_until.fetch_max(until.ticks(), Ordering::Relaxed);
    }
}

/// Returns the history of a limit that is in force for single keys in place of another.
fn followed_by(
    table: &Arc<LimitTable>,
    before: &PreparedLimit,
    prepared: &PreparedLimit,
    now: Timestamp,
) -> History {
    let bound = before.bound_at(table, now);
    bound.history.followed_by(before.limit(), prepared.limit(), now)
}

/// Returns the FNV-1a hash of the packed numbers, mixed once more so that its first letters distinguish limits. It
/// identifies states in remote stores, so it must never change.
pub(super) fn digest(limit: &StateLimit) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = limit.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}
