//! The result of a gate's decision about a request.

use std::sync::Arc;

use tidegate_core::{DecidedBy, Decision, Key, Limit, PermitId, Ticks, Verdict};

/// The decision about a request, with the rule that it reports.
///
/// It owns its data, so it outlives the request and the policy. A request without matching rules has no
/// [rule](Admission::rule); it is allowed, unless the policy [denies](crate::Policy::unmatched) such requests.
#[derive(Clone, Debug)]
pub struct Admission {
    pub(crate) outcome: Outcome,
    pub(crate) decided_by: DecidedBy,
    pub(crate) permits: Vec<HeldPermit>,
    /// The other limits that decided, in the order of the file, if the request asked for them.
    pub(crate) others: Vec<Binding>,
}

/// The reason for the decision.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is made for each answer")]
pub(crate) enum Outcome {
    /// No rule applies.
    Free,
    /// No enforced rule applies, and the policy denies such requests.
    Unmatched,
    /// A rule with a fixed decision applied, or an override of the key decided in place of its limit.
    Fixed { rule: Arc<str>, is_allowed: bool, is_overridden: bool },
    /// The store failed and this rule is fail-open. It allows as it would for a key with full quota.
    Open { rule: Arc<str>, delay: Ticks },
    /// Limits decided, and this one binds.
    Limited(Binding),
}

/// A limit with its decision about a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Binding {
    /// The rule's name.
    pub rule: Arc<str>,
    /// The limit that was in force. If this node's share of it decided, that share.
    pub limit: Limit,
    /// The cost that was asked of it.
    pub cost: u64,
    /// The decision of this limit.
    pub decision: Decision,
    /// The delay of an allowed request: the longest delay of all its limits.
    pub delay: Ticks,
    /// True if all limits of this request allowed it.
    pub is_allowed: bool,
}

/// A concurrency permit that a request holds and has to release.
///
/// It is not released on drop: the holder may be another process. Without a release it ends with its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "semaphore permit")]
#[doc(alias = "concurrency permit")]
#[doc(alias = "bulkhead")]
pub struct HeldPermit {
    /// The rule under which it was taken.
    pub rule: Arc<str>,
    /// The key that holds the permit.
    pub key: Key,
    /// The limit under which it was taken.
    pub limit: Limit,
    /// The id of the permit.
    pub id: PermitId,
    /// True if the permit is held by the local fallback, because the store failed when it was acquired.
    pub is_local: bool,
}

impl HeldPermit {
    /// Creates a permit from its parts, for a caller that received them from a client. A forged permit releases
    /// nothing: the store knows the ids that it granted.
    pub fn new(rule: Arc<str>, key: Key, limit: Limit, id: PermitId) -> HeldPermit {
        HeldPermit { rule, key, limit, id, is_local: false }
    }

    /// Sets where the permit is held: in the local fallback if true, in the store of the gate otherwise.
    #[must_use]
    pub fn in_local_store(self, is_local: bool) -> HeldPermit {
        HeldPermit { is_local, ..self }
    }
}

impl Admission {
    /// Returns true if the request is allowed, now or after a delay.
    pub fn is_allowed(&self) -> bool {
        match &self.outcome {
            Outcome::Free | Outcome::Open { .. } => true,
            Outcome::Unmatched => false,
            Outcome::Fixed { is_allowed, .. } => *is_allowed,
            Outcome::Limited(binding) => binding.is_allowed,
        }
    }

    /// Returns the verdict. A rule that always denies, and the denial of a request to which no rule applies, yield
    /// [`Verdict::Impossible`].
    pub fn verdict(&self) -> Verdict {
        match &self.outcome {
            Outcome::Free | Outcome::Fixed { is_allowed: true, .. } => {
                Verdict::Allowed { delay: std::time::Duration::ZERO }
            }
            Outcome::Open { delay, .. } => Verdict::Allowed { delay: delay.to_duration() },
            Outcome::Fixed { .. } | Outcome::Unmatched => Verdict::Impossible,
            Outcome::Limited(Binding { is_allowed: true, delay, .. }) => {
                Verdict::Allowed { delay: delay.to_duration() }
            }
            Outcome::Limited(binding) => binding.decision.verdict(),
        }
    }

    /// Returns the name of the reported rule. For a denial that is the rule with the longest wait, otherwise the rule
    /// with the smallest fraction of its limit remaining. `None` if no rule applies.
    pub fn rule(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Free | Outcome::Unmatched => None,
            Outcome::Fixed { rule, .. } | Outcome::Open { rule, .. } => Some(rule),
            Outcome::Limited(binding) => Some(&binding.rule),
        }
    }

    /// Returns which store or fallback decided. With several rules, the one that decided about the reported rule.
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Returns the reported limit, if a limit decided or denied without asking the store.
    pub fn binding(&self) -> Option<&Binding> {
        match &self.outcome {
            Outcome::Limited(binding) => Some(binding),
            Outcome::Free | Outcome::Unmatched | Outcome::Fixed { .. } | Outcome::Open { .. } => None,
        }
    }

    /// Returns the limits of the enforced rules that decided: the binding one first, the others in the order of the
    /// file.
    ///
    /// All of them are there only if the request asked for [all limits](crate::Attributes::all_limits); otherwise it is
    /// the binding one alone. Rules that counted nothing are left out: those with a static decision, and those that
    /// allowed because the store failed.
    #[doc(alias = "RateLimit")]
    pub fn limits(&self) -> impl ExactSizeIterator<Item = &Binding> + Clone {
        let binding = self.binding().map_or(&[][..], std::slice::from_ref);
        (0..binding.len() + self.others.len())
            .map(move |at| binding.get(at).unwrap_or_else(|| &self.others[at - binding.len()]))
    }

    /// Returns true if a rule always denies such a request, or if it is [denied as unmatched](Self::is_unmatched).
    /// Retrying cannot succeed.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.outcome, Outcome::Fixed { is_allowed: false, .. } | Outcome::Unmatched)
    }

    /// Returns true if the request is denied because no enforced rule applies to it, under a policy whose
    /// [`unmatched`](crate::Policy::unmatched) is a denial.
    pub fn is_unmatched(&self) -> bool {
        matches!(self.outcome, Outcome::Unmatched)
    }

    /// Returns true if an override of the key decided in place of the limit of the [rule](Self::rule): it denied the
    /// request or, in a [peek](crate::RuleKey::peek), exempts the key.
    pub fn is_overridden(&self) -> bool {
        matches!(self.outcome, Outcome::Fixed { is_overridden: true, .. })
    }

    /// Returns the permits that the request holds, including those of shadow rules and candidates. Release them when
    /// the request ends, or at once if the caller does not run the request.
    pub fn permits(&self) -> &[HeldPermit] {
        &self.permits
    }
}
