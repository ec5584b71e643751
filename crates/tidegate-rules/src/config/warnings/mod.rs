//! Warnings about policies that are valid but probably not intended.
//!
//! Each warning names the rule and the remedy. A warning is reported only if it is certain: where two rules cannot be
//! compared, or a comparison would take too long, nothing is reported.
//!
//! | warning | the usual mistake |
//! |---|---|
//! | is never reached | an earlier decision covers every request of the rule |
//! | is never chosen | an earlier member of the group covers every request of the rule |
//! | is the only member | the name of a group is misspelled |
//! | never applies | `unless` excepts what `when` is for |
//! | counts by what is missing | a rule for anonymous requests that counts by user |
//! | never denies anything | a stricter limit applies to the same requests |
//! | counts the same | a copied rule |
//! | lets nothing pass | a cost above the burst |
//! | bans all callers | a penalty of a rule without a key |
//! | never bans | a penalty of a limit that denies nothing |
//! | counts by a header | a key that the client chooses |
//! | allows, excepts, is chosen or applies by a header | a condition that the client chooses |
//! | is no header field, no front provides | `X-Api-Key` without the prefix `header.`, `client_ip` for `ip` |
//! | is one value | a star in `limit_for`, which is no beginning there |
//! | keys stay for long | a zone with limits per second and per day |

mod groups;
mod names;
mod others;
mod windows;

use std::collections::HashMap;
use std::time::Duration;

use tidegate_core::{Limit, Rate};
use tidegate_support::{Complaint, Complaints};

use super::written::RuleText;
use crate::condition::Condition;
use crate::key::OnMissing;
use crate::rule::{Action, Limited, Mode, Rule, StaticVerdict};
use groups::only_members;
use names::{forged, forged_choice, forged_parts, header_names, starred_values};
use others::Others;
use windows::{ended, other_algorithms};

/// The maximum ratio of the periods of limits in one zone. A flood of keys with long-lived debt evicts keys with
/// short-lived debt.
const PERIODS_APART: u32 = 10_000;
/// The maximum number of similar rules that are compared in full.
const MAX_ALIKE: usize = 16;

/// Returns all warnings about rules and their texts, at this time.
///
/// The time is that of [`super::read_at`]. The cost is nearly linear in the number of rules, and comparisons of pairs
/// are bounded.
pub(super) fn warnings(rules: &[Rule], texts: &[RuleText], now: i64) -> Complaints {
    let mut found = Complaints::default();
    let mut by_meaning: HashMap<(Vec<String>, String), Vec<&Rule>> = HashMap::new();
    let mut others = Others::of(rules);
    for (index, (rule, text)) in rules.iter().zip(texts).enumerate() {
        let span = text.name.as_ref().map_or(&text.span, |name| &name.span);
        let about = |what: String| Complaint::at(span.clone(), format!("rule {:?}: {what}", rule.name()));
        if let Some(before) = others.hides(rule, index) {
            found.push(about(format!(
                "is never reached, as {:?} decides all that it is for; leave it out, or narrow {0:?}",
                before.name()
            )));
        }
        if rule.excepts_all() {
            found.push(about(
                "never applies, as its unless excepts all that its when is for; narrow unless".to_owned(),
            ));
        }
        if let (Some(before), Some(group)) = (others.chosen_before(rule, index), rule.group()) {
            found.push(about(format!(
                "is never chosen in group {group:?}, as {:?} comes first and applies to all of its requests; move {0:?} \
                 behind it, or narrow {0:?}",
                before.name()
            )));
        }
        if rule.action == Action::Decide(StaticVerdict::Allow) && rule.mode == Mode::Shadow {
            found.push(about(
                "allows nothing, as it is in shadow; leave the mode out, or the rule".to_owned(),
            ));
        }
        let alike = by_meaning.entry((conditions(rule), in_short(rule))).or_default();
        let same = alike.iter().find(|same| is_same(same, rule)).map(|same| same.name());
        if alike.len() < MAX_ALIKE {
            alike.push(rule);
        }
        if let Some(same) = same {
            found.push(about(format!("counts the same as {same:?}; leave one of them out")));
        } else if let Some(stricter) = others.binds_before(rule, index) {
            found.push(about(format!(
                "never denies anything: a request has to pass {:?} as well, which applies to the same requests and is \
                 stricter; leave it out, or narrow {0:?}",
                stricter.name()
            )));
        }
        header_names(text).chain(starred_values(text)).for_each(|complaint| found.push(complaint));
        if let Some(what) = forged_choice(rule, || others.back_without_conditions(rule)) {
            found.push(about(what));
        }
        let Action::Limit(limited) = &rule.action else { continue };
        if forged(rule, limited).next().is_some() && !others.back(rule) {
            forged_parts(rule, limited).for_each(|what| found.push(about(what)));
        }
        missing_parts(rule, limited).for_each(|what| found.push(about(what)));
        odd_penalty(rule, limited, text).into_iter().for_each(|complaint| found.push(complaint));
        too_dear(rule, limited, text).into_iter().for_each(|complaint| found.push(complaint));
        other_algorithms(rule, limited, text).for_each(|complaint| found.push(complaint));
        ended(rule, limited, text, now).for_each(|complaint| found.push(complaint));
    }
    only_members(rules, texts).into_iter().for_each(|complaint| found.push(complaint));
    periods_apart(rules, texts).into_iter().for_each(|complaint| found.push(complaint));
    found
}

