//! The counters of a remote store with a fallback: its failures, and the decisions by the store and by each policy.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::decisions::DecidedBy;
use crate::store::StoreError;
use crate::time::Timestamp;

/// The number of decisions in place of the remote store, by policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithoutStore {
    /// Allowed by this node's share of the limit.
    pub local_allowed: u64,
    /// Denied by this node's share of the limit, for any reason.
    pub local_denied: u64,
    /// Allowed without counting (fail-open).
    pub open: u64,
    /// Denied although the policy is fail-open, because the cost is above the limit.
    pub open_denied: u64,
    /// Denied without counting (fail-closed).
    pub closed: u64,
}

impl WithoutStore {
    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.local_allowed + self.local_denied + self.open + self.open_denied + self.closed
    }
}

/// The failures of a remote store, and the decisions made in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFailures {
    /// True if the last take failed. Decisions from a denial cache do not change it.
    pub is_failing: bool,
    /// The number of takes that failed.
    pub failed: u64,
    /// The decisions in its place.
    pub decided: WithoutStore,
    /// The last failure.
    pub last: Option<StoreFailure>,
}

/// One failure of a remote store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFailure {
    /// The time by the clock of the local store.
    pub at: Timestamp,
    /// The error with its causes, in one line.
    pub error: String,
}

/// Counters of decisions by their origin.
#[doc(alias = "metrics")]
#[doc(alias = "counter")]
#[derive(Debug, Default)]
pub struct DecisionMeter {
    remote: AtomicU64,
    local_allowed: AtomicU64,
    local_denied: AtomicU64,
    open: AtomicU64,
    open_denied: AtomicU64,
    closed: AtomicU64,
}

impl DecisionMeter {
    /// Counts one decision reported to a caller. A decision of an in-memory store is not counted, because it has no
    /// alternative. It is one relaxed addition.
    pub fn count(&self, by: DecidedBy, is_allowed: bool) {
        let count = match (by, is_allowed) {
            (DecidedBy::Memory, _) => return,
            (DecidedBy::Remote, _) => &self.remote,
            (DecidedBy::Local, true) => &self.local_allowed,
            (DecidedBy::Local, false) => &self.local_denied,
            (DecidedBy::Open, true) => &self.open,
            (DecidedBy::Open, false) => &self.open_denied,
            (DecidedBy::Closed, _) => &self.closed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of decisions of the remote store.
    pub fn remote(&self) -> u64 {
        self.remote.load(Ordering::Relaxed)
    }

    /// Returns the decisions in place of the remote store.
    pub fn without_store(&self) -> WithoutStore {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WithoutStore {
            local_allowed: get(&self.local_allowed),
            local_denied: get(&self.local_denied),
            open: get(&self.open),
            open_denied: get(&self.open_denied),
            closed: get(&self.closed),
        }
    }
}

/// The counters of a [`FallbackStore`](super::FallbackStore). The store counts its failures itself. One take may decide
/// for several callers, or for a part of one. Its user therefore counts the decisions in [`StoreMeter::decided`].
#[doc(alias = "metrics")]
#[doc(alias = "prometheus")]
#[derive(Debug, Default)]
pub struct StoreMeter {
    /// The decisions reported to callers.
    pub decided: DecisionMeter,
    is_failing: AtomicBool,
    failed: AtomicU64,
    last: Mutex<Option<StoreFailure>>,
}

impl StoreMeter {
    /// Returns the failures so far. The fields are read one after the other, so they may differ by failures that happen
    /// meanwhile.
    pub fn failures(&self) -> StoreFailures {
        StoreFailures {
            is_failing: self.is_failing.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            decided: self.decided.without_store(),
            last: self.last.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Records a reply of the store. Returns true if the take before it failed.
    pub(super) fn answered(&self) -> bool {
        // A load alone does not take the cache line from other threads.
        self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed)
    }

    /// Records a failure of the store. Returns true unless the take before it failed, too.
    pub(super) fn failed(&self, error: &StoreError, at: Timestamp) -> bool {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let is_first = !self.is_failing.swap(true, Ordering::Relaxed);
        // Many requests fail at once, and any one of their errors is sufficient.
        if let Ok(mut last) = self.last.try_lock() {
            *last = Some(StoreFailure { at, error: in_one_line(error) });
        }
        is_first
    }
}

/// Returns an error and its causes, in one line.
pub(super) fn in_one_line(error: &StoreError) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
