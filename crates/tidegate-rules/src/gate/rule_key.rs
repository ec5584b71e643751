//! One key of a rule, for a support desk: what remains of its quota, a reset, and a correction.
//!
//! The rule is named, so its conditions are not evaluated, and its other keys and the other rules are not affected.
//! The limit is the one that the next request of the key would meet: schedule windows and overrides are applied.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    Adjusted, Adjustment, Cost, DecidedBy, Key, StoreError, StoreFuture, Subject, Ticks, Verdict,
};
use tidegate_support::nearest;

use super::admission::{Admission, Binding, Outcome};
use super::limits::LimitInUse;
use super::overrides::{Instead, OverrideError};
use super::{Gate, InForce};
use crate::attributes::Attributes;
use crate::key::Keyed;
use crate::rule::{Limited, Mode, Rule};

/// A key of a rule in force; see [`Gate::rule_key`].
///
/// It keeps the policy of its creation in use, so it is for one operation and not to be stored.
pub struct RuleKey {
    gate: Gate,
    force: Arc<InForce>,
    rule: Arc<str>,
    key: Key,
    parts: Vec<(String, String)>,
    cost: Cost,
    max_wait: Option<Duration>,
}

/// The reason why attributes name no key of a rule.
///
/// Each variant is an error of the caller, and displays the fault with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleKeyError {
    /// No rule has this name.
    NoSuchRule {
        /// The name.
        rule: String,
        /// The most similar name of a rule in force, if one is similar.
        nearest: Option<String>,
    },
    /// The rule of this name has a static decision in place of a limit.
    NoLimit(String),
    /// The rule is a candidate, which is measured and decides nothing.
    Candidate {
        /// The candidate.
        rule: String,
        /// The rule that it would replace.
        candidate_for: String,
    },
    /// The rule of this name is in shadow mode now, and decides nothing.
    Shadow(String),
    /// A part of the rule's key is missing.
    MissingPart {
        /// The rule.
        rule: String,
        /// The part.
        part: String,
    },
    /// A part of the rule's key has several values.
    RepeatedPart {
        /// The rule.
        rule: String,
        /// The part.
        part: String,
    },
}

impl fmt::Display for RuleKeyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleKeyError::NoSuchRule { rule, nearest } => {
                write!(out, "rule {rule:?}: there is no rule of this name; ")?;
                match nearest {
                    Some(near) => write!(out, "did you mean {near:?}?"),
                    None => out.write_str("name one that is in force"),
                }
            }
            RuleKeyError::NoLimit(rule) => write!(
                out,
                "rule {rule:?}: has a decision in place of a limit, so it counts nothing; name a rule with a limit"
            ),
            RuleKeyError::Candidate { rule, candidate_for } => write!(
                out,
                "rule {rule:?}: is a candidate, which decides nothing; name the rule that decides, {candidate_for:?}"
            ),
            RuleKeyError::Shadow(rule) => write!(
                out,
                "rule {rule:?}: is in shadow mode now and decides nothing; explain a request to see what it counts, or \
                 name an enforced rule"
            ),
            RuleKeyError::MissingPart { rule, part } => {
                write!(out, "key: {part:?} is a part of the key of rule {rule:?} and missing; send its value")
            }
            RuleKeyError::RepeatedPart { rule, part } => write!(
                out,
                "key: {part:?} of rule {rule:?} has several values, and this is about one key; send one of them"
            ),
        }
    }
}

impl std::error::Error for RuleKeyError {}

/// Converts to the error of overrides, which know rules with a limit only.
impl From<RuleKeyError> for OverrideError {
    fn from(error: RuleKeyError) -> OverrideError {
        match error {
            RuleKeyError::MissingPart { part, .. } => OverrideError::MissingPart(part),
            RuleKeyError::RepeatedPart { part, .. } => OverrideError::RepeatedPart(part),
            RuleKeyError::NoSuchRule { rule, .. }
            | RuleKeyError::NoLimit(rule)
            | RuleKeyError::Candidate { rule, .. }
            | RuleKeyError::Shadow(rule) => OverrideError::NoSuchRule(rule),
        }
    }
}

