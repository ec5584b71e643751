//! The limits of single values in a policy, as overrides that no one can change.
//!
//! They belong to the policy and are put in force with it, so a decision never mixes two files. A value that is gone
//! is kept for one refill, for its counts.
//!
//! A candidate has the values of the rule beside which it is measured.

use std::sync::Arc;

use tidegate_core::{Key, Limit};

use super::InForce;
use super::limits::LimitInUse;
use super::overridden::Overridden;
use super::overrides::{ByKey, Instead, Override, ended, find, going_on};
use crate::index::RuleId;
use crate::policy::Policy;
use crate::rule::Rule;

/// The limits of single values in one policy, in effect or ended less than one refill ago.
#[derive(Debug, Default)]
pub(super) struct Values(ByKey);

impl Values {
    /// Returns the limits of single values in a policy. Counts are carried over from those before, as for changed
    /// numbers of a rule, except for rules that moved to another zone.
    pub(super) fn new(policy: &Policy, before: Option<(&Policy, &Values)>, now: i64) -> Values {
        let mut next = ByKey::new();
        let none = ByKey::new();
        let old = before.map_or(&none, |(_, Values(old))| old);
        let zone = |policy: &Policy, rule: &str| policy.named(rule).and_then(Rule::zone).map(str::to_owned);
        let is_in_place = |rule: &str| before.is_some_and(|(old, _)| zone(old, rule) == zone(policy, rule));
        for rule in policy.rules() {
            let Some(limited) = rule.limited() else { continue };
            let base = limited.candidate_for.map_or(rule, |base| policy.rule(base));
            let part = rule.key().next().unwrap_or_default();
            for (value, limit) in base.limit_for() {
                let named = vec![(part.to_owned(), value.to_owned())];
                // Validation has compared the spelling with that of the key.
                let Some(key) = limited.key.key_of_named(&named) else { continue };
                let one = Override::new(rule.name.clone(), named, Instead::Limit(*limit));
                let before = old.get(&rule.name).and_then(|of_rule| of_rule.get(&key));
                let found = going_on(before.filter(|_| is_in_place(rule.name())), &one, now);
                next.entry(rule.name.clone()).or_default().insert(key, found);
            }
        }
        let key_of = |one: &Override| {
            let limited = policy.named(&one.rule).and_then(Rule::limited);
            limited.and_then(|limited| limited.key.key_of_named(&one.key)).ok_or_else(String::new)
        };
        for (key, found) in ended(old, &next, now, key_of) {
            if is_in_place(&found.one().rule) {
                // Requests under the old policy may still return to another limit of the rule, so nothing is shared.
                let found = Arc::new(found.ended_at(now));
                next.entry(found.one().rule.clone()).or_default().insert(key, found);
            }
        }
        Values(next)
    }

    /// Returns the limit of a key's value, if it has one or had one less than one refill ago.
    pub(super) fn of(&self, rule: &Rule, key: &Key, now: impl FnOnce() -> i64) -> Option<Arc<Overridden>> {
        find(&self.0, rule, key, now)
    }
}

impl InForce {
    /// Returns the limit of a key without its override: that of its value or, if it has none, this one of the rule.
    /// `None` if the rule has no limit. Reads the date only if the value has a limit.
    #[inline]
    pub(super) fn limit_of(
        &self,
        id: RuleId,
        of_rule: &Limit,
        key: &Key,
        now: impl Fn() -> i64,
    ) -> Option<LimitInUse<'_>> {
        let of_rule = self.limit(id).now(of_rule)?;
        if self.values.0.is_empty() {
            return Some(of_rule);
        }
        Some(match self.values.of(self.policy.rule(id), key, &now) {
            Some(value) => value.in_place_of(of_rule, now()),
            None => of_rule,
        })
    }
}
