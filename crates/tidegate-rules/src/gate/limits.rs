//! The limits of the rules in force, prepared once for all their decisions.
//!
//! ```text
//!   a rule without a schedule   one limit, as long as no policy with another one is put in force
//!   a rule with a schedule      the limit that was last used; the first request behind an edge prepares the next one
//! ```
//!
//! The first use of a prepared limit is the instant at which the store puts it in force and carries counts over from the
//! limit before. So a limit that comes back, after a window or a reload, is always prepared anew.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tidegate::{Limit, PreparedLimit};

use crate::rule::Rule;

/// The limit by which a request is decided. That of a rule without a schedule is borrowed, so that no two threads change
/// one reference count.
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
    /// The rule counts nothing.
    None,
    Constant(PreparedLimit),
    Scheduled(ArcSwap<PreparedLimit>),
}

impl RuleLimit {
    /// The limit of a rule; what is still the same as in the policy before is kept.
    pub(super) fn new(rule: &Rule, before: Option<(&Rule, &RuleLimit)>) -> RuleLimit {
        let Some(limited) = rule.limited() else { return RuleLimit::None };
        // A limit that is prepared belongs to the first zone that uses it.
        let before = before.filter(|(old, _)| old.zone() == rule.zone());
        let known = before.and_then(|(_, limit)| limit.last_used());
        let usual = || PreparedLimit::of_rule(rule.name(), limited.usual.limit);
        if limited.schedule.terms.is_empty() {
            let same = known.filter(|known| *known.limit() == limited.usual.limit);
            RuleLimit::Constant(same.unwrap_or_else(usual))
        } else {
            RuleLimit::Scheduled(ArcSwap::from_pointee(known.unwrap_or_else(usual)))
        }
    }

    fn last_used(&self) -> Option<PreparedLimit> {
        match self {
            RuleLimit::None => None,
            RuleLimit::Constant(limit) => Some(limit.clone()),
            RuleLimit::Scheduled(limit) => Some(PreparedLimit::clone(&limit.load())),
        }
    }

    /// Returns true once after a change of the limit that dropped counts of an older one.
    pub(super) fn take_dropped_counts(&self) -> bool {
        self.last_used().is_some_and(|limit| limit.dropped_counts().take())
    }

    /// The limit that the rule has now, which is this one; `None` if it counts nothing.
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

/// Behind an edge of the schedule. Of several requests that come there at once, one prepares the limit for all.
#[cold]
fn change(last: &ArcSwap<PreparedLimit>, known: &Arc<PreparedLimit>, limit: &Limit) -> Arc<PreparedLimit> {
    let next = Arc::new(PreparedLimit::of_rule(known.namespace(), *limit));
    let found = Guard::into_inner(last.compare_and_swap(known, Arc::clone(&next)));
    let is_same = !Arc::ptr_eq(&found, known) && found.limit() == limit;
    if is_same { found } else { next }
}
