//! An explanation for people: the decision, then the rules that apply, then the rules that do not.
//!
//! ```text
//!   denied by rule "api": it would pass in 1s
//!
//!   applies:
//!
//!     api
//!       when    ✓ path = "/api/{*rest}"
//!       limit   10/s burst 20
//!       ...
//!
//!   does not apply:
//!
//!     login   ✗ method = "POST", but it is "GET"
//! ```

use std::fmt;

use tidegate::{Ban, Decision, Limit, Verdict};
use tidegate_rules::{
    Admission, Explanation, Instead, LimitSource, Match, Mode, OnMissing, OnRepeated, Override, Rule,
    RuleExplained, StaticVerdict,
};

use super::worst_case::WorstCaseRow;
use crate::date;
use crate::explained::{bytes_per_key, disk_bytes_per_key};
use crate::penalty::Strikes;
use crate::spans::{number, span};

/// The length at which a condition is truncated.
const MAX_CONDITION: usize = 100;

/// The explanation of one request.
///
/// Rules that apply are shown with all details. Rules after a static decision, and rules that do not apply, are
/// shown with their conditions only.
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
        answer(out, self.answer, rules.iter().any(|explained| explained.applies))?;
        let decides = rules.iter().find(|explained| {
            explained.applies && explained.mode == Mode::Enforce && explained.rule.decision().is_some()
        });
        let is_first = |explained: &&RuleExplained| {
            decides.is_none_or(|first| first.rule.name() == explained.rule.name())
        };
        let (applying, others): (Vec<_>, Vec<_>) = rules.iter().partition(|explained| explained.applies);
        let (asked, passed): (Vec<_>, Vec<_>) = applying.into_iter().partition(is_first);
        if !asked.is_empty() {
            out.write_str("\n\napplies:")?;
        }
        asked.into_iter().try_for_each(|explained| whole(out, explained, self.is_in_file))?;
        let first = decides.map_or("", |first| first.rule.name());
        in_short(out, &format!("would apply, but {first:?} decides first:"), &passed)?;
        in_short(out, "does not apply:", &others)
    }
}

/// Prints rules that do not take part in the decision: their names and conditions.
///
/// The names are aligned, and each further condition has a line of its own.
fn in_short(out: &mut fmt::Formatter<'_>, title: &str, rules: &[&RuleExplained]) -> fmt::Result {
    if !rules.is_empty() {
        write!(out, "\n\n{title}\n")?;
    }
    let wide = rules.iter().map(|explained| explained.rule.name().len()).max().unwrap_or(0);
    for explained in rules {
        for (index, line) in conditions(explained).into_iter().enumerate() {
            let name = if index == 0 { explained.rule.name() } else { "" };
            write!(out, "\n  {name:wide$}  {line}")?;
        }
    }
    Ok(())
}

/// Prints the decision in one line.
///
/// It names the binding rule, and the wait or the remaining quota.
fn answer(out: &mut fmt::Formatter<'_>, answer: &Admission, any_applies: bool) -> fmt::Result {
    let Some(rule) = answer.rule() else {
        if answer.is_unmatched() {
            let why = if any_applies { "no rule that applies is enforced" } else { "no rule applies" };
            return write!(out, "denied: {why}, and [rules] has unmatched = \"deny\"");
        }
        let why = if any_applies { "no rule that applies is enforced" } else { "no rule applies" };
        return write!(out, "allowed: {why}");
    };
    let Some(binding) = answer.binding() else {
        if answer.is_overridden() {
            return write!(out, "denied by rule {rule:?}: an override of this key denies it");
        }
        let (says, does) = if answer.is_forbidden() { ("denied", "denies") } else { ("allowed", "allows") };
        return write!(out, "{says}: rule {rule:?} always {does}");
    };
    match answer.verdict() {
        Verdict::Allowed { delay } => {
            let delay =
                if delay.is_zero() { String::new() } else { format!(" after a wait of {}", span(delay)) };
            let (left, limit) = (number(binding.decision.remaining()), number(binding.decision.limit()));
            write!(out, "allowed{delay}: {left} of {limit} left under rule {rule:?}")
        }
        Verdict::Denied { retry_after } => {
            write!(out, "denied by rule {rule:?}: it would pass in {}", span(retry_after))
        }
        Verdict::Impossible => write!(
            out,
            "denied by rule {rule:?}: it costs {}, and at most {} can pass at once; no wait would help",
            number(binding.cost),
            number(binding.decision.limit())
        ),
    }
}

