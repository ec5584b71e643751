//! The rules that match one request, with the ask of each.
//!
//! Matching has two steps. Rules with a decision come first, in the order of the file: the first enforced one ends the
//! matching. Then each rule with a limit computes its key, looks for an override of that key, and contributes one ask.
//! An override that denies ends the matching as a decision does. Of the enforced members of a group only the first with
//! a key takes part; an override that exempts its key does not make room for the next.
//!
//! A request may have several readings, and a limit applies by any of them. What it saves a request from, the other
//! members of its group and the denial of unmatched requests, requires that it applies by all of them.
//!
//! The asks borrow the policy, and two of them fit without an allocation. The last key is kept with its parts, since
//! the rules of one API often count by the same client.

use smallvec::SmallVec;
use tidegate_core::{Ask, Key, Limit, PreparedPenalty, Subject};

use super::InForce;
use super::limits::LimitInUse;
use super::overrides::{Instead, Overrides};
use super::together::Asks;
use super::unknown_attributes::UnknownAttributes;
use crate::attributes::Attributes;
use crate::index::RuleId;
use crate::key::{KeyParts, Keyed};
use crate::normalized::NormalizedRequest;
use crate::rule::{Action, Group, Limited, Mode, Rule, StaticVerdict};

/// A verdict without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixedVerdict {
    /// This rule always decides so.
    Rule(RuleId, StaticVerdict),
    /// An override denies the key of this rule.
    Override(RuleId),
    /// The policy denies requests to which no enforced rule applies.
    Unmatched,
}

/// The rules that match a request, with the ask of each.
///
/// If there is a fixed decision, no limit is evaluated, and the other lists are incomplete.
#[derive(Debug, Default)]
pub(super) struct MatchedRules<'p> {
    /// The verdict without a limit, if there is one.
    pub(super) fixed: Option<FixedVerdict>,
    /// Shadow rules that would deny the request without counting.
    pub(super) refused_in_shadow: Vec<RuleId>,
    pub(super) enforced: SmallVec<[Asked<'p>; 2]>,
    pub(super) shadows: Vec<Asked<'p>>,
}

/// The ask of one rule.
///
/// It has everything that a decision needs, so that the take does not read the policy again.
#[derive(Clone, Debug)]
pub(super) struct Asked<'p> {
    pub(super) id: RuleId,
    pub(super) rule: &'p Rule,
    pub(super) limited: &'p Limited,
    pub(super) key: Key,
    pub(super) limit: LimitInUse<'p>,
    pub(super) ask: Ask,
    pub(super) penalty: Option<&'p PreparedPenalty>,
    /// The weight of each unit of a request's cost.
    pub(super) weight: u64,
    /// The mode in force now.
    pub(super) mode: Mode,
}

/// The inputs of a decision apart from the policy and the request.
///
/// The date is read only if a schedule or an override needs it, and once per request.
pub(super) struct Circumstances<'a> {
    pub(super) overrides: &'a Overrides,
    pub(super) unknown: &'a UnknownAttributes,
    pub(super) now: &'a (dyn Fn() -> i64 + Sync),
}

/// One request while its rules are matched in the order of the file.
///
/// The last key is cached with its parts, because rules often share a key.
#[derive(Debug)]
pub(super) struct Matching<'s, 'v, 'p> {
    seen: &'s NormalizedRequest<'v>,
    last: Option<(&'p KeyParts, Keyed)>,
    chosen: ChosenGroups,
}

/// The groups of which a member has been chosen: a bit for each. Up to 64 groups need no allocation.
#[derive(Debug, Default)]
struct ChosenGroups(SmallVec<[u64; 1]>);

impl ChosenGroups {
    /// Notes that a member of a group has been chosen.
    fn choose(&mut self, group: &Group) {
        let word = group.id as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (group.id % 64);
    }

    /// Returns true if a member of the group has been chosen.
    fn has(&self, group: &Group) -> bool {
        self.0.get(group.id as usize / 64).is_some_and(|word| word >> (group.id % 64) & 1 == 1)
    }
}

impl<'s, 'v, 'p> Matching<'s, 'v, 'p> {
    pub(super) fn of(seen: &'s NormalizedRequest<'v>) -> Matching<'s, 'v, 'p> {
        Matching { seen, last: None, chosen: ChosenGroups::default() }
    }

    /// Returns the key for these parts, computed only if they differ from the last ones.
    fn by(&mut self, parts: &'p KeyParts) -> &Keyed {
        if self.last.as_ref().is_some_and(|(last, _)| *last != parts) {
            self.last = None;
        }
        &self.last.get_or_insert_with(|| (parts, parts.key(self.seen))).1
    }
}