impl Gate {
    /// Returns the key of a rule that these attributes name, as those of a request do. Attributes that are no part of
    /// the key are ignored; the cost and the max wait are used by [`RuleKey::peek`].
    ///
    /// # Errors
    /// [`RuleKeyError`] if no enforced rule with a limit has this name, or if the attributes do not name one key.
    ///
    /// ```
    /// use tidegate::{Adjustment, Cost, Zone};
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let policy = Policy::from_toml("[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '3/h'")?;
    /// let gate = Gate::new(policy, Zone::new(1 << 20))?;
    /// let ana = Attributes::new().set("user", "ana");
    /// for _ in 0..4 {
    ///     gate.admit(&ana).now()?;
    /// }
    /// let key = gate.rule_key("login", &ana)?;
    /// assert!(!key.peek().now()?.is_allowed());
    /// key.adjust(Adjustment::Refund(Cost::of(1))).now()?; // one attempt back
    /// assert!(key.peek().now()?.is_allowed());
    /// assert!(key.reset().now()?); // all of them
    /// assert_eq!(key.peek().now()?.binding().map(|limit| limit.decision.remaining()), Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "peek")]
    #[doc(alias = "reset")]
    #[doc(alias = "adjust")]
    #[doc(alias = "unblock")]
    #[doc(alias = "customer support")]
    pub fn rule_key(&self, rule: &str, attributes: &Attributes<'_>) -> Result<RuleKey, RuleKeyError> {
        let force = self.inner.force.load_full();
        let NamedKey { rule, key, parts } = force.named_key(rule, attributes)?;
        if force.limited(&rule).is_some_and(|(_, of)| of.now(|| self.date()).0.mode == Mode::Shadow) {
            return Err(RuleKeyError::Shadow((*rule).to_owned()));
        }
        let Attributes { cost, max_wait, .. } = *attributes;
        Ok(RuleKey { gate: self.clone(), force, rule, key, parts, cost, max_wait })
    }
}

impl RuleKey {
    /// Returns the name of the rule.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the parts of the key by name, each in the spelling in which the rule counts it.
    pub fn key(&self) -> &[(String, String)] {
        &self.parts
    }

    /// Returns the decision that the rule alone would make about a request of this key, without spending.
    ///
    /// An override that exempts or denies the key decides without a limit.
    ///
    /// # Errors
    /// The error of a remote store. No fallback answers in its place.
    pub fn peek(&self) -> StoreFuture<'_, Admission> {
        let request = Attributes::new().cost(self.cost);
        let request = match self.max_wait {
            Some(longest) => request.max_wait(longest),
            None => request,
        };
        self.gate.reply(async move { self.look(&request).await })
    }

    async fn look(&self, request: &Attributes<'_>) -> Result<Admission, StoreError> {
        let (rule, limited) = self.limited();
        let date = self.gate.date();
        let found = self.gate.inner.overrides.of(rule, &self.key, || date);
        let (terms, _) = limited.now(|| date);
        match found.and_then(|found| found.instead(date)) {
            Some(fixed @ (Instead::Allow | Instead::Deny)) => {
                let (rule, is_allowed) = (self.rule.clone(), fixed == Instead::Allow);
                Ok(Admission::without_limits(Outcome::Fixed { rule, is_allowed, is_overridden: true }))
            }
            Some(Instead::Limit(_)) | None => {
                let limit = self.limit()?;
                let ask = terms.ask(limit.limit(), request);
                let decision = self.force.store.store().peek(self.subject(&limit), ask).await?;
                let is_in_memory = self.force.store.is_in_memory();
                let binding = Binding {
                    rule: self.rule.clone(),
                    limit: *limit.limit(),
                    cost: ask.cost.get(),
                    decision,
                    delay: match decision.verdict_in_ticks() {
                        Verdict::Allowed { delay } => delay,
                        Verdict::Denied { .. } | Verdict::Impossible => Ticks::ZERO,
                    },
                    is_allowed: decision.is_allowed(),
                };
                let decided_by = if is_in_memory { DecidedBy::Memory } else { DecidedBy::Remote };
                Ok(Admission { decided_by, ..Admission::without_limits(Outcome::Limited(binding)) })
            }
        }
    }

    /// Removes everything that the rule has counted for this key: under its limit, under those of its schedule and of
    /// overrides, and under those that it had before. Returns true if there was anything. Overrides stay.
    ///
    /// The next request finds the whole limit. Permits that the key holds end.
    ///
    /// # Errors
    /// The error of the store. While more limits of rules are in use than the store lists, the key may have counts under
    /// others, and nothing is removed.
    pub fn reset(&self) -> StoreFuture<'_, bool> {
        self.gate.reply(async move {
            let limit = self.limit()?;
            let reset = self.force.store.store().reset(self.subject(&limit)).await;
            reset.map_err(|error| if error.is_unfit() { unlisted() } else { error })
        })
    }

    /// Charges additional units, or gives units back, under the limit in force for this key. They are weighted by the
    /// rule's `cost`, as those of a request are.
    ///
    /// A charge is never denied: the debt can grow up to `max_debt`. A refund gives back at most what is owed.
    ///
    /// # Errors
    /// The error of a remote store, after which it may have been done.
    pub fn adjust(&self, adjustment: Adjustment) -> StoreFuture<'_, Adjusted> {
        self.gate.reply(async move {
            let weight = self.limited().1.now(|| self.gate.date()).0.cost;
            let weighted = |cost: Cost| Cost::new(cost.get().saturating_mul(weight)).unwrap_or(cost);
            let adjustment = match adjustment {
                Adjustment::Charge(cost) => Adjustment::Charge(weighted(cost)),
                Adjustment::Refund(cost) => Adjustment::Refund(weighted(cost)),
            };
            let limit = self.limit()?;
            self.force.store.store().adjust(self.subject(&limit), adjustment).await
        })
    }

    /// Returns the rule with its limit.
    fn limited(&self) -> (&Rule, &Limited) {
        self.force.limited(&self.rule).expect("it was found in this policy")
    }

    /// Returns the limit in force for this key.
    fn limit(&self) -> Result<LimitInUse<'_>, StoreError> {
        let limit = self.gate.limit_of(&self.force, &self.rule, &self.key);
        limit.ok_or_else(|| StoreError::unfit("the rule has no limit"))
    }

    /// Returns the key under this limit, in the zone of the rule.
    fn subject<'a>(&'a self, limit: &'a LimitInUse<'_>) -> Subject<'a> {
        let (rule, limited) = self.limited();
        let penalty = self.force.policy.id_of(&self.rule).and_then(|id| self.force.penalty(id));
        let subject =
            limit.subject(&self.key).penalty(penalty).when_full(limited.when_full).in_zone(rule.zone());
        subject.on_store_failure(limited.on_store_failure)
    }
}

