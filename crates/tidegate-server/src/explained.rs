//! Why a request would be answered as it would be, for programs: the same over HTTP and on the command line.

use std::time::Duration;

use serde::ser::{Serialize, Serializer};
use tidegate::{Limit, Most};
use tidegate_rules::{Explanation, Fixed, Match, Mode, RuleExplained};
use tidegate_support::{in_ms, retry_after};

use crate::date;

/// What every rule has to do with a request.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Explained<'a> {
    allowed: bool,
    /// The rule that the answer would speak of.
    rule: Option<&'a str>,
    rules: Vec<OfRule<'a>>,
}

/// What one rule has to do with it.
#[derive(Debug, serde::Serialize)]
struct OfRule<'a> {
    name: &'a str,
    applies: bool,
    when: Vec<Condition<'a>>,
    mode: &'static str,
    decision: Option<&'static str>,
    key: Parts<'a, Option<String>>,
    /// The parts of the key of which the request has several values.
    repeated: &'a [String],
    limit: Option<String>,
    window: Option<&'a str>,
    changes_at: Option<String>,
    overridden: bool,
    cost: u64,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_after_ms: Option<u64>,
    /// What it would say by itself; nothing if it has no say.
    allowed: Option<bool>,
    candidate_for: Option<&'a str>,
    worst_case: Option<WorstCase>,
}

#[derive(Debug, serde::Serialize)]
struct Condition<'a> {
    condition: &'a str,
    value: Option<&'a str>,
    holds: bool,
}

/// The parts of a key by name.
#[derive(Debug)]
pub(crate) struct Parts<'a, T>(pub(crate) &'a [(String, T)]);

/// The most that a limit lets pass in any span of a length, and what a key takes of the store.
#[derive(Debug, serde::Serialize)]
struct WorstCase {
    instant: Option<u64>,
    second: Option<u64>,
    minute: Option<u64>,
    /// The time in which all is regained.
    period: Option<u64>,
    bytes_per_key: usize,
    /// The bytes of a key in the files of the store; none without a file.
    disk_bytes_per_key: Option<usize>,
}

impl<'a> Explained<'a> {
    /// The explanation of a server whose store is in a file, or is not.
    pub(crate) fn new(explanation: &'a Explanation, is_in_file: bool) -> Explained<'a> {
        Explained {
            allowed: explanation.is_allowed,
            rule: explanation.rule.as_deref(),
            rules: explanation.rules.iter().map(|told| OfRule::new(told, is_in_file)).collect(),
        }
    }
}

impl<'a> OfRule<'a> {
    fn new(told: &'a RuleExplained, is_in_file: bool) -> OfRule<'a> {
        OfRule {
            name: told.rule.name(),
            applies: told.applies,
            when: told.conditions.iter().map(condition).collect(),
            mode: mode(told.mode),
            decision: told.rule.decision().map(decision),
            key: Parts(&told.key),
            repeated: &told.repeated,
            limit: told.limit.map(|limit| limit.to_string()),
            window: told.window.as_deref(),
            changes_at: told.changes_at.map(date::written),
            overridden: told.is_overridden,
            cost: told.cost,
            remaining: told.decision.map(|decision| decision.remaining()),
            retry_after_ms: told.decision.as_ref().and_then(retry_after).map(in_ms),
            reset_after_ms: told.decision.map(|decision| in_ms(decision.reset_after_in_ticks())),
            allowed: allowed(told),
            candidate_for: told.candidate_for.as_deref(),
            worst_case: told.limit.as_ref().map(|limit| {
                let disk = is_in_file.then(|| disk_bytes_per_key(told.rule.name(), limit)).flatten();
                WorstCase::new(limit, disk)
            }),
        }
    }
}

/// What a rule would say by itself. An override that refuses leaves a limit without a decision.
fn allowed(told: &RuleExplained) -> Option<bool> {
    let decided = told.rule.decision().map(|fixed| fixed == Fixed::Allow);
    let counted = || told.decision.is_some_and(|decision| decision.is_allowed());
    told.applies.then(|| decided.unwrap_or_else(counted))
}

fn condition(matched: &Match) -> Condition<'_> {
    Condition { condition: &matched.condition, value: matched.value.as_deref(), holds: matched.holds }
}

impl WorstCase {
    fn new(limit: &Limit, disk_bytes_per_key: Option<usize>) -> WorstCase {
        WorstCase {
            instant: match limit.most_in(Duration::ZERO) {
                Most::InFlight(most) => Some(most),
                most => units(most),
            },
            second: units(limit.most_in_trailing(tidegate::SECOND)),
            minute: units(limit.most_in_trailing(tidegate::MINUTE)),
            period: units(limit.most_in_trailing(limit.regained_in())),
            bytes_per_key: limit.bytes_per_key(),
            disk_bytes_per_key,
        }
    }
}

impl<T: Serialize> Serialize for Parts<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The word for whether a rule is obeyed.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Shadow => "shadow",
    }
}

/// The word for what a rule always says.
pub(crate) fn decision(fixed: Fixed) -> &'static str {
    match fixed {
        Fixed::Allow => "allow",
        Fixed::Deny => "deny",
    }
}

/// The bytes of a key that are assumed where none is known: an IPv6 address or a UUID, and what frames it.
const USUAL_KEY_BYTES: usize = 24;

/// The bytes that one key of a rule takes in the files of the store, at most. None if that is more than a state file
/// can have.
pub(crate) fn disk_bytes_per_key(rule: &str, limit: &Limit) -> Option<usize> {
    limit.file_bytes_per_key(rule.len() + USUAL_KEY_BYTES)
}

/// A number, if there is one whatever each request costs.
fn units(most: Most) -> Option<u64> {
    match most {
        Most::Units(units) => Some(units),
        _ => None,
    }
}