/// The reason why a rule with a limit denies a request without counting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DenialCause {
    /// An override of the key, or of one of the values of a repeated part.
    Override,
    /// A repeated part of the key.
    Repeated,
}

/// The effect of a rule with a limit on a request.
pub(super) enum MatchedRule<'p> {
    /// No effect: a part of the key is missing.
    Skipped,
    /// No effect: another member of its group was chosen.
    NotChosen,
    /// No effect, as an override exempts the key. In its group the rule was chosen, in this mode.
    Exempt(Mode),
    /// The rule denies for this reason, in this mode.
    Denied(DenialCause, Mode),
    /// The rule counts the request, in this mode.
    Counts(Asked<'p>, Mode),
}

impl<'p> MatchedRules<'p> {
    /// Matches all rules that apply to one request.
    pub(super) fn new(
        force: &'p InForce,
        attributes: &Attributes<'_>,
        around: &Circumstances<'_>,
    ) -> MatchedRules<'p> {
        let mut visit = MatchedRules::default();
        visit.match_rules(force, attributes, around);
        visit
    }

    /// Matches each rule that applies, until one has a fixed decision.
    pub(super) fn match_rules(
        &mut self,
        force: &'p InForce,
        attributes: &Attributes<'_>,
        around: &Circumstances<'_>,
    ) {
        let policy = &force.policy;
        let seen = policy.see(attributes);
        if seen.unknown() != 0 {
            around.unknown.note(seen.unknown(), policy, attributes);
        }
        let applying = policy.applying(&seen);
        for id in &applying {
            if let (Action::Decide(fixed), mode) = (&policy.rule(*id).action, policy.rule(*id).mode) {
                match (mode, fixed) {
                    (Mode::Enforce, fixed) => {
                        self.fixed = Some(FixedVerdict::Rule(*id, *fixed));
                        return;
                    }
                    (Mode::Shadow, StaticVerdict::Deny) => self.refused_in_shadow.push(*id),
                    (Mode::Shadow, StaticVerdict::Allow) => {}
                }
            }
        }
        // Where unmatched requests are allowed, it does not matter if a rule applies by all readings.
        let (mut matching, mut is_matched) =
            (Matching::of(&seen), policy.unmatched() == StaticVerdict::Allow);
        for id in applying {
            let is_certain = || policy.rule(id).is_certain(&seen);
            match part(force, id, &mut matching, attributes, around) {
                Some(MatchedRule::Denied(cause, Mode::Enforce)) => {
                    self.fixed = Some(match cause {
                        DenialCause::Override => FixedVerdict::Override(id),
                        DenialCause::Repeated => FixedVerdict::Rule(id, StaticVerdict::Deny),
                    });
                    return;
                }
                Some(MatchedRule::Denied(_, Mode::Shadow)) => self.refused_in_shadow.push(id),
                Some(MatchedRule::Counts(asked, Mode::Enforce)) => {
                    is_matched = is_matched || is_certain();
                    // The prefetch runs while the other rules are matched.
                    force.store.memory().inspect(|zones| zones.prefetch(&asked.subject(false)));
                    self.enforced.push(asked);
                }
                Some(MatchedRule::Counts(asked, Mode::Shadow)) => self.shadows.push(asked),
                Some(MatchedRule::Exempt(mode)) => {
                    is_matched = is_matched || (mode == Mode::Enforce && is_certain());
                }
                Some(MatchedRule::Skipped | MatchedRule::NotChosen) | None => {}
            }
        }
        if !is_matched {
            self.fixed = Some(FixedVerdict::Unmatched);
        }
    }

    /// Appends the asks of the enforced rules, with receipts if they are tracked.
    #[inline]
    pub(super) fn put_asks<'v>(&'v self, is_tracked: bool, asks: &mut Asks<'v>) {
        for asked in &self.enforced {
            asks.push((asked.subject(is_tracked), asked.ask));
        }
    }

    /// Returns true if the request is denied without counting.
    pub(super) fn is_forbidden(&self) -> bool {
        let Some(fixed) = self.fixed else { return false };
        !matches!(fixed, FixedVerdict::Rule(_, StaticVerdict::Allow))
    }

    /// Returns true if a shadow rule or a candidate has to be evaluated or counted.
    pub(super) fn is_measured(&self) -> bool {
        let has_candidates = |asked: &Asked<'_>| !asked.limited.candidates.is_empty();
        !self.shadows.is_empty()
            || !self.refused_in_shadow.is_empty()
            || self.enforced.iter().any(has_candidates)
    }
}

