//! The limits of the rules in force, prepared once for all their decisions.
//!
//! ```text
//!   a rule without a schedule   one limit, as long as no policy with another one is put in force
//!   a rule with a schedule      the limit that was last used; the first request after an edge prepares the next one
//! ```
//!
//! The first use of a prepared limit is the instant at which the store activates it and carries counts over from the
//! previous limit. So a limit that returns, after a window or a reload, is always prepared anew.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tidegate_core::{Limit, PreparedLimit};

use crate::rule::Rule;

/// The limit of a request's decision. The limit of a rule without a schedule is borrowed, so that threads do not
/// contend for one reference count.
#[derive(Clone, Debug)]
pub(super) enum LimitInUse<'p> {
    Constant(&'p PreparedLimit),
    Changing(Arc<PreparedLimit>),
}

impl Deref for LimitInUse<'_> {
    type Target = PreparedLimit;

    fn deref(&self) -> &PreparedLimit {
        match self {
            LimitInUse::Constant(limit) => limit,
            LimitInUse::Changing(limit) => limit,
        }
    }
}

/// The prepared limit of one rule in force.
#[derive(Debug)]
pub(super) enum RuleLimit {
    /// The rule has no limit.
    None,
    Constant(PreparedLimit),
    Scheduled(ArcSwap<PreparedLimit>),
}

impl RuleLimit {
    /// Creates the limit of a rule. Reuses the prepared limit of the previous policy if it is unchanged.
    pub(super) fn new(rule: &Rule, before: Option<(&Rule, &RuleLimit)>) -> RuleLimit {
        let Some(limited) = rule.limited() else { return RuleLimit::None };
        // A prepared limit belongs to the first zone that uses it.
        let before = before.filter(|(old, _)| old.zone() == rule.zone());
        let known = before.and_then(|(_, limit)| limit.last_used());
        let usual = match &known {
            Some(known) => known.followed_by(limited.usual.limit),
            None => PreparedLimit::of_rule(rule.name(), limited.usual.limit),
        };
        if limited.schedule.terms.is_empty() {
            let same = known.filter(|known| *known.limit() == limited.usual.limit);
            RuleLimit::Constant(same.unwrap_or(usual))
        } else {
            RuleLimit::Scheduled(ArcSwap::from_pointee(known.unwrap_or(usual)))
        }
    }

    /// Returns the limit that was last used, without putting another one in force.
    pub(super) fn last_used(&self) -> Option<PreparedLimit> {
        match self {
            RuleLimit::None => None,
            RuleLimit::Constant(limit) => Some(limit.clone()),
            RuleLimit::Scheduled(limit) => Some(PreparedLimit::clone(&limit.load())),
        }
    }

    /// Returns true once after a change of the limit that dropped counts of an older one, for all keys or for one.
    pub(super) fn take_dropped_counts(&self) -> bool {
        self.last_used().is_some_and(|limit| limit.dropped_counts().take())
    }

    /// Returns the prepared form of this limit, which is the rule's limit now. `None` if the rule has no limit.
    pub(super) fn now(&self, limit: &Limit) -> Option<LimitInUse<'_>> {
        match self {
            RuleLimit::None => None,
            RuleLimit::Constant(constant) => Some(LimitInUse::Constant(constant)),
            RuleLimit::Scheduled(last) => {
                let known = last.load();
                let is_same = known.limit() == limit;
                Some(LimitInUse::Changing(if is_same {
                    Guard::into_inner(known)
                } else {
                    change(last, &known, limit)
                }))
            }
        }
    }
}

/// Changes the limit at an edge of the schedule. Of several concurrent requests, one prepares the limit for all.
#[cold]
fn change(last: &ArcSwap<PreparedLimit>, known: &Arc<PreparedLimit>, limit: &Limit) -> Arc<PreparedLimit> {
    let next = Arc::new(known.followed_by(*limit));
    let found = Guard::into_inner(last.compare_and_swap(known, Arc::clone(&next)));
    let is_same = !Arc::ptr_eq(&found, known) && found.limit() == limit;
    if is_same { found } else { next }
}
