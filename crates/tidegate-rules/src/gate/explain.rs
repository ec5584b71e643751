//! Explanations of decisions, computed without spending.
//!
//! An explanation evaluates every rule, also those behind the first that denies, and reads states without changing
//! them. It answers why a request was denied, and which rules a request would meet before the policy is in force.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::{Ask, Decision, Limit, StoreError, StoreFuture};

use super::matched_rules::{MatchedRule, Matching, part};
use super::overridden::Overridden;
use super::overrides::Override;
use super::{Gate, InForce};
use crate::attributes::Attributes;
use crate::condition::{Condition, Spellings};
use crate::index::RuleId;
use crate::key::Keyed;
use crate::normalized::NormalizedRequest;
use crate::rule::{GroupId, Mode, Rule, StaticVerdict};

/// The evaluation of every rule for a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// True if the request would be allowed.
    pub is_allowed: bool,
    /// The rule that the decision would report.
    pub rule: Option<String>,
    /// True if no enforced rule applies. The policy's [`unmatched`](crate::Policy::unmatched) is the verdict then.
    pub is_unmatched: bool,
    /// Every rule, in the order of the file.
    pub rules: Vec<RuleExplained>,
}

/// The evaluation of one rule for a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RuleExplained {
    /// The rule.
    pub rule: Rule,
    /// True if the rule applies: all conditions match, those of `unless` do not, no required part of its key is missing,
    /// no override exempts the key, and no other member of its group was chosen.
    pub applies: bool,
    /// The conditions, each with its result.
    pub conditions: Vec<Match>,
    /// The conditions of `unless`, each with its result. If there are any and all hold, the rule does not apply.
    pub unless: Vec<Match>,
    /// The member of its group that was chosen in its place.
    pub chosen_first: Option<String>,
    /// The mode in force now.
    pub mode: Mode,
    /// The parts of its key. A missing part has no value.
    pub key: Vec<(String, Option<String>)>,
    /// The parts of its key for which the request has several values. The rule's `on_repeated` decides what follows.
    pub repeated: Vec<String>,
    /// The limit in force now for this key.
    pub limit: Option<Limit>,
    /// The window of its schedule that is in force now.
    pub window: Option<String>,
    /// The time of the next change of its schedule, in seconds since 1970.
    pub changes_at: Option<i64>,
    /// True if an override is in force for this key.
    pub is_overridden: bool,
    /// The override that is in force for this key.
    pub overridden_by: Option<Override>,
    /// The source of the limit in force for this key; `None` without a limit.
    pub limit_from: Option<LimitSource>,
    /// The cost of the request under this rule.
    pub cost: u64,
    /// The decision that this limit would make on its own.
    pub decision: Option<Decision>,
    /// The rule that it would replace, if it is a candidate.
    pub candidate_for: Option<String>,
}

/// The source of a limit, from the strongest to the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitSource {
    /// An override of the key.
    Override,
    /// The limit of a single value in the rule, `limit_for`.
    LimitFor,
    /// A window of the schedule.
    Schedule,
    /// The limit of the rule.
    Limit,
}

/// A condition, and its result for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The condition, as written in the policy.
    pub condition: String,
    /// The value in the request, normalized as rules see it.
    pub value: Option<String>,
    /// True if the condition matches.
    pub holds: bool,
}

