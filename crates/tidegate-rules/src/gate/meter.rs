//! What was counted for each rule.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::{Decision, DecisionMeter, Verdict, WithoutStore};

use crate::rule::Mode;

/// What was counted for one rule, in lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct RuleMeter {
    obeyed: Verdicts,
    in_shadow: Verdicts,
    looser: AtomicU64,
    stricter: AtomicU64,
    unmeasured: AtomicU64,
    /// By what it was decided.
    pub(super) by: DecisionMeter,
}

/// What was decided, while a rule was obeyed or while it was not.
#[derive(Debug, Default)]
struct Verdicts {
    allowed: AtomicU64,
    denied: AtomicU64,
    impossible: AtomicU64,
    store_full: AtomicU64,
    near: AtomicU64,
}

/// What was counted for one rule since it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Requests that it let pass, or would have.
    pub allowed: u64,
    /// Requests that it refused, or would have.
    pub denied: u64,
    /// Requests that cost more than ever passes.
    pub impossible: u64,
    /// Requests that were refused because the store had no room.
    pub store_full: u64,
    /// Requests that passed and left at most a fifth of the limit.
    pub near: u64,
    /// Of a candidate: requests that it would let pass and the rule refused.
    pub looser: u64,
    /// Of a candidate: requests that it would refuse and the rule let pass.
    pub stricter: u64,
    /// Of a candidate, or while it was not obeyed: requests about which it was not asked, as the store failed. They
    /// are not among those above.
    pub unmeasured: u64,
    /// How many of all these were decided while it was not obeyed. A candidate never is, so of that it says nothing.
    pub shadow: ShadowCounts,
    /// How many of all these were decided without the store, as it failed.
    pub without_store: WithoutStore,
}

/// What a rule would have said while its mode was shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowCounts {
    /// Requests that it would have let pass.
    pub allowed: u64,
    /// Requests that it would have refused.
    pub denied: u64,
    /// Requests that cost more than ever passes.
    pub impossible: u64,
    /// Requests that it would have refused because the store had no room.
    pub store_full: u64,
    /// Requests that would have passed and left at most a fifth of the limit.
    pub near: u64,
}

/// A limit is near when this part of it is left, or less.
const NEAR: u64 = 5;

impl RuleMeter {
    pub(crate) fn decided(&self, mode: Mode, decision: &Decision) {
        let counts = self.of(mode);
        let count = match decision.verdict_in_ticks() {
            Verdict::Allowed { .. } => {
                if decision.has_at_most(decision.limit() / NEAR) {
                    add(&counts.near);
                }
                &counts.allowed
            }
            Verdict::Denied { .. } if decision.is_store_full() => &counts.store_full,
            Verdict::Denied { .. } => &counts.denied,
            Verdict::Impossible => &counts.impossible,
        };
        add(count);
    }

    /// A request to which the answer is always the same.
    pub(crate) fn fixed(&self, mode: Mode, is_allowed: bool) {
        let counts = self.of(mode);
        add(if is_allowed { &counts.allowed } else { &counts.denied });
    }

    /// A request about which nobody could ask it.
    pub(crate) fn unmeasured(&self) {
        add(&self.unmeasured);
    }

    /// What a candidate says beside what its rule said.
    pub(crate) fn compared(&self, candidate: bool, rule: bool) {
        match (candidate, rule) {
            (true, false) => add(&self.looser),
            (false, true) => add(&self.stricter),
            _ => {}
        }
    }

    pub(crate) fn counts(&self) -> RuleCounts {
        let (obeyed, shadow) = (self.obeyed.counts(), self.in_shadow.counts());
        RuleCounts {
            allowed: obeyed.allowed + shadow.allowed,
            denied: obeyed.denied + shadow.denied,
            impossible: obeyed.impossible + shadow.impossible,
            store_full: obeyed.store_full + shadow.store_full,
            near: obeyed.near + shadow.near,
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
        }
    }
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