/// Returns warnings about parts of the key that no request of the rule has.
fn missing_parts<'r>(rule: &'r Rule, limited: &'r Limited) -> impl Iterator<Item = String> + 'r {
    let is_missing = |name: &str| {
        let excepted = match &*rule.unless {
            [only] => only.attribute() == name && only.matches_all_present(),
            _ => false,
        };
        let is_for_missing =
            |condition: &Condition| condition.attribute() == name && condition.requires_missing();
        excepted || rule.conditions.iter().any(is_for_missing)
    };
    let parts = limited.key.parts.iter().map(|part| &*part.name);
    parts.filter(move |name| is_missing(name)).map(|name| {
        let remedy = "leave it out of the key, or count by another attribute, such as ip";
        match limited.key.on_missing {
            OnMissing::Share => format!("counts by {name}, and is for requests without {name}; {remedy}"),
            OnMissing::Skip => format!(
                "never applies, as it is for requests without {name}, counts by {name}, and on_missing is \"skip\"; {remedy}"
            ),
        }
    })
}

/// Returns the action of a rule as text. Rules with equal actions have equal texts.
fn in_short(rule: &Rule) -> String {
    match &rule.action {
        Action::Decide(fixed) => format!("{fixed:?}"),
        Action::Limit(limited) => format!("{:?} {:?}", limited.key, limited.usual),
    }
}

/// Returns the conditions of a rule as texts, in an order that is independent of the file.
fn conditions(rule: &Rule) -> Vec<String> {
    let unless = rule.unless.iter().map(|condition| format!("unless {condition}"));
    let mut texts: Vec<_> = rule.conditions.iter().map(Condition::to_string).chain(unless).collect();
    texts.sort_unstable();
    texts
}

/// Returns true if two rules with the same conditions have the same key, so that each request is charged twice.
fn is_same(one: &Rule, other: &Rule) -> bool {
    match (&one.action, &other.action) {
        (Action::Limit(first), Action::Limit(second)) => {
            first.key == second.key
                && first.usual == second.usual
                && first.schedule == second.schedule
                && first.penalty == second.penalty
                && first.candidate_for.is_none()
                && second.candidate_for.is_none()
                && first.group.is_none()
                && second.group.is_none()
        }
        (Action::Decide(first), Action::Decide(second)) => first == second,
        _ => false,
    }
}