impl Gate {
    /// Evaluates every rule for a request, without spending.
    ///
    /// It costs one read of the store for each rule that applies, so it is for people and not for every request.
    ///
    /// # Errors
    /// The error of a remote store. No fallback explains in its place.
    ///
    /// ```
    /// use tidegate::Zone;
    /// use tidegate::rules::{Attributes, Gate, Policy};
    ///
    /// let text = "[[rule]]\nname = 'login'\nwhen = { path = '/login' }\nkey = ['ip']\nlimit = '5/m'";
    /// let gate = Gate::new(Policy::from_toml(text)?, Zone::new(1 << 20))?;
    /// let explained = gate.explain(&Attributes::new().path("/logout")).now()?;
    /// assert!(explained.is_allowed && !explained.rules[0].applies);
    /// assert_eq!(explained.rules[0].conditions[0].value.as_deref(), Some("/logout"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "peek")]
    #[doc(alias = "dry run")]
    #[doc(alias = "debug")]
    pub fn explain<'a>(&'a self, attributes: &'a Attributes<'_>) -> StoreFuture<'a, Explanation> {
        self.reply(async move {
            let force = self.in_force();
            let seen = force.policy.see(attributes);
            let mut progress = Progress {
                matching: Matching::of(&seen),
                chosen: HashMap::new(),
                is_exempt: false,
                is_matched: false,
            };
            let mut rules = Vec::new();
            for id in (0..).take(force.policy.rules().len()) {
                rules.push(self.explain_rule(&force, id, &seen, attributes, &mut progress).await?);
            }
            without_base(&mut rules);
            Ok(conclude(rules, &progress, force.policy.unmatched()))
        })
    }

    /// Explains one rule. A candidate is explained with the conditions of its rule.
    async fn explain_rule<'s, 'v, 'p>(
        &self,
        force: &'p InForce,
        id: RuleId,
        seen: &'s NormalizedRequest<'v>,
        attributes: &Attributes<'_>,
        progress: &mut Progress<'s, 'v, 'p>,
    ) -> Result<RuleExplained, StoreError> {
        let rule = force.policy.rule(id);
        let base =
            rule.limited().and_then(|limited| limited.candidate_for).map(|base| force.policy.rule(base));
        let matching = base.unwrap_or(rule);
        let results = |conditions: &[Condition], reading| -> Vec<_> {
            conditions.iter().map(|condition| matched(condition, seen, reading)).collect()
        };
        let conditions = results(&matching.conditions, matching.reading());
        let mut explained = RuleExplained {
            applies: conditions.iter().all(|condition| condition.holds) && !matching.is_excepted(seen),
            conditions,
            unless: results(&matching.unless, matching.reading().opposite()),
            chosen_first: None,
            mode: rule.mode(),
            key: Vec::new(),
            repeated: Vec::new(),
            limit: None,
            window: None,
            changes_at: None,
            is_overridden: false,
            overridden_by: None,
            limit_from: None,
            cost: attributes.cost.get(),
            decision: None,
            candidate_for: base.map(|base| base.name().to_owned()),
            rule: rule.clone(),
        };
        let Some(limited) = rule.limited() else { return Ok(explained) };
        let date = self.inner.calendar.now();
        let (terms, window) = limited.now(|| date);
        let named = limited.key.named(seen).into_iter();
        explained.key = named.map(|(name, value)| (name.to_owned(), value)).collect();
        explained.window = window.map(|window| limited.schedule.timetable.windows()[window].to_string());
        explained.changes_at = limited.schedule.timetable.next_change(date);
        (explained.mode, explained.limit) = (terms.mode, Some(terms.limit));
        explained.cost = attributes.cost.get().saturating_mul(terms.cost);
        explained.repeated = limited.key.repeated(seen).map(str::to_owned).collect();
        let overrides = &self.inner.overrides;
        let (overridden, valued) = match limited.key.key(seen) {
            Keyed::By(key) => (overrides.of(rule, &key, || date), force.values.of(rule, &key, || date)),
            Keyed::Skip | Keyed::Deny => (None, None),
        };
        let is_in_force = |found: &Arc<Overridden>| base.is_none() && found.instead(date).is_some();
        explained.overridden_by = overridden.filter(is_in_force).map(|found| found.one().clone());
        explained.is_overridden = explained.overridden_by.is_some();
        explained.limit_from = Some(match &explained.window {
            _ if explained.is_overridden => LimitSource::Override,
            _ if valued.is_some_and(|found| found.instead(date).is_some()) => LimitSource::LimitFor,
            Some(_) if terms.limit != limited.usual.limit => LimitSource::Schedule,
            _ => LimitSource::Limit,
        });
        let now = || date;
        let around = self.circumstances(&now);
        // A rule that does not apply is explained by itself: it is not the first of its group.
        let mut by_itself = Matching::of(seen);
        let matching = if explained.applies { &mut progress.matching } else { &mut by_itself };
        let group = limited.group.as_ref().filter(|_| explained.applies && terms.mode == Mode::Enforce);
        let part = part(force, id, matching, attributes, &around);
        let is_certain = explained.applies && base.is_none() && rule.is_certain(seen);
        if let Some(group) = group
            .filter(|_| is_certain && !matches!(part, Some(MatchedRule::Skipped | MatchedRule::NotChosen)))
        {
            progress.chosen.insert(group.id, rule);
        }
        match part {
            Some(MatchedRule::Counts(asked, mode)) => {
                progress.is_matched |= is_certain && mode == Mode::Enforce;
                let (subject, ask) = (asked.subject(false), asked.ask);
                explained.limit = Some(*asked.limit());
                explained.decision = Some(force.store.store().peek(subject, ask).await?);
            }
            Some(MatchedRule::Denied(..)) => explained.decision = None,
            Some(MatchedRule::NotChosen) => {
                let first = group.and_then(|group| progress.chosen.get(&group.id));
                explained.chosen_first = first.map(|first| first.name().to_owned());
                explained.applies = false;
            }
            Some(MatchedRule::Exempt(mode)) => {
                progress.is_exempt |= explained.applies && mode == Mode::Enforce;
                progress.is_matched |= is_certain && mode == Mode::Enforce;
                explained.applies = false;
            }
            Some(MatchedRule::Skipped) | None => explained.applies = false,
        }
        Ok(explained)
    }
}