/// Returns the effect of a rule that applies; `None` if it has no limit. The members of a group have to come in the
/// order of the file.
#[inline]
pub(super) fn part<'p>(
    force: &'p InForce,
    id: RuleId,
    matching: &mut Matching<'_, '_, 'p>,
    attributes: &Attributes<'_>,
    around: &Circumstances<'_>,
) -> Option<MatchedRule<'p>> {
    let rule = force.policy.rule(id);
    let limited = rule.limited()?;
    let (terms, _) = limited.now(|| (around.now)());
    // Members in shadow mode are measured like any other shadow rule.
    let group = limited.group.as_ref().filter(|_| terms.mode == Mode::Enforce);
    if group.is_some_and(|group| matching.chosen.has(group)) {
        return Some(MatchedRule::NotChosen);
    }
    let key = match matching.by(&limited.key) {
        Keyed::By(key) => Some(key.clone()),
        Keyed::Skip => return Some(MatchedRule::Skipped),
        Keyed::Deny => None,
    };
    if let Some(group) = group.filter(|_| rule.is_certain(matching.seen)) {
        matching.chosen.choose(group);
    }
    let Some(key) = key else { return Some(MatchedRule::Denied(DenialCause::Repeated, terms.mode)) };
    // A candidate decides nothing, so overrides do not apply to it. The limits of single values do.
    let found = match limited.candidate_for {
        _ if around.overrides.is_empty() => None,
        None if around.overrides.deny_a_value(rule, &limited.key, matching.seen, around.now) => {
            return Some(MatchedRule::Denied(DenialCause::Override, terms.mode));
        }
        None => around.overrides.of(rule, &key, || (around.now)()),
        Some(_) => None,
    };
    let of_rule = force.limit_of(id, &terms.limit, &key, around.now)?;
    let limit = match found {
        None => of_rule,
        Some(found) => match found.instead((around.now)()) {
            None | Some(Instead::Limit(_)) => found.in_place_of(of_rule, (around.now)()),
            Some(Instead::Allow) => return Some(MatchedRule::Exempt(terms.mode)),
            Some(Instead::Deny) => {
                return Some(MatchedRule::Denied(DenialCause::Override, terms.mode));
            }
        },
    };
    let ask = terms.ask(limit.limit(), attributes);
    let (penalty, weight, mode) = (force.penalty(id), terms.cost, terms.mode);
    Some(MatchedRule::Counts(Asked { id, rule, limited, key, limit, ask, penalty, weight, mode }, mode))
}

impl<'p> Asked<'p> {
    /// Returns the limit of all nodes together.
    pub(super) fn limit(&self) -> &Limit {
        self.limit.limit()
    }

    /// Returns the key under its limit, with a receipt for a take if it is tracked.
    #[inline]
    pub(super) fn subject(&self, is_tracked: bool) -> Subject<'_> {
        let subject = self.limit.subject(&self.key).when_full(self.limited.when_full).penalty(self.penalty);
        let subject =
            subject.in_zone(self.limited.zone.as_deref()).on_store_failure(self.limited.on_store_failure);
        if is_tracked { subject.tracked() } else { subject }
    }

    /// Returns the ask of a candidate for this rule.
    pub(super) fn of_candidate(
        &self,
        force: &'p InForce,
        id: RuleId,
        attributes: &Attributes<'_>,
        now: &(dyn Fn() -> i64 + Sync),
    ) -> Option<Asked<'p>> {
        let rule = force.policy.rule(id);
        let limited = rule.limited()?;
        let (terms, _) = limited.now(now);
        let limit = force.limit_of(id, &terms.limit, &self.key, now)?;
        let ask = terms.ask(limit.limit(), attributes);
        let (weight, mode) = (terms.cost, terms.mode);
        let (key, penalty) = (self.key.clone(), force.penalty(id));
        Some(Asked { id, rule, limited, key, limit, ask, penalty, weight, mode })
    }
}