/// Returns the error of a reset that could miss counts.
#[cold]
fn unlisted() -> StoreError {
    StoreError::unfit(
        "more limits of rules are in use than the store lists, and the key may have counts under others; remove rules or \
         overrides, and try again after their longest refill",
    )
}

/// A key of a rule, with its parts by name.
pub(super) struct NamedKey {
    pub(super) rule: Arc<str>,
    pub(super) key: Key,
    pub(super) parts: Vec<(String, String)>,
}

impl InForce {
    /// Returns the rule of this name, if it has a limit.
    fn limited(&self, rule: &str) -> Option<(&Rule, &Limited)> {
        let rule = self.policy.named(rule)?;
        Some((rule, rule.limited()?))
    }

    /// Returns the key that these attributes name under a rule.
    pub(super) fn named_key(
        &self,
        rule: &str,
        attributes: &Attributes<'_>,
    ) -> Result<NamedKey, RuleKeyError> {
        let name = rule.to_owned();
        let Some(known) = self.policy.named(rule) else {
            let near = nearest(rule, self.policy.rules().iter().map(Rule::name)).map(str::to_owned);
            return Err(RuleKeyError::NoSuchRule { rule: name, nearest: near });
        };
        let limited = known.limited().ok_or_else(|| RuleKeyError::NoLimit(name.clone()))?;
        if let Some(base) = limited.candidate_for {
            let candidate_for = self.policy.rule(base).name().to_owned();
            return Err(RuleKeyError::Candidate { rule: name, candidate_for });
        }
        let seen = self.policy.see(attributes);
        let missing = |part: &str| RuleKeyError::MissingPart { rule: name.clone(), part: part.to_owned() };
        let mut parts = Vec::new();
        for (part, value) in limited.key.named(&seen) {
            parts.push((part.to_owned(), value.ok_or_else(|| missing(part))?));
        }
        if let Some(part) = limited.key.repeated(&seen).next() {
            return Err(RuleKeyError::RepeatedPart { rule: name, part: part.to_owned() });
        }
        match limited.key.key(&seen) {
            Keyed::By(key) => Ok(NamedKey { rule: known.name.clone(), key, parts }),
            Keyed::Skip | Keyed::Deny => Err(missing("")),
        }
    }
}

impl fmt::Debug for RuleKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RuleKey").field("rule", &self.rule).field("key", &self.key).finish_non_exhaustive()
    }
}
