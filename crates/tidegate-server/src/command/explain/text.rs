//! An explanation for people: the decision, then the rules that apply, then the rules that do not.

use std::fmt;

use tidegate::{Decision, Limit, Verdict};
use tidegate_rules::{
    Admission, Explanation, Match, Mode, OnMissing, OnRepeated, RuleExplained, StaticVerdict,
};

use super::spans::{number, span};
use super::worst_case::WorstCaseRow;
use crate::date;
use crate::explained::disk_bytes_per_key;

/// The length at which a condition is truncated.
const MAX_CONDITION: usize = 100;

/// The explanation of one request.
pub(super) struct Text<'a> {
    /// The decision of all rules.
    pub(super) answer: &'a Admission,
    /// The part of each rule in the decision.
    pub(super) explanation: &'a Explanation,
    /// True if the rules file names a store file.
    pub(super) is_in_file: bool,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = &self.explanation.rules;
        answer(out, self.answer, rules.iter().any(|told| told.applies))?;
        let decides = rules
            .iter()
            .find(|told| told.applies && told.mode == Mode::Enforce && told.rule.decision().is_some());
        let is_first =
            |told: &&RuleExplained| decides.is_none_or(|first| first.rule.name() == told.rule.name());
        let (applying, others): (Vec<_>, Vec<_>) = rules.iter().partition(|told| told.applies);
        let (asked, passed): (Vec<_>, Vec<_>) = applying.into_iter().partition(is_first);
        if !asked.is_empty() {
            out.write_str("\n\napplies:")?;
        }
        asked.into_iter().try_for_each(|told| whole(out, told, self.is_in_file))?;
        let first = decides.map_or("", |first| first.rule.name());
        in_short(out, &format!("would apply, but {first:?} decides first:"), &passed)?;
        in_short(out, "does not apply:", &others)
    }
}

/// Prints rules that do not take part in the decision: their names and conditions.
fn in_short(out: &mut fmt::Formatter<'_>, title: &str, rules: &[&RuleExplained]) -> fmt::Result {
    if !rules.is_empty() {
        write!(out, "\n\n{title}\n")?;
    }
    let wide = rules.iter().map(|told| told.rule.name().len()).max().unwrap_or(0);
    for told in rules {
        for (index, line) in conditions(told).into_iter().enumerate() {
            let name = if index == 0 { told.rule.name() } else { "" };
            write!(out, "\n  {name:wide$}  {line}")?;
        }
    }
    Ok(())
}

/// Prints the decision in one line.
fn answer(out: &mut fmt::Formatter<'_>, answer: &Admission, any_applies: bool) -> fmt::Result {
    let Some(rule) = answer.rule() else {
        let why = if any_applies { "those that apply refuse nobody" } else { "no rule applies" };
        return write!(out, "allowed: {why}");
    };
    let Some(binding) = answer.binding() else {
        let says = if answer.is_forbidden() { "refused" } else { "allowed" };
        return write!(out, "{says}: rule {rule:?} always says so");
    };
    match answer.verdict() {
        Verdict::Allowed { delay } => {
            let delay =
                if delay.is_zero() { String::new() } else { format!(" after a wait of {}", span(delay)) };
            let (left, limit) = (number(binding.decision.remaining()), number(binding.decision.limit()));
            write!(out, "allowed{delay}: {left} of {limit} left under rule {rule:?}")
        }
        Verdict::Denied { retry_after } => {
            write!(out, "refused by rule {rule:?}: it would pass in {}", span(retry_after))
        }
        Verdict::Impossible => write!(
            out,
            "refused by rule {rule:?}: it costs {}, and at most {} can pass at once; no wait would help",
            number(binding.cost),
            number(binding.decision.limit())
        ),
    }
}

