//! Interactions between rules: a rule that decides before another, is chosen before it, backs it, or is stricter.

use std::collections::HashMap;

use tidegate_core::{Algorithm, OnStoreFailure, WhenFull};

use super::names::{forged, forged_conditions};
use crate::key::{OnMissing, Part};
use crate::rule::{Action, GroupId, Limited, Mode, Rule};

/// The maximum number of patterns that are compared to find a rule that covers another. Comparing thousands of rules in
/// pairs would take too long; beyond this number no warning is reported.
const MAX_COMPARED: usize = 4_000_000;

/// The rules that may make another one redundant or safe.
pub(super) struct Others<'r> {
    /// The rules with a fixed decision, with their index.
    deciding: Vec<(usize, &'r Rule)>,
    /// The limits that a client cannot bypass.
    backing: Vec<&'r Rule>,
    /// The limits that never change, with their index.
    steady: Vec<(usize, &'r Rule, &'r Limited)>,
    /// The enforced members of each group, with their index.
    members: HashMap<GroupId, Vec<(usize, &'r Rule, &'r Limited)>>,
    compared: usize,
    /// The number of patterns that were compared within groups.
    compared_in_groups: usize,
    /// The number of pairs of limits that were compared.
    pairs: usize,
}

impl<'r> Others<'r> {
    pub(super) fn of(rules: &'r [Rule]) -> Others<'r> {
        let enforced = || rules.iter().enumerate().filter(|(_, rule)| rule.mode == Mode::Enforce);
        let decides = |rule: &Rule| matches!(rule.action, Action::Decide(_));
        let mut members: HashMap<GroupId, Vec<_>> = HashMap::new();
        for (at, rule) in enforced() {
            if let (Some(group), Some(limited)) = (rule.group_id(), rule.limited())
                && limited.is_always_enforced()
            {
                members.entry(group).or_default().push((at, rule, limited));
            }
        }
        Others {
            members,
            deciding: enforced().filter(|(_, rule)| decides(rule)).collect(),
            backing: enforced().map(|(_, rule)| rule).filter(|rule| is_sure(rule)).collect(),
            steady: enforced()
                .filter_map(|(at, rule)| {
                    Some((at, rule, rule.limited().filter(|limited| is_steady(limited))?))
                })
                .collect(),
            compared: 0,
            compared_in_groups: 0,
            pairs: 0,
        }
    }

    /// Returns the rule whose fixed decision applies to every request of this rule.
    pub(super) fn hides(&mut self, rule: &Rule, index: usize) -> Option<&'r Rule> {
        let before = match &rule.action {
            // Fixed decisions are evaluated in the order of the file, and before any limit.
            Action::Decide(_) => index,
            Action::Limit(limited) if limited.candidate_for.is_some() => 0,
            Action::Limit(_) => usize::MAX,
        };
        let earlier = self.deciding.iter().map_while(|(at, rule)| (*at < before).then_some(*rule));
        let compared = &mut self.compared;
        earlier.into_iter().find(|wide| covers(wide, rule, compared) == Some(true))
    }

    /// Returns the member of the rule's group that is chosen before it for every one of its requests.
    pub(super) fn chosen_before(&mut self, rule: &Rule, index: usize) -> Option<&'r Rule> {
        let (group, limited) = (rule.group_id()?, rule.limited()?);
        if limited.all_terms().all(|terms| terms.mode == Mode::Shadow) {
            return None;
        }
        let earlier = self.members.get(&group)?.iter().take_while(|(at, ..)| *at < index);
        let compared = &mut self.compared_in_groups;
        let mut is_chosen = |wide: &Rule, of_wide: &Limited| {
            has_key_of(of_wide, limited) && covers(wide, rule, compared) == Some(true)
        };
        earlier.copied().find(|(_, wide, of_wide)| is_chosen(wide, of_wide)).map(|(_, wide, _)| wide)
    }

    /// Returns a rule that denies everything that this one denies, and earlier. Of two equal rules it returns the
    /// first.
    pub(super) fn binds_before(&mut self, rule: &Rule, index: usize) -> Option<&'r Rule> {
        let limited = rule.limited().filter(|limited| is_steady(limited) && rule.mode == Mode::Enforce)?;
        let (compared, pairs) = (&mut self.compared, &mut self.pairs);
        let mut is_stricter_than = |at: usize, wide: &Rule, other: &Limited| {
            *pairs += 1;
            *pairs <= MAX_COMPARED
                && at != index
                && counts_at_least(other, limited)
                && is_stricter(other, limited)
                && covers(wide, rule, compared) == Some(true)
                && (at < index || !(is_stricter(limited, other) && rule.covers(wide)))
        };
        let found = self.steady.iter().find(|(at, wide, other)| is_stricter_than(*at, wide, other));
        found.map(|(_, rule, _)| *rule)
    }

    /// Returns true if another limit that a client cannot bypass may count all requests of this rule. Of a group only one
    /// member counts a request, so the other members back none.
    pub(super) fn back(&mut self, rule: &Rule) -> bool {
        let compared = &mut self.compared;
        let mut backing = self.backing.iter().filter(|wide| !are_alternatives(wide, rule));
        backing.any(|wide| covers(wide, rule, compared) != Some(false))
    }

    /// Returns true if such a limit applies also to requests that do not meet conditions which a client can choose.
    pub(super) fn back_without_conditions(&mut self, rule: &Rule) -> bool {
        let compared = &mut self.compared;
        let is_sure = |wide: &Rule| forged_conditions(wide).next().is_none();
        let mut backing = self.backing.iter().filter(|wide| is_sure(wide) && !are_alternatives(wide, rule));
        backing.any(|wide| covers(wide, rule, compared) != Some(false))
    }
}

