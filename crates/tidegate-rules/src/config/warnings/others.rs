//! Rules that make another one useless or safe: those that decide before it, back it, or are stricter.

use tidegate::{Algorithm, OnStoreFailure, WhenFull};

use super::names::forged;
use crate::key::{OnMissing, Part};
use crate::rule::{Action, Limited, Mode, Rule};

/// So many patterns are compared to find a rule that covers another. There may be thousands of rules, too many to
/// compare each with each: of those that are left nothing is said.
const MAX_COMPARED: usize = 4_000_000;

/// Rules that may make another one useless or safe.
pub(super) struct Others<'r> {
    /// Those that decide, and where they stand.
    deciding: Vec<(usize, &'r Rule)>,
    /// Limits that nobody can get around.
    backing: Vec<&'r Rule>,
    /// Limits that always hold as they are written, and where they stand.
    steady: Vec<(usize, &'r Rule, &'r Limited)>,
    compared: usize,
    /// Pairs of limits that were compared.
    pairs: usize,
}

impl<'r> Others<'r> {
    pub(super) fn of(rules: &'r [Rule]) -> Others<'r> {
        let enforced = || rules.iter().enumerate().filter(|(_, rule)| rule.mode == Mode::Enforce);
        let decides = |rule: &Rule| matches!(rule.action, Action::Decide(_));
        Others {
            deciding: enforced().filter(|(_, rule)| decides(rule)).collect(),
            backing: enforced().map(|(_, rule)| rule).filter(|rule| is_sure(rule)).collect(),
            steady: enforced()
                .filter_map(|(at, rule)| {
                    Some((at, rule, rule.limited().filter(|limited| is_steady(limited))?))
                })
                .collect(),
            compared: 0,
            pairs: 0,
        }
    }

    /// The rule that decides everything which this one is for.
    pub(super) fn hides(&mut self, rule: &Rule, index: usize) -> Option<&'r Rule> {
        let before = match &rule.action {
            // Decisions are looked at in the order of the file, and all of them before any limit.
            Action::Decide(_) => index,
            Action::Limit(limited) if limited.candidate_for.is_some() => 0,
            Action::Limit(_) => usize::MAX,
        };
        let earlier = self.deciding.iter().map_while(|(at, rule)| (*at < before).then_some(*rule));
        let compared = &mut self.compared;
        earlier.into_iter().find(|wide| covers(wide, rule, compared) == Some(true))
    }

    /// A rule that denies whatever this one denies, and before it does. Of two that are alike the first is meant.
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

    /// Whether another limit that nobody can get around counts all that this one is for, as far as is known.
    pub(super) fn back(&mut self, rule: &Rule) -> bool {
        let compared = &mut self.compared;
        self.backing.iter().any(|wide| covers(wide, rule, compared) != Some(false))
    }
}

/// Whether everything that a rule is for is also for another; nothing if too much was compared already.
fn covers(wide: &Rule, narrow: &Rule, compared: &mut usize) -> Option<bool> {
    let patterns =
        |rule: &Rule| rule.conditions.iter().map(|condition| condition.any_of.len()).sum::<usize>();
    *compared = compared.saturating_add(1 + patterns(wide).saturating_add(patterns(narrow)));
    (*compared <= MAX_COMPARED).then(|| wide.covers(narrow))
}

/// Whether nobody can get around a limit.
fn is_sure(rule: &Rule) -> bool {
    rule.limited().is_some_and(|limited| {
        limited.candidate_for.is_none() && !limited.key.parts.is_empty() && forged(limited).next().is_none()
    })
}

/// Whether a limit is the same at all times and whatever becomes of the store.
fn is_steady(limited: &Limited) -> bool {
    limited.schedule.terms.is_empty()
        && limited.candidate_for.is_none()
        && limited.on_store_failure != OnStoreFailure::Open
        && limited.when_full == WhenFull::Share
}

/// Whether requests that a limit counts together are counted together by another one, with the same cost or more.
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

/// Whether all that passes a limit passes another one. Only limits of one algorithm are compared, and windows of one
/// length: of all others it is not known.
fn is_stricter(other: &Limited, limited: &Limited) -> bool {
    let (strict, loose) = (&other.usual.limit, &limited.usual.limit);
    let (few, many) = (strict.numbers(), loose.numbers());
    if strict.algorithm() != loose.algorithm() || strict.counts_denied() || loose.counts_denied() {
        return false;
    }
    match strict.algorithm() {
        // The burst, and the interval at which it comes back.
        Algorithm::TokenBucket => few[0] <= many[0] && few[1] >= many[1],
        // The amount; the period and all that says how it is cut are the same.
        Algorithm::FixedWindow | Algorithm::SlidingLog => few[0] <= many[0] && few[1..3] == many[1..3],
        Algorithm::SlidingWindow => few[0] <= many[0] && few[1..4] == many[1..4],
        // The most in flight, and the lease after which a place is free again.
        Algorithm::Concurrency => few[0] <= many[0] && few[1] >= many[1],
        _ => false,
    }
}