/// Returns warnings about costs that are larger than the limit can ever allow.
///
/// A pacer accepts any cost, so it is never reported.
fn too_dear(rule: &Rule, limited: &Limited, text: &RuleText) -> Vec<Complaint> {
    let windows = text.schedule.iter().map(|window| (&window.limit, &window.cost, " in this window"));
    let places = [(&text.limit, &text.cost, "")].into_iter().chain(windows);
    let excessive = limited.all_terms().zip(places).filter(|(terms, _)| terms.cost > terms.capacity());
    excessive.map(|(terms, (limit, cost, when))| {
        let cost = cost.as_ref().map(|written| written.span.clone());
        let span = cost.or(limit.as_ref().map(|written| written.span.clone()));
        let what = format!(
            "rule {:?}: lets nothing pass{when}, as a request costs {} and at most {} can pass; lower the cost, or raise the limit",
            rule.name(),
            terms.cost,
            terms.capacity()
        );
        Complaint { span, what }
    })
    .collect()
}

/// Returns a warning about a penalty that bans no caller, or all callers because of the denials of any of them.
///
/// A rule without a key whose conditions are not only about the resource may be for one caller, so it is not reported.
fn odd_penalty(rule: &Rule, limited: &Limited, text: &RuleText) -> Option<Complaint> {
    let penalty = text.penalty.as_ref()?;
    let is_unlimited = |limit: &Limit| limit.rate().is_some_and(|rate| rate == Rate::UNLIMITED);
    let is_about_resource =
        |condition: &Condition| ["path", "host", "method"].contains(&condition.attribute());
    let what = if limited.all_terms().all(|terms| is_unlimited(&terms.limit)) {
        "never bans, as an unlimited pacer denies nothing; leave the penalty out, or write a rate"
    } else if limited.key.parts.is_empty()
        && limited.all_terms().any(|terms| terms.mode == Mode::Enforce)
        && rule.conditions.iter().all(is_about_resource)
    {
        "bans all callers once any of them is denied too often, as it has no key; add one, as in key = [\"ip\"], or leave \
         the penalty out"
    } else {
        return None;
    };
    Some(Complaint::at(penalty.span.clone(), format!("rule {:?}: {what}", rule.name())))
}

/// Returns warnings about zones whose limits have very different periods.
///
/// At most one warning for each zone, about the longest and the shortest period in it.
fn periods_apart(rules: &[Rule], texts: &[RuleText]) -> Vec<Complaint> {
    let mut zones: HashMap<Option<&str>, Vec<(Duration, usize)>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let Some(limited) = rule.limited() else { continue };
        let periods = limited.all_terms().map(|terms| terms.limit.time_to_full());
        let longest = periods.max().unwrap_or_default();
        zones.entry(limited.zone.as_deref()).or_default().push((longest, index));
    }
    let mut found = Vec::new();
    for (zone, mut periods) in zones {
        periods.sort_unstable();
        let (Some((short, quick)), Some((long, slow))) = (periods.first(), periods.last()) else { continue };
        if *long > short.saturating_mul(PERIODS_APART) && !short.is_zero() {
            let span =
                texts[*slow].zone.as_ref().or(texts[*slow].name.as_ref()).map(|written| written.span.clone());
            let zone = zone.map_or("the store".to_owned(), |zone| format!("zone {zone:?}"));
            let what = format!(
                "rule {:?}: its keys stay in {zone} for {}, those of {:?} for {}: a flood of the former leaves the latter \
                 no room of their own; give one of the two a zone, as in zone = {0:?}",
                rules[*slow].name(),
                in_units(*long),
                rules[*quick].name(),
                in_units(*short)
            );
            found.push(Complaint { span, what });
        }
    }
    found
}

/// Formats a span in the largest unit of a rate that divides it.
fn in_units(span: Duration) -> String {
    const UNITS: [(&str, u128); 6] = [
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("m", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1000),
        ("us", 1),
    ];
    let micros = span.as_micros().max(1);
    let whole = UNITS.iter().find(|(_, unit)| micros.is_multiple_of(*unit));
    whole.map_or(String::new(), |(name, unit)| format!("{}{name}", micros / unit))
}