/// Returns true if two rules are members of one group.
fn are_alternatives(one: &Rule, other: &Rule) -> bool {
    one.group_id().is_some() && one.group_id() == other.group_id()
}

/// Returns true if a request that has all parts of a rule's key, as far as it requires them, has those of another rule.
fn has_key_of(wide: &Limited, narrow: &Limited) -> bool {
    let has_part = |part: &Part| narrow.key.parts.iter().any(|known| known.slot == part.slot);
    wide.key.on_missing == OnMissing::Share
        || wide.key.parts.is_empty()
        || (narrow.key.on_missing == OnMissing::Skip && wide.key.parts.iter().all(has_part))
}

/// Returns true if one rule covers another; `None` after too many comparisons.
fn covers(wide: &Rule, narrow: &Rule, compared: &mut usize) -> Option<bool> {
    let patterns = |rule: &Rule| {
        let conditions = rule.conditions.iter().chain(&rule.unless);
        conditions.map(|condition| condition.any_of.len()).sum::<usize>()
    };
    *compared = compared.saturating_add(1 + patterns(wide).saturating_add(patterns(narrow)));
    (*compared <= MAX_COMPARED).then(|| wide.covers(narrow))
}

/// Returns true if a client cannot bypass the limit.
fn is_sure(rule: &Rule) -> bool {
    rule.limited().is_some_and(|limited| {
        let has_key = limited.candidate_for.is_none() && !limited.key.parts.is_empty();
        has_key && forged(rule, limited).next().is_none()
    })
}

/// Returns true if a limit is the same at all times and in every state of the store. The limit of a group is not: which
/// member decides depends on the request.
fn is_steady(limited: &Limited) -> bool {
    limited.schedule.terms.is_empty()
        && limited.candidate_for.is_none()
        && limited.group.is_none()
        && limited.penalty.is_none()
        && limited.on_store_failure != OnStoreFailure::Open
        && limited.when_full == WhenFull::Share
}

/// Returns true if requests that share a key under one limit also share a key under the other, at the same or a higher
/// cost.
fn counts_at_least(other: &Limited, limited: &Limited) -> bool {
    let (wide, narrow) = (&other.key, &limited.key);
    let has_part = |part: &Part| narrow.parts.iter().any(|known| known.slot == part.slot);
    let (own, theirs) = (narrow.grouping, wide.grouping);
    wide.parts.iter().all(has_part)
        && theirs.ipv4_bits <= own.ipv4_bits
        && theirs.ipv6_bits <= own.ipv6_bits
        && (wide.on_missing == OnMissing::Share || wide == narrow)
        && (wide.parts.is_empty() || wide.on_repeated == narrow.on_repeated)
        && other.usual.cost >= limited.usual.cost
        && other.on_store_failure == limited.on_store_failure
}

/// Returns true if one limit allows at most what the other allows. Only limits of one algorithm and windows of one
/// length are comparable; all others yield false.
fn is_stricter(other: &Limited, limited: &Limited) -> bool {
    let (strict, loose) = (&other.usual.limit, &limited.usual.limit);
    let (few, many) = (strict.numbers(), loose.numbers());
    if strict.algorithm() != loose.algorithm() || strict.counts_denied() || loose.counts_denied() {
        return false;
    }
    match strict.algorithm() {
        // The burst, and the interval in which a token refills.
        Algorithm::TokenBucket => few[0] <= many[0] && few[1] >= many[1],
        // The amount. The period and the alignment or slots, or the unit, the first day and the zone are the same.
        Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::Calendar => {
            few[0] <= many[0] && few[1..3] == many[1..3]
        }
        Algorithm::SlidingWindow => few[0] <= many[0] && few[1..4] == many[1..4],
        // The concurrency limit, and the lease after which a permit expires.
        Algorithm::Concurrency => few[0] <= many[0] && few[1] >= many[1],
        _ => false,
    }
}
