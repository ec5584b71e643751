//! A limit with the namespace that it counts in, prepared once for all its decisions.
//!
//! A state is named by (namespace, algorithm, numbers, key). All but the key is the same for every decision under one
//! limit, so it is hashed when the limit is prepared, and a decision hashes its key only.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::Subject;
use super::registered::Registered;
use crate::algorithm::Algorithm;
use crate::history::History;
use crate::key::Key;
use crate::limit::{Limit, Terms};
use crate::time::Timestamp;

/// A limit and its namespace; clones share it.
///
/// It is kept where limits are parsed: beside a rule that was put in force ([`Store::announce`](crate::Store::announce)
/// makes it), or beside a limit that came with a request.
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
#[derive(Clone)]
pub struct PreparedLimit(Arc<Inner>);

struct Inner {
    namespace: Box<str>,
    limit: Limit,
    history: Option<History>,
    digest: u64,
    /// The names of its states in the store in memory that used it first. Others prepare it for each call.
    registered: OnceLock<Arc<Registered>>,
}

impl PreparedLimit {
    /// A limit that comes with each request. Other numbers in the same namespace are another state.
    pub fn dynamic(namespace: &str, limit: Limit) -> PreparedLimit {
        PreparedLimit::new(namespace, limit, None)
    }

    /// The limit of a rule, with those before it in the store that it is used with. Permits of a rule are one set
    /// whatever its numbers.
    pub fn of_rule(rule: &str, limit: Limit, history: History) -> PreparedLimit {
        PreparedLimit::new(rule, limit, Some(history))
    }

    /// A limit that holds in place of a rule's limit for single keys, from `since` on: counts are carried from the
    /// rule's.
    #[must_use]
    pub fn instead(&self, limit: Limit, since: Timestamp) -> PreparedLimit {
        let history = self.history().map_or_else(History::default, |history| {
            history.followed_by(&self.0.limit, since)
        });
        PreparedLimit::of_rule(&self.0.namespace, limit, history)
    }

    fn new(namespace: &str, limit: Limit, history: Option<History>) -> PreparedLimit {
        let (namespace, registered) = (namespace.into(), OnceLock::new());
        let digest = digest(limit.terms());
        PreparedLimit(Arc::new(Inner { namespace, limit, history, digest, registered }))
    }

    /// The name of the rule, or of the place that dynamic limits count in.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// The limit.
    pub fn limit(&self) -> &Limit {
        &self.0.limit
    }

    /// The limits before it, if it is a rule's; `None` if it came with a request.
    pub fn history(&self) -> Option<&History> {
        self.0.history.as_ref()
    }

    /// A digest of the algorithm and the numbers that decide, the same in every process and version: limits that are
    /// written differently and decide alike have one. Permits of a rule are one set, so their numbers do not count.
    pub fn digest(&self) -> u64 {
        match self.is_one_set() {
            true => Algorithm::Concurrency as u64,
            false => self.0.digest,
        }
    }

    /// A key under this limit.
    pub fn subject<'a>(&'a self, key: &'a Key) -> Subject<'a> {
        Subject::prepared(self, key)
    }

    /// Whether its states are one set of holders whatever the numbers.
    pub(crate) fn is_one_set(&self) -> bool {
        self.0.history.is_some() && self.0.limit.algorithm() == Algorithm::Concurrency
    }

    pub(crate) fn terms(&self) -> &Terms {
        self.0.limit.terms()
    }

    pub(crate) fn registered(&self) -> &OnceLock<Arc<Registered>> {
        &self.0.registered
    }
}

/// FNV-1a over the packed numbers, with a last mix so that its first letters tell limits apart.
fn digest(terms: &Terms) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let words = terms.pack();
    let hash = words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

impl fmt::Debug for PreparedLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { namespace, limit, history, .. } = &*self.0;
        out.debug_struct("PreparedLimit")
            .field("namespace", namespace)
            .field("limit", limit)
            .field("history", history)
            .finish_non_exhaustive()
    }
}
