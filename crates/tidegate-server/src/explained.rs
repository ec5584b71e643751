//! The explanation of a decision, serialized for programs. HTTP and the command line share it.
//!
//! `POST /v1/explain` and `tidegate explain --json` print this type, so both have the same members. Explaining
//! spends nothing. Spans are whole milliseconds, rounded up; dates are RFC 3339 text.

use std::time::Duration;

use serde::ser::{Serialize, Serializer};
use tidegate::{Limit, WorstCase};
use tidegate_rules::{
    Explanation, Instead, LimitSource, Match, Mode, Override, Rule, RuleExplained, StaticVerdict,
};
use tidegate_support::{in_ms, retry_after};

use crate::date;
use crate::decision_fields;
use crate::penalty::{self, PenaltyFields};

/// The explanation of a decision: the verdict, and the part of every rule.
///
/// It borrows from the explanation of the gate, and copies only what has to be formatted.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Explained<'a> {
    /// The verdict of all enforced rules together.
    allowed: bool,
    /// The rule that the reply would name.
    rule: Option<&'a str>,
    /// True if no enforced rule applies: `unmatched` of `[rules]` is the verdict then.
    unmatched: bool,
    /// Every rule of the policy in the order of the file, also those that do not apply.
    rules: Vec<RulePart<'a>>,
}

/// The part of one rule in a decision.
#[derive(Debug, serde::Serialize)]
struct RulePart<'a> {
    /// The name of the rule.
    name: &'a str,
    /// True if all conditions are met and no key part makes the rule skip the request.
    applies: bool,
    /// The conditions with the value that the request has.
    when: Vec<Condition<'a>>,
    /// The conditions of `unless`. If there are any and all are met, the rule does not apply.
    unless: Vec<Condition<'a>>,
    /// The group of the rule.
    group: Option<&'a str>,
    /// The member of the group that was chosen in place of this rule.
    chosen_first: Option<&'a str>,
    /// `enforce` or `shadow`, at the date of the decision: a schedule window can change it.
    mode: &'static str,
    /// The static verdict, for a rule without a limit.
    decision: Option<&'static str>,
    /// The key parts with their values; `None` for a part that the request does not have.
    key: Parts<'a, Option<String>>,
    /// The key parts of which the request has several values.
    repeated: &'a [String],
    /// The limit in force, with schedule and override applied.
    limit: Option<String>,
    /// The schedule window that is active, if any.
    window: Option<&'a str>,
    /// The next date at which a schedule changes the limit.
    changes_at: Option<String>,
    /// The source of the limit: `override`, `limit_for`, `schedule` or `limit`; `None` without a limit.
    limit_from: Option<&'static str>,
    /// True if an override of this key replaces the limit or the decision.
    overridden: bool,
    /// That override; `None` if there is none.
    #[serde(rename = "override")]
    overridden_by: Option<OverrideFields<'a>>,
    /// The penalty of the rule; `None` if it has none.
    penalty: Option<PenaltyFields>,
    /// The units that the request costs under this rule: the cost of the rule, multiplied by that of the request.
    cost: u64,
    /// The largest cost that would pass now; `None` without a limit.
    remaining: Option<u64>,
    /// Milliseconds until the request passes this rule; `None` if it passes now, or never.
    retry_after_ms: Option<u64>,
    /// Milliseconds until the quota of the key is full again.
    reset_after_ms: Option<u64>,
    /// The verdict of this rule alone; `None` if it does not apply.
    allowed: Option<bool>,
    /// `in_force` if the key is banned, `begun` if the request would begin a ban; `None` otherwise.
    ban: Option<&'static str>,
    /// The rule that this one is measured beside, for a candidate.
    candidate_for: Option<&'a str>,
    /// The worst case of the limit, for capacity planning.
    worst_case: Option<WorstCaseFields>,
}

/// The override that is in force for a key.
#[derive(Debug, serde::Serialize)]
struct OverrideFields<'a> {
    /// The limit in place of that of the rule.
    limit: Option<String>,
    /// `allow` or `deny`, in place of the limit.
    decision: Option<&'static str>,
    /// The end; `None` if there is none.
    until: Option<String>,
    /// The author.
    by: Option<&'a str>,
}

impl<'a> From<&'a Override> for OverrideFields<'a> {
    fn from(one: &'a Override) -> OverrideFields<'a> {
        let (limit, decision) = match one.instead {
            Instead::Limit(limit) => (Some(limit.to_string()), None),
            Instead::Allow => (None, Some("allow")),
            Instead::Deny => (None, Some("deny")),
        };
        OverrideFields { limit, decision, until: one.until.map(date::written), by: one.by.as_deref() }
    }
}

/// One condition of a rule, and its result for this request.
#[derive(Debug, serde::Serialize)]
struct Condition<'a> {
    /// The condition as in the file.
    condition: &'a str,
    /// The value of the attribute; `None` if the request does not have it.
    value: Option<&'a str>,
    /// True if the condition is met. A condition on a missing attribute is not met, except for `{ missing = true }`.
    holds: bool,
}

/// Named parts of a key.
///
/// Serialized as an object in the order of the rule's key.
#[derive(Debug)]
pub(crate) struct Parts<'a, T>(pub(crate) &'a [(String, T)]);

/// The worst case of a limit: the most that it allows in any interval of a length, and the memory of a key.
#[derive(Debug, serde::Serialize)]
struct WorstCaseFields {
    /// The most at one instant; for a concurrency limit, the most in flight.
    instant: Option<u64>,
    /// The most in any second.
    second: Option<u64>,
    /// The most in any minute.
    minute: Option<u64>,
    /// The most in the time after which the quota is full again.
    period: Option<u64>,
    /// The most bytes of memory that one key takes, with its strikes and its ban.
    bytes_per_key: usize,
    /// The bytes of a key in the files of the store; `None` without a file.
    disk_bytes_per_key: Option<usize>,
}

