//! The limits of the rules in force, prepared once for all their decisions.
//!
//! ```text
//!   a rule without a schedule   one limit, as long as no policy with another one is put in force
//!   a rule with a schedule      the limit that was last used; the first request behind an edge prepares the next one
//! ```
//!
//! The first use of a prepared limit is the instant at which the store puts it in force and carries counts over from the
//! limit before. So a limit that comes back, after a window or a reload, is always prepared anew.

use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use tidegate::{Limit, PreparedLimit};

use crate::rule::Rule;

/// A limit that was prepared for a store, and this node's share of it for when that store fails.
#[derive(Debug)]
pub(super) struct NodeLimit {
    whole: PreparedLimit,
    share: OnceLock<PreparedLimit>,
    origin: Origin,
}

/// Why a limit is in force.
#[derive(Debug)]
enum Origin {
    /// A rule has it.
    Rule,
    /// An override puts it in place of another one, for one key.
    Override { before: Arc<NodeLimit> },
    /// An override has ended, and the rule holds again for its key.
    BackToRule { rule: Arc<NodeLimit>, before: Arc<NodeLimit> },
}

impl NodeLimit {
    /// The limit of a rule.
    pub(super) fn of_rule(rule: &str, limit: Limit) -> Arc<NodeLimit> {
        NodeLimit::new(PreparedLimit::of_rule(rule, limit), Origin::Rule)
    }

    /// A limit for one key in place of this one.
    pub(super) fn instead(self: &Arc<Self>, limit: Limit) -> Arc<NodeLimit> {
        NodeLimit::new(self.whole.instead(limit), Origin::Override { before: Arc::clone(self) })
    }

    /// The limit of the rule, for one key that had this one in place of it.
    pub(super) fn back_to(self: &Arc<Self>, rule: &Arc<NodeLimit>) -> Arc<NodeLimit> {
        let origin = Origin::BackToRule { rule: Arc::clone(rule), before: Arc::clone(self) };
        NodeLimit::new(self.whole.back_to(&rule.whole), origin)
    }

    fn new(whole: PreparedLimit, origin: Origin) -> Arc<NodeLimit> {
        Arc::new(NodeLimit { whole, share: OnceLock::new(), origin })
    }

    /// The limit of all nodes together.
    pub(super) fn whole(&self) -> &PreparedLimit {
        &self.whole
    }

    /// The share of this node, where so many share the limit. A gate always has the same number of them.
    pub(super) fn share(&self, nodes: NonZeroU64) -> &PreparedLimit {
        self.share.get_or_init(|| {
            let limit = self.whole.limit().shared_among(nodes);
            match &self.origin {
                Origin::Rule => PreparedLimit::of_rule(self.whole.namespace(), limit),
                Origin::Override { before } => before.share(nodes).instead(limit),
                Origin::BackToRule { rule, before } => before.share(nodes).back_to(rule.share(nodes)),
            }
        })
    }

    /// The number of limits that it was put in place of, one after the other.
    pub(super) fn changes(&self) -> usize {
        std::iter::successors(self.before(), |limit| limit.before()).count()
    }

    /// The limit that this one was put in place of, for one key.
    fn before(&self) -> Option<&NodeLimit> {
        match &self.origin {
            Origin::Rule => None,
            Origin::Override { before } | Origin::BackToRule { before, .. } => Some(before),
        }
    }
}

/// The limit by which a request is decided. That of a rule without a schedule is borrowed, so that no two threads change
/// one reference count.
#[derive(Clone, Debug)]
pub(super) enum LimitInUse<'p> {
    Constant(&'p Arc<NodeLimit>),
    Changing(Arc<NodeLimit>),
}

impl LimitInUse<'_> {
    /// The same for as long as it is wanted.
    pub(super) fn into_arc(self) -> Arc<NodeLimit> {
        match self {
            LimitInUse::Constant(limit) => Arc::clone(limit),
            LimitInUse::Changing(limit) => limit,
        }
    }
}

impl Deref for LimitInUse<'_> {
    type Target = Arc<NodeLimit>;

    fn deref(&self) -> &Arc<NodeLimit> {
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
    Constant(Arc<NodeLimit>),
    Scheduled(ArcSwap<NodeLimit>),
}

impl RuleLimit {
    /// The limit of a rule; what is still the same as in the policy before is kept.
    pub(super) fn new(rule: &Rule, before: Option<(&Rule, &RuleLimit)>) -> RuleLimit {
        let Some(limited) = rule.limited() else { return RuleLimit::None };
        // A limit that is prepared belongs to the first zone that uses it.
        let before = before.filter(|(old, _)| old.zone() == rule.zone());
        let known = before.and_then(|(_, limit)| limit.last_used());
        let usual = || NodeLimit::of_rule(rule.name(), limited.usual.limit);
        if limited.schedule.terms.is_empty() {
            let same = known.filter(|known| *known.whole.limit() == limited.usual.limit);
            RuleLimit::Constant(same.unwrap_or_else(usual))
        } else {
            RuleLimit::Scheduled(ArcSwap::new(known.unwrap_or_else(usual)))
        }
    }

    fn last_used(&self) -> Option<Arc<NodeLimit>> {
        match self {
            RuleLimit::None => None,
            RuleLimit::Constant(limit) => Some(Arc::clone(limit)),
            RuleLimit::Scheduled(limit) => Some(limit.load_full()),
        }
    }

    /// Returns true once after a change of the limit that dropped counts of an older one.
    pub(super) fn take_dropped_counts(&self) -> bool {
        let dropped = |limit: Arc<NodeLimit>| {
            let of_share = limit.share.get().is_some_and(|share| share.dropped_counts().take());
            limit.whole.dropped_counts().take() || of_share
        };
        self.last_used().is_some_and(dropped)
    }

    /// The limit that the rule has now, which is this one; `None` if it counts nothing.
    pub(super) fn now(&self, limit: &Limit) -> Option<LimitInUse<'_>> {
        match self {
            RuleLimit::None => None,
            RuleLimit::Constant(constant) => Some(LimitInUse::Constant(constant)),
            RuleLimit::Scheduled(last) => {
                let known = last.load();
                let is_same = known.whole.limit() == limit;
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
fn change(last: &ArcSwap<NodeLimit>, known: &Arc<NodeLimit>, limit: &Limit) -> Arc<NodeLimit> {
    let next = NodeLimit::of_rule(known.whole.namespace(), *limit);
    let found = Guard::into_inner(last.compare_and_swap(known, Arc::clone(&next)));
    let is_same = !Arc::ptr_eq(&found, known) && found.whole.limit() == limit;
    if is_same { found } else { next }
}