/// Prints all details of a rule that takes part in the decision.
///
/// A rule with a static decision has no key and no limit, so only its verdict follows its conditions.
fn whole(out: &mut fmt::Formatter<'_>, explained: &RuleExplained, is_in_file: bool) -> fmt::Result {
    write!(out, "\n\n  {}", explained.rule.name())?;
    let penalty = explained.rule.penalty();
    let wide = if penalty.is_some() { "penalty".len() } else { "memory".len() };
    let mut field = |name: &str, value: &str| write!(out, "\n    {name:<wide$}  {value}");
    for (index, line) in conditions(explained).iter().enumerate() {
        field(if index == 0 { "when" } else { "" }, line)?;
    }
    if let Some(base) = &explained.candidate_for {
        field("mode", &format!("candidate for {base:?}: measured and never enforced"))?;
    } else if explained.mode == Mode::Shadow {
        field("mode", "shadow: decides and counts, and is not enforced")?;
    }
    if let Some(fixed) = explained.rule.decision() {
        let says =
            if fixed == StaticVerdict::Allow { "allowed, and no limit is checked" } else { "denied, always" };
        return field("says", says);
    }
    let Some(limit) = &explained.limit else { return Ok(()) };
    field("key", &key(explained))?;
    field("limit", &format!("{limit}{}", schedule(explained)))?;
    if let Some(penalty) = penalty {
        field("penalty", &format!("after {}, banned for {}", Strikes(&penalty), span(penalty.lasts)))?;
    }
    if explained.cost != 1 {
        field("cost", &number(explained.cost))?;
    }
    field("says", &says(explained))?;
    field("most", &WorstCaseRow(limit).to_string())?;
    field("memory", &format!("{} bytes per key", number(bytes_per_key(&explained.rule, limit) as u64)))?;
    if is_in_file { field("disk", &on_disk(&explained.rule, limit)) } else { Ok(()) }
}

/// Returns the bytes of a key on disk, as text.
fn on_disk(rule: &Rule, limit: &Limit) -> String {
    match disk_bytes_per_key(rule, limit) {
        Some(bytes) => format!("{} bytes per key", number(bytes as u64)),
        None => "more bytes per key than a state file can have; write a smaller limit".to_owned(),
    }
}

/// Returns the conditions, one line each. A condition that is not met is followed by the actual value.
///
/// A key part that is missing counts as a condition if `on_missing` is `skip`. A rule without conditions always
/// applies.
fn conditions(explained: &RuleExplained) -> Vec<String> {
    let mut lines: Vec<_> = explained.conditions.iter().map(matched).collect();
    lines.extend(exception(&explained.unless));
    if let (Some(first), Some(group)) = (&explained.chosen_first, explained.rule.group()) {
        lines.push(format!("✗ group {group:?}: rule {first:?} was chosen first"));
        return lines;
    }
    if let (Some(first), Some(base)) = (&explained.chosen_first, &explained.candidate_for) {
        lines.push(format!("✗ rule {first:?} was chosen before {base:?}"));
        return lines;
    }
    let is_excepted = !explained.unless.is_empty() && explained.unless.iter().all(|one| one.holds);
    let skips = explained.rule.on_missing() == OnMissing::Skip
        && explained.conditions.iter().all(|one| one.holds)
        && !is_excepted;
    let missing = explained.key.iter().find(|(_, value)| value.is_none());
    if let (true, Some((part, _))) = (skips, missing) {
        lines.push(format!("✗ {part} is a part of the key and missing, and on_missing is \"skip\""));
    }
    let exempts = |one: &&Override| one.instead == Instead::Allow;
    if let Some(one) = explained.overridden_by.as_ref().filter(exempts) {
        lines.push(format!("✗ an override exempts the key{}", end_and_author(one)));
    }
    if lines.is_empty() {
        lines.push("✓ always".to_owned());
    }
    lines
}

/// Returns one condition with a mark, and with the actual value if it is not met.
fn matched(explained: &Match) -> String {
    let condition = shortened(&explained.condition);
    match (&explained.value, explained.holds) {
        (_, true) => format!("✓ {condition}"),
        (Some(value), false) => format!("✗ {condition}, but it is {value:?}"),
        (None, false) => format!("✗ {condition}, but it is missing"),
    }
}

/// Returns the conditions of `unless` with a mark: it is met if one of them is not. `None` if there are none.
fn exception(unless: &[Match]) -> Option<String> {
    if unless.is_empty() {
        return None;
    }
    let conditions: Vec<_> = unless.iter().map(|one| shortened(&one.condition)).collect();
    let conditions = conditions.join(", ");
    let Some(unmet) = unless.iter().find(|one| !one.holds) else {
        return Some(format!("✗ unless {conditions}, and it is so"));
    };
    let attribute = unmet.condition.split(" = ").next().unwrap_or_default();
    Some(match &unmet.value {
        Some(value) => format!("✓ unless {conditions}, but {attribute} is {value:?}"),
        None => format!("✓ unless {conditions}, but {attribute} is missing"),
    })
}

