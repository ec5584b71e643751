//! The answer of a gate.

use std::sync::Arc;

use tidegate::{DecidedBy, Decision, Key, Limit, PermitId, Ticks, Verdict};

/// What was decided about a request, and by which rule.
#[derive(Clone, Debug)]
pub struct Admission {
    pub(crate) outcome: Outcome,
    pub(crate) decided_by: DecidedBy,
    pub(crate) permits: Vec<HeldPermit>,
}

/// How it was decided.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is made for each answer")]
pub(crate) enum Outcome {
    /// No rule applies.
    Free,
    /// A rule always says so.
    Fixed { rule: Arc<str>, is_allowed: bool },
    /// The store failed, and this rule is open: it allows as for a key that has spent nothing.
    Open { rule: Arc<str>, delay: Ticks },
    /// Limits decided, and this one binds.
    Limited(Binding),
}

/// The limit that an answer speaks of.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The rule's name.
    pub rule: Arc<str>,
    /// The limit that was in force; this node's share of it, if that decided.
    pub limit: Limit,
    /// What was asked of it.
    pub cost: u64,
    /// What it said.
    pub decision: Decision,
    /// How long an allowed request waits: as long as the slowest of all limits says.
    pub delay: Ticks,
    /// Whether all limits of this request let it pass.
    pub is_allowed: bool,
}

/// A place in flight that a request took, to be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPermit {
    /// The rule under which it was taken.
    pub rule: Arc<str>,
    /// Whose it is.
    pub key: Key,
    /// The limit under which it was taken.
    pub limit: Limit,
    /// Its number.
    pub id: PermitId,
    /// Whether this process holds it by itself, as the store failed when it was taken.
    pub is_local: bool,
}

impl Admission {
    /// Whether the request may happen, now or after a delay.
    pub fn is_allowed(&self) -> bool {
        match &self.outcome {
            Outcome::Free | Outcome::Open { .. } => true,
            Outcome::Fixed { is_allowed, .. } => *is_allowed,
            Outcome::Limited(binding) => binding.is_allowed,
        }
    }

    /// The verdict; a rule that always refuses makes it impossible.
    pub fn verdict(&self) -> Verdict {
        match &self.outcome {
            Outcome::Free | Outcome::Fixed { is_allowed: true, .. } => {
                Verdict::Allowed { delay: std::time::Duration::ZERO }
            }
            Outcome::Open { delay, .. } => Verdict::Allowed { delay: delay.to_duration() },
            Outcome::Fixed { .. } => Verdict::Impossible,
            Outcome::Limited(Binding { is_allowed: true, delay, .. }) => {
                Verdict::Allowed { delay: delay.to_duration() }
            }
            Outcome::Limited(binding) => binding.decision.verdict(),
        }
    }

    /// The rule that the answer speaks of: of a refusal the one with the longest wait, else the one with the
    /// smallest part of its limit left. None if no rule applies.
    pub fn rule(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Free => None,
            Outcome::Fixed { rule, .. } | Outcome::Open { rule, .. } => Some(rule),
            Outcome::Limited(binding) => Some(&binding.rule),
        }
    }

    /// Who decided: of several rules, whoever did about the one that the answer speaks of.
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// The limit that the answer speaks of, if it was a limit that decided, or refused unasked.
    pub fn binding(&self) -> Option<&Binding> {
        match &self.outcome {
            Outcome::Limited(binding) => Some(binding),
            Outcome::Free | Outcome::Fixed { .. } | Outcome::Open { .. } => None,
        }
    }

    /// Whether a rule always refuses such a request: trying again is of no use.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.outcome, Outcome::Fixed { is_allowed: false, .. })
    }

    /// The places in flight that it took, for itself and for what is measured beside it; to be given back when the
    /// request is over, and by somebody who does not let it happen at once.
    pub fn permits(&self) -> &[HeldPermit] {
        &self.permits
    }
}