/// The rules of a request that were explained so far.
struct Progress<'s, 'v, 'p> {
    matching: Matching<'s, 'v, 'p>,
    /// The chosen member of each group.
    chosen: HashMap<GroupId, &'p Rule>,
    /// True if an override exempts the key of an enforced rule that applies.
    is_exempt: bool,
    /// True if an enforced rule with a limit applies by all readings of the request.
    is_matched: bool,
}

/// Marks the candidates of rules that were not chosen: they are measured only beside their rules.
fn without_base(rules: &mut [RuleExplained]) {
    for place in 0..rules.len() {
        let base = rules[place].rule.candidate_for().and_then(|base| rules.get(base));
        if let Some(chosen_first) = base.and_then(|base| base.chosen_first.clone()) {
            let candidate = &mut rules[place];
            (candidate.applies, candidate.decision) = (false, None);
            candidate.chosen_first = Some(chosen_first);
        }
    }
}

/// Evaluates one condition, with the spelling that decided it.
fn matched(condition: &Condition, seen: &NormalizedRequest<'_>, reading: Spellings) -> Match {
    let value = match condition.attribute() {
        "ip" => seen.ip().map(|ip| ip.to_string()),
        _ => condition.decisive(seen, reading).map(|value| String::from_utf8_lossy(value).into_owned()),
    };
    Match { condition: condition.to_string(), value, holds: condition.holds(seen, reading) }
}

/// Combines the evaluations of all rules into the decision that the gate would make.
fn conclude(
    rules: Vec<RuleExplained>,
    progress: &Progress<'_, '_, '_>,
    unmatched: StaticVerdict,
) -> Explanation {
    let is_unmatched = unmatched == StaticVerdict::Deny && !progress.is_matched;
    let obeyed = || {
        rules.iter().filter(|explained| {
            explained.applies && explained.mode == Mode::Enforce && explained.candidate_for.is_none()
        })
    };
    if obeyed().next().is_none() {
        let (is_allowed, is_unmatched) = (!is_unmatched, is_unmatched || !progress.is_exempt);
        return Explanation { is_allowed, rule: None, is_unmatched, rules };
    }
    let fixed =
        obeyed().find_map(|explained| Some((explained.rule.decision()?, explained.rule.name().to_owned())));
    if let Some((fixed, rule)) = fixed {
        let is_allowed = fixed == StaticVerdict::Allow;
        return Explanation { is_allowed, rule: Some(rule), is_unmatched: false, rules };
    }
    // An override that denies leaves a limit without a decision.
    if let Some(denied) = obeyed().find(|explained| explained.decision.is_none()) {
        let rule = Some(denied.rule.name().to_owned());
        return Explanation { is_allowed: false, rule, is_unmatched: false, rules };
    }
    // Each limit applies by one reading of the request alone, so by another one it is unmatched.
    if is_unmatched {
        return Explanation { is_allowed: false, rule: None, is_unmatched, rules };
    }
    let decisions: Vec<_> = obeyed().filter_map(|explained| explained.decision).collect();
    let is_allowed = decisions.iter().all(Decision::is_allowed);
    let binding = if is_allowed {
        obeyed().min_by(|one, other| (left(one).0 * left(other).1).cmp(&(left(other).0 * left(one).1)))
    } else {
        tidegate_core::Decisions::binding_of(decisions.iter()).and_then(|binding| obeyed().nth(binding))
    };
    let rule = binding.map(|explained| explained.rule.name().to_owned());
    Explanation { is_allowed, rule, is_unmatched: false, rules }
}

/// Returns the quota that would remain after the request, and the limit.
fn left(explained: &RuleExplained) -> (u128, u128) {
    let (remaining, limit) =
        explained.decision.map_or((0, 0), |decision| (decision.remaining(), decision.limit()));
    // An unlimited quota stays unlimited.
    let left = if remaining == u64::MAX { remaining } else { remaining.saturating_sub(explained.cost) };
    (left.into(), limit.max(1).into())
}

impl RuleExplained {
    /// Returns the ask that the request makes of this limit, without a max wait.
    pub fn ask(&self) -> Ask {
        Ask::new(tidegate_core::Cost::new(self.cost).unwrap_or_default())
    }
}