/// Returns a condition of a readable length.
fn shortened(condition: &str) -> String {
    let mut short: String = condition.chars().take(MAX_CONDITION).collect();
    if short.len() < condition.len() {
        short.push('…');
    }
    short
}

/// Returns the key of the request, and the treatment of parts that are missing or repeated.
fn key(explained: &RuleExplained) -> String {
    if explained.key.is_empty() {
        return "none: all are counted together".to_owned();
    }
    let is_repeated = |name: &String| explained.repeated.contains(name);
    let parts = explained.key.iter().map(|(name, value)| match value {
        Some(value) => match (is_repeated(name), explained.rule.on_repeated()) {
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

/// Returns the source of the current limit, and its end if a schedule changes it.
///
/// Empty for a rule whose limit never changes.
fn schedule(explained: &RuleExplained) -> String {
    let until = explained.changes_at.map(|date| format!(" until {}", date::written(date)));
    let until = until.unwrap_or_default();
    match &explained.window {
        _ if explained.limit_from == Some(LimitSource::Override) => {
            let one = explained.overridden_by.as_ref().filter(|one| matches!(one.instead, Instead::Limit(_)));
            one.map_or(", by an override".to_owned(), |one| {
                format!(", by an override{}", end_and_author(one))
            })
        }
        _ if explained.limit_from == Some(LimitSource::LimitFor) => ", by limit_for".to_owned(),
        Some(window) => format!("{until}, by the schedule: {window}"),
        None => until,
    }
}

/// Returns the end of an override and its author.
fn end_and_author(one: &Override) -> String {
    let until =
        one.until.map_or(" without an end".to_owned(), |until| format!(" until {}", date::written(until)));
    let by = one.by.as_ref().map(|by| format!(", put by {by:?}")).unwrap_or_default();
    until + &by
}

/// Returns the verdict of one rule with its numbers.
fn says(explained: &RuleExplained) -> String {
    let Some(decision) = &explained.decision else {
        return match (explained.repeated.first(), explained.rule.on_repeated()) {
            (Some(part), OnRepeated::Deny) => {
                format!("denied, because {part} is repeated and on_repeated is \"deny\"")
            }
            _ => {
                let one = explained.overridden_by.as_ref().map(end_and_author).unwrap_or_default();
                format!("denied, by an override{one}")
            }
        };
    };
    let limit = number(decision.limit());
    match Decision::verdict(decision) {
        Verdict::Allowed { delay } if delay.is_zero() => {
            format!("allowed, {} of {limit} are free", number(decision.remaining()))
        }
        Verdict::Allowed { delay } => format!("allowed after a wait of {}", span(delay)),
        Verdict::Denied { retry_after } => {
            let why = match decision.ban() {
                Some(Ban::InForce) => "the key is banned and ",
                Some(Ban::Begun) => "begins a ban and ",
                None => "",
            };
            format!("denied, {why}would pass in {}", span(retry_after))
        }
        Verdict::Impossible => format!("denied, at most {limit} can pass at once"),
    }
}

#[cfg(test)]
mod tests {
    use tidegate::Zone;
    use tidegate_rules::{Attributes, Gate, Policy};

    use super::*;

    /// Returns the explanation of a request of ana under this override.
    fn explained(instead: Instead, until: Option<i64>) -> String {
        let policy = Policy::from_toml("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '5/h'").unwrap();
        let gate = Gate::new(policy, Zone::new(1 << 20)).unwrap();
        let ana = Attributes::new().set("user", "ana");
        gate.put_override("a", &ana, instead, until).unwrap();
        let explanation = gate.explain(&ana).now().unwrap();
        let answer = gate.admit(&ana).now().unwrap();
        Text { answer: &answer, explanation: &explanation, is_in_file: false }.to_string()
    }

    #[test]
    fn an_override_is_shown_with_its_effect_and_its_end() {
        let until = 4_102_444_800;
        let text = explained(Instead::Deny, Some(until));
        assert!(text.starts_with("denied by rule \"a\": an override of this key denies it\n"), "{text}");
        assert!(text.contains("denied, by an override until 2100-01-01T00:00:00Z"), "{text}");
        let text = explained(Instead::Allow, None);
        assert!(text.contains("✗ an override exempts the key without an end"), "{text}");
        let text = explained(Instead::Limit("50/h".parse().unwrap()), Some(until));
        assert!(text.contains("50/h, by an override until 2100-01-01T00:00:00Z"), "{text}");
    }
}