impl<'a> Explained<'a> {
    /// Creates the explanation of a server whose store is in a file (`is_in_file`) or in memory.
    pub(crate) fn new(explanation: &'a Explanation, is_in_file: bool) -> Explained<'a> {
        Explained {
            allowed: explanation.is_allowed,
            rule: explanation.rule.as_deref(),
            unmatched: explanation.is_unmatched,
            rules: explanation.rules.iter().map(|explained| RulePart::new(explained, is_in_file)).collect(),
        }
    }
}

impl<'a> RulePart<'a> {
    /// Creates the part of one rule. The bytes on disk are computed only if the store is in a file.
    fn new(explained: &'a RuleExplained, is_in_file: bool) -> RulePart<'a> {
        RulePart {
            name: explained.rule.name(),
            applies: explained.applies,
            when: explained.conditions.iter().map(condition).collect(),
            unless: explained.unless.iter().map(condition).collect(),
            group: explained.rule.group(),
            chosen_first: explained.chosen_first.as_deref(),
            mode: mode(explained.mode),
            decision: explained.rule.decision().map(decision),
            key: Parts(&explained.key),
            repeated: &explained.repeated,
            limit: explained.limit.map(|limit| limit.to_string()),
            window: explained.window.as_deref(),
            changes_at: explained.changes_at.map(date::written),
            limit_from: explained.limit_from.map(limit_from),
            overridden: explained.is_overridden,
            overridden_by: explained.overridden_by.as_ref().map(OverrideFields::from),
            penalty: explained.rule.penalty().map(PenaltyFields::from),
            cost: explained.cost,
            remaining: explained.decision.map(|decision| decision.remaining()),
            retry_after_ms: explained.decision.as_ref().and_then(retry_after).map(in_ms),
            reset_after_ms: explained.decision.map(|decision| in_ms(decision.reset_after_in_ticks())),
            allowed: allowed(explained),
            ban: explained.decision.and_then(|decision| decision.ban()).map(decision_fields::ban),
            candidate_for: explained.candidate_for.as_deref(),
            worst_case: explained.limit.as_ref().map(|limit| {
                let disk = is_in_file.then(|| disk_bytes_per_key(&explained.rule, limit)).flatten();
                WorstCaseFields::new(limit, bytes_per_key(&explained.rule, limit), disk)
            }),
        }
    }
}

/// Returns the verdict of a rule alone. A denying override has a limit and no decision.
fn allowed(explained: &RuleExplained) -> Option<bool> {
    let decided = explained.rule.decision().map(|fixed| fixed == StaticVerdict::Allow);
    let counted = || explained.decision.is_some_and(|decision| decision.is_allowed());
    explained.applies.then(|| decided.unwrap_or_else(counted))
}

/// Returns the word for the source of a limit.
fn limit_from(source: LimitSource) -> &'static str {
    match source {
        LimitSource::Override => "override",
        LimitSource::LimitFor => "limit_for",
        LimitSource::Schedule => "schedule",
        // The library may get more sources.
        _ => "limit",
    }
}

/// Returns a condition with its result.
fn condition(matched: &Match) -> Condition<'_> {
    Condition { condition: &matched.condition, value: matched.value.as_deref(), holds: matched.holds }
}

impl WorstCaseFields {
    /// Computes the worst case of a limit.
    fn new(limit: &Limit, bytes_per_key: usize, disk_bytes_per_key: Option<usize>) -> WorstCaseFields {
        WorstCaseFields {
            instant: match limit.worst_case(Duration::ZERO) {
                WorstCase::InFlight(most) => Some(most),
                most => units(most),
            },
            second: units(limit.worst_case_trailing(tidegate::SECOND)),
            minute: units(limit.worst_case_trailing(tidegate::MINUTE)),
            period: units(limit.worst_case_trailing(limit.time_to_full())),
            bytes_per_key,
            disk_bytes_per_key,
        }
    }
}

impl<T: Serialize> Serialize for Parts<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Returns the word for a mode.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Shadow => "shadow",
    }
}

/// Returns the word for a static verdict.
pub(crate) fn decision(fixed: StaticVerdict) -> &'static str {
    match fixed {
        StaticVerdict::Allow => "allow",
        StaticVerdict::Deny => "deny",
    }
}

/// The assumed length of a key where none is known: an IPv6 address or a UUID with its framing.
const USUAL_KEY_BYTES: usize = 24;

/// Returns the most bytes that one key of a rule takes in the store under this limit, with its strikes and its ban.
pub(crate) fn bytes_per_key(rule: &Rule, limit: &Limit) -> usize {
    limit.bytes_per_key() + penalty::states(rule).map(|(_, state)| state.bytes_per_key()).sum::<usize>()
}

/// Returns the most bytes that one key of a rule takes in the files of the store. Returns `None` if that exceeds a
/// state file.
///
/// The length of the rule's name counts, since it is a part of the stored key.
pub(crate) fn disk_bytes_per_key(rule: &Rule, limit: &Limit) -> Option<usize> {
    let on_disk = |name: usize, limit: &Limit| limit.file_bytes_per_key(name + USUAL_KEY_BYTES);
    penalty::states(rule)
        .map(|(suffix, state)| on_disk(rule.name().len() + suffix.len(), &state))
        .try_fold(on_disk(rule.name().len(), limit)?, |sum, bytes| Some(sum + bytes?))
}

/// Returns the number of units, if it does not depend on the cost of requests.
fn units(most: WorstCase) -> Option<u64> {
    match most {
        WorstCase::Units(units) => Some(units),
        _ => None,
    }
}
