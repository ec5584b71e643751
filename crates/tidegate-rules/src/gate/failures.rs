//! What was decided without the store, and why.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tidegate::StoreError;

use super::admission::DecidedBy;

/// Decisions without the store, by what the rules say in `on_store_failure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithoutStore {
    /// Allowed by this node's share of the limit.
    pub local_allowed: u64,
    /// Refused by this node's share of the limit, for whatever reason.
    pub local_denied: u64,
    /// Allowed without a count.
    pub open: u64,
    /// Denied although the rule is open, because the cost can never pass.
    pub open_denied: u64,
    /// Denied without a count.
    pub closed: u64,
}

impl WithoutStore {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.local_allowed + self.local_denied + self.open + self.open_denied + self.closed
    }
}

/// How the store of a gate fails; a store in memory never does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFailures {
    /// Whether it failed when it was last asked.
    pub is_failing: bool,
    /// How often it failed.
    pub failed: u64,
    /// Requests that were decided without it.
    pub decided: WithoutStore,
    /// The last failure, if there was one.
    pub last: Option<StoreFailure>,
}

/// One failure of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFailure {
    /// When it was, in seconds since 1970.
    pub at: i64,
    /// What went wrong, in one line.
    pub error: String,
}

/// Counts of [`WithoutStore`].
#[derive(Debug, Default)]
pub(super) struct WithoutStoreMeter {
    local_allowed: AtomicU64,
    local_denied: AtomicU64,
    open: AtomicU64,
    open_denied: AtomicU64,
    closed: AtomicU64,
}

impl WithoutStoreMeter {
    pub(super) fn decided(&self, by: DecidedBy, is_allowed: bool) {
        let count = match (by, is_allowed) {
            (DecidedBy::Local, true) => &self.local_allowed,
            (DecidedBy::Local, false) => &self.local_denied,
            (DecidedBy::Open, true) => &self.open,
            (DecidedBy::Open, false) => &self.open_denied,
            (DecidedBy::Closed, _) => &self.closed,
            (DecidedBy::Memory | DecidedBy::Store(_), _) => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> WithoutStore {
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

/// What there is to tell about a store's failures.
#[derive(Debug, Default)]
pub(super) struct Failures {
    pub(super) decided: WithoutStoreMeter,
    is_failing: AtomicBool,
    failed: AtomicU64,
    last: Mutex<Option<StoreFailure>>,
}

impl Failures {
    /// The store has answered.
    pub(super) fn ended(&self) {
        // Whoever only reads does not disturb the others.
        if self.is_failing.load(Ordering::Relaxed) {
            self.is_failing.store(false, Ordering::Relaxed);
        }
    }

    /// The store has failed.
    pub(super) fn note(&self, error: &StoreError, at: i64) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.is_failing.store(true, Ordering::Relaxed);
        // Many fail at once, and one of them is as good as the other.
        if let Ok(mut last) = self.last.try_lock() {
            *last = Some(StoreFailure { at, error: in_one_line(error) });
        }
    }

    pub(super) fn told(&self) -> StoreFailures {
        StoreFailures {
            is_failing: self.is_failing.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            decided: self.decided.counts(),
            last: self.last.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// An error and what caused it.
fn in_one_line(error: &StoreError) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
