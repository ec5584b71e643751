//! The counters of each rule.
//!
//! A counter is incremented without synchronization with other counters, so a reading during traffic may be off by the
//! requests in progress. Each rule has its own cache lines: threads that hit different rules do not slow each other.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{Ban, Decision, DecisionMeter, Verdict, WithoutStore};

use crate::rule::Mode;

/// The counters of one rule, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct RuleMeter {
    obeyed: Verdicts,
    in_shadow: Verdicts,
    looser: AtomicU64,
    stricter: AtomicU64,
    unmeasured: AtomicU64,
    /// The counts by decider: the store or a fallback.
    pub(super) by: DecisionMeter,
}

/// The verdict counters of a rule, in one mode.
#[derive(Debug, Default)]
struct Verdicts {
    allowed: AtomicU64,
    denied: AtomicU64,
    impossible: AtomicU64,
    store_full: AtomicU64,
    near: AtomicU64,
    bans: AtomicU64,
    banned: AtomicU64,
}

/// The counts of one rule since it was added.
///
/// Counters only grow. A monitor computes rates from the difference of two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// Requests that the rule allowed, or would have allowed.
    pub allowed: u64,
    /// Requests that the rule denied, or would have denied.
    pub denied: u64,
    /// Requests whose cost is larger than the limit can ever allow.
    pub impossible: u64,
    /// Requests that were denied because the store was full.
    pub store_full: u64,
    /// Allowed requests that left at most a fifth of the limit.
    pub near: u64,
    /// Bans that its penalty began.
    pub bans: u64,
    /// Requests that were denied while their key was banned; they are part of `denied`.
    pub banned: u64,
    /// For a candidate: requests that it would allow and the rule denied.
    pub looser: u64,
    /// For a candidate: requests that it would deny and the rule allowed.
    pub stricter: u64,
    /// For a candidate or a shadow rule: requests that it could not evaluate because the store failed. The counts above
    /// do not include them.
    pub unmeasured: u64,
    /// The part of these counts that was decided in shadow mode. It has no meaning for a candidate, which is never
    /// enforced.
    pub shadow: ShadowCounts,
    /// The part of these counts that was decided without the store, because it failed.
    pub without_store: WithoutStore,
}

/// The decisions of a rule while its mode was shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShadowCounts {
    /// Requests that it would have allowed.
    pub allowed: u64,
    /// Requests that it would have denied.
    pub denied: u64,
    /// Requests whose cost is larger than the limit can ever allow.
    pub impossible: u64,
    /// Requests that it would have denied because the store was full.
    pub store_full: u64,
    /// Requests that it would have allowed and that would have left at most a fifth of the limit.
    pub near: u64,
    /// Bans that its penalty would have begun.
    pub bans: u64,
    /// Requests that it would have denied while their key would have been banned.
    pub banned: u64,
}

/// The divisor of the limit below which an allowed request counts as near: at most one fifth remains.
const NEAR: u64 = 5;

impl RuleMeter {
    /// Counts a decision. A ban that begins with several requests of a unit begins with the first of them.
    pub(crate) fn decided(&self, mode: Mode, decision: &Decision, is_repeated: bool) {
        let counts = self.of(mode);
        let count = match decision.verdict_in_ticks() {
            Verdict::Allowed { .. } => {
                if decision.has_at_most(decision.limit() / NEAR) {
                    add(&counts.near);
                }
                &counts.allowed
            }
            Verdict::Denied { .. } | Verdict::Impossible if decision.ban().is_some() => {
                let begins = decision.ban() == Some(Ban::Begun) && !is_repeated;
                add(if begins { &counts.bans } else { &counts.banned });
                &counts.denied
            }
            Verdict::Denied { .. } if decision.is_store_full() => &counts.store_full,
            Verdict::Denied { .. } => &counts.denied,
            Verdict::Impossible => &counts.impossible,
        };
        add(count);
    }

    /// Counts a request with a fixed decision.
    pub(crate) fn fixed(&self, mode: Mode, is_allowed: bool) {
        let counts = self.of(mode);
        add(if is_allowed { &counts.allowed } else { &counts.denied });
    }

    /// Counts a request that the rule could not evaluate.
    pub(crate) fn unmeasured(&self) {
        add(&self.unmeasured);
    }

    /// Counts a difference between a candidate's decision and that of its rule.
    pub(crate) fn compared(&self, candidate: bool, rule: bool) {
        match (candidate, rule) {
            (true, false) => add(&self.looser),
            (false, true) => add(&self.stricter),
            _ => {}
        }
    }

    /// Returns all counts. Enforced and shadow decisions are added up, as the totals of the rule.
    pub(crate) fn counts(&self) -> RuleCounts {
        let (obeyed, shadow) = (self.obeyed.counts(), self.in_shadow.counts());
        RuleCounts {
            allowed: obeyed.allowed + shadow.allowed,
            denied: obeyed.denied + shadow.denied,
            impossible: obeyed.impossible + shadow.impossible,
            store_full: obeyed.store_full + shadow.store_full,
            near: obeyed.near + shadow.near,
            bans: obeyed.bans + shadow.bans,
            banned: obeyed.banned + shadow.banned,
            looser: get(&self.looser),
            stricter: get(&self.stricter),
            unmeasured: get(&self.unmeasured),
            shadow,
            without_store: self.by.without_store(),
        }
    }

    fn of(&self, mode: Mode) -> &Verdicts {
        match mode {
            Mode::Enforce => &self.obeyed,
            Mode::Shadow => &self.in_shadow,
        }
    }
}

impl Verdicts {
    fn counts(&self) -> ShadowCounts {
        ShadowCounts {
            allowed: get(&self.allowed),
            denied: get(&self.denied),
            impossible: get(&self.impossible),
            store_full: get(&self.store_full),
            near: get(&self.near),
            bans: get(&self.bans),
            banned: get(&self.banned),
        }
    }
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