/// Prints all details of a rule that takes part in the decision.
fn whole(out: &mut fmt::Formatter<'_>, told: &RuleExplained, is_in_file: bool) -> fmt::Result {
    write!(out, "\n\n  {}", told.rule.name())?;
    for (index, line) in conditions(told).iter().enumerate() {
        field(out, if index == 0 { "when" } else { "" }, line)?;
    }
    if let Some(base) = &told.candidate_for {
        field(out, "mode", &format!("candidate for {base:?}: measured beside it, and refuses nobody"))?;
    } else if told.mode == Mode::Shadow {
        field(out, "mode", "shadow: decides and counts, and refuses nobody")?;
    }
    if let Some(fixed) = told.rule.decision() {
        let says =
            if fixed == StaticVerdict::Allow { "allowed, and no limit is asked" } else { "refused, always" };
        return field(out, "says", says);
    }
    let Some(limit) = &told.limit else { return Ok(()) };
    field(out, "key", &key(told))?;
    field(out, "limit", &format!("{limit}{}", schedule(told)))?;
    if told.cost != 1 {
        field(out, "cost", &number(told.cost))?;
    }
    field(out, "says", &says(told))?;
    field(out, "most", &WorstCaseRow(limit).to_string())?;
    field(out, "memory", &format!("{} bytes per key", number(limit.bytes_per_key() as u64)))?;
    if is_in_file { field(out, "disk", &on_disk(told.rule.name(), limit)) } else { Ok(()) }
}

fn on_disk(rule: &str, limit: &Limit) -> String {
    match disk_bytes_per_key(rule, limit) {
        Some(bytes) => format!("{} bytes per key", number(bytes as u64)),
        None => "more bytes per key than a state file can have; write a smaller limit".to_owned(),
    }
}

/// Returns the conditions, one line each. A condition that is not met is followed by the actual value.
fn conditions(told: &RuleExplained) -> Vec<String> {
    let mut lines: Vec<_> = told.conditions.iter().map(matched).collect();
    let skips = told.rule.on_missing() == OnMissing::Skip && told.conditions.iter().all(|one| one.holds);
    let missing = told.key.iter().find(|(_, value)| value.is_none());
    if let (true, Some((part, _))) = (skips, missing) {
        lines.push(format!("✗ {part} is a part of the key and missing, and on_missing is \"skip\""));
    }
    if lines.is_empty() {
        lines.push("✓ always".to_owned());
    }
    lines
}

fn matched(told: &Match) -> String {
    let mut condition: String = told.condition.chars().take(MAX_CONDITION).collect();
    if condition.len() < told.condition.len() {
        condition.push('…');
    }
    match (&told.value, told.holds) {
        (_, true) => format!("✓ {condition}"),
        (Some(value), false) => format!("✗ {condition}, but it is {value:?}"),
        (None, false) => format!("✗ {condition}, but it is missing"),
    }
}

fn key(told: &RuleExplained) -> String {
    if told.key.is_empty() {
        return "none: all are counted together".to_owned();
    }
    let is_repeated = |name: &String| told.repeated.contains(name);
    let parts = told.key.iter().map(|(name, value)| match value {
        Some(value) => match (is_repeated(name), told.rule.on_repeated()) {
            (false, _) => format!("{name} = {value}"),
            (true, OnRepeated::Share) => format!("{name} is repeated, so counted with all that repeat it"),
            (true, OnRepeated::Deny) => format!("{name} is repeated"),
            (true, OnRepeated::First) => format!("{name} = {value}, the first of several"),
            (true, OnRepeated::Last) => format!("{name} = {value}, the last of several"),
        },
        None => format!("{name} is missing, so counted with all that miss it"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the end of the current limit, if a schedule changes it.
fn schedule(told: &RuleExplained) -> String {
    let until = told.changes_at.map(|date| format!(" until {}", date::written(date)));
    let until = until.unwrap_or_default();
    match &told.window {
        Some(window) => format!("{until}, by the schedule: {window}"),
        None => until,
    }
}

fn says(told: &RuleExplained) -> String {
    let Some(decision) = &told.decision else {
        return match (told.repeated.first(), told.rule.on_repeated()) {
            (Some(part), OnRepeated::Deny) => {
                format!("refused, because {part} is repeated and on_repeated is \"deny\"")
            }
            _ => "refused, by an override".to_owned(),
        };
    };
    let limit = number(decision.limit());
    match Decision::verdict(decision) {
        Verdict::Allowed { delay } if delay.is_zero() => {
            format!("allowed, {} of {limit} are free", number(decision.remaining()))
        }
        Verdict::Allowed { delay } => format!("allowed after a wait of {}", span(delay)),
        Verdict::Denied { retry_after } => format!("refused, would pass in {}", span(retry_after)),
        Verdict::Impossible => format!("refused, at most {limit} can pass at once"),
    }
}

fn field(out: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    write!(out, "\n    {name:<6}  {value}")
}
