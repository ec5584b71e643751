//! The differences between two policies, as human-readable text.
//!
//! The text is for people who are about to replace a policy, and for the log when it has been replaced. It says what
//! happens to the counts, because that is what a diff of two files does not show.

use std::collections::HashMap;

use crate::condition::Condition;
use crate::policy::Policy;
use crate::rule::{Action, Limited, Mode, Rule, RuleParams, StaticVerdict};

/// Returns a line for each difference: `+ rule "a"`, `- rule "b"`, `~ rule "c": limit 1/s -> 2/s`.
///
/// Policies that differ only in their conditions' notation, such as `/a//b` and `/a/b`, have no differences.
///
/// ```
/// use tidegate::rules::{Policy, differences};
///
/// let old = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '1/s'\n")?;
/// let new = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '2/s'\n[[rule]]\nname = 'b'\nlimit = '9/s'\n")?;
/// assert_eq!(differences(&old, &new), ["~ rule \"a\": 1/s -> 2/s", "+ rule \"b\": 9/s"]);
/// # Ok::<(), tidegate::rules::PolicyError>(())
/// ```
#[doc(alias = "diff")]
#[doc(alias = "reload preview")]
pub fn differences(old: &Policy, new: &Policy) -> Vec<String> {
    let by_name =
        |policy| -> HashMap<_, _> { Policy::rules(policy).iter().map(|rule| (rule.name(), rule)).collect() };
    let (before, after) = (by_name(old), by_name(new));
    let mut lines = Vec::new();
    for rule in old.rules() {
        match after.get(rule.name()) {
            None => lines.push(format!("- rule {:?}: its counts are not looked at any more", rule.name())),
            Some(now) => lines.extend(changes(old, rule, new, now)),
        }
    }
    for rule in new.rules().iter().filter(|rule| !before.contains_key(rule.name())) {
        lines.push(format!("+ rule {:?}: {}", rule.name(), in_short(rule)));
    }
    for zone in old.zones() {
        match new.zones().iter().find(|now| now.name == zone.name) {
            None => lines.push(format!("- zone {:?}", zone.name)),
            Some(now) if now.bytes != zone.bytes => lines.push(format!(
                "~ zone {:?}: its size changes with the next start; now it stays as it is",
                zone.name
            )),
            Some(_) => {}
        }
    }
    let added = new.zones().iter().filter(|zone| old.zones().iter().all(|known| known.name != zone.name));
    lines.extend(added.map(|zone| format!("+ zone {:?}", zone.name)));
    let kept = old.rules().iter().map(Rule::name).filter(|name| after.contains_key(name));
    if old.unmatched() != new.unmatched() {
        lines.push(match new.unmatched() {
            StaticVerdict::Allow => "~ requests to which no rule applies: denied -> allowed".to_owned(),
            StaticVerdict::Deny => "~ requests to which no rule applies: allowed -> denied".to_owned(),
        });
    }
    if !kept.eq(new.rules().iter().map(Rule::name).filter(|name| before.contains_key(name))) {
        lines.push("~ the order of the rules".to_owned());
    }
    lines
}

/// Describes the action of a rule by its limit and cost, or its decision, and its mode.
fn in_short(rule: &Rule) -> String {
    let shadow = if rule.mode == Mode::Shadow { ", in shadow" } else { "" };
    match &rule.action {
        Action::Decide(StaticVerdict::Allow) => format!("allow{shadow}"),
        Action::Decide(StaticVerdict::Deny) => format!("deny{shadow}"),
        Action::Limit(limited) => format!("{}{shadow}", terms(&limited.usual)),
    }
}

/// Describes a limit, with its cost unless that is 1.
fn terms(terms: &RuleParams) -> String {
    let cost = if terms.cost == 1 { String::new() } else { format!(", cost {}", terms.cost) };
    format!("{}{cost}", terms.limit)
}

/// Returns the name of the rule that a candidate would replace.
fn base<'p>(policy: &'p Policy, rule: &Rule) -> Option<&'p str> {
    rule.candidate_for().and_then(|base| policy.rules().get(base)).map(Rule::name)
}

/// Describes a change between rule and candidate, or of the rule that a candidate would replace.
fn base_change(old: Option<&str>, new: Option<&str>) -> Option<String> {
    match (old, new) {
        (old, new) if old == new => None,
        (Some(old), Some(new)) => Some(format!("a candidate for {old:?} -> for {new:?}")),
        (Some(old), None) => Some(format!("no candidate for {old:?} any more: it is obeyed")),
        (None, new) => Some(format!("a candidate for {:?} now: it is not obeyed", new.unwrap_or_default())),
    }
}

/// Describes the changes of a rule that is in both policies.
fn changes(before: &Policy, old: &Rule, after: &Policy, new: &Rule) -> Option<String> {
    let mut parts = Vec::new();
    if in_short(old) != in_short(new) {
        parts.push(format!("{} -> {}", in_short(old), in_short(new)));
    }
    parts.extend(base_change(base(before, old), base(after, new)));
    for (field, [was, is]) in [
        ("when", [old, new].map(|rule| conditions(&rule.conditions))),
        ("unless", [old, new].map(|rule| conditions(&rule.unless))),
    ] {
        if was != is {
            parts.push(format!("{field} {{ {was} }} -> {{ {is} }}"));
        }
    }
    if old.group() != new.group() {
        let group = |rule: &Rule| rule.group().map_or("none".to_owned(), |group| format!("{group:?}"));
        parts.push(format!("group {} -> {}", group(old), group(new)));
    }
    let key = |rule: &Rule| rule.key().collect::<Vec<_>>().join(", ");
    if key(old) != key(new) {
        parts.push(format!("key [{}] -> [{}]: other values are other counts", key(old), key(new)));
    }
    if let (Some(old), Some(new)) = (old.limited(), new.limited()) {
        parts.extend(limited_changes(old, new));
    }
    (!parts.is_empty()).then(|| format!("~ rule {:?}: {}", new.name(), parts.join("; ")))
}

/// Formats conditions as in a file, without the braces.
fn conditions(of: &[Condition]) -> String {
    of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Describes the changes of a limit other than its numbers and its key.
fn limited_changes(old: &Limited, new: &Limited) -> impl Iterator<Item = String> {
    let algorithm = |limited: &Limited| limited.usual.limit.algorithm();
    let rest = |limited: &Limited| {
        let (key, max_wait) = (&limited.key, limited.usual.max_wait);
        (key.on_missing, key.on_repeated, limited.on_store_failure, limited.when_full, max_wait)
    };
    let changes = [
        (algorithm(old) != algorithm(new), "another algorithm: counts are not carried over"),
        (old.zone != new.zone, "another zone: it goes on with the counts that are there, or begins anew"),
        (old.key.grouping != new.key.grouping, "addresses in other groups: their counts begin anew"),
        (old.schedule != new.schedule, "another schedule"),
        (old.limit_for != new.limit_for, "other limits for single values"),
        (old.penalty != new.penalty, "another penalty"),
        (rest(old) != rest(new), "other settings"),
    ];
    changes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(old: &str, new: &str) -> Vec<String> {
        let policy = |text: &str| {
            let zone = "[zone.z]\nsize = '64KiB'\n";
            Policy::from_toml(&format!("{zone}{text}")).unwrap_or_else(|error| panic!("{error}"))
        };
        differences(&policy(old), &policy(new))
    }

    #[test]
    fn every_difference_is_a_line_and_says_what_becomes_of_counts() {
        let rule = |more: &str| format!("[[rule]]\nname = 'a'\nkey = ['ip']\n{more}\n");
        let usual = rule("limit = '1/s'");
        for (more, line) in [
            ("limit = '2/s'", "1/s -> 2/s"),
            ("limit = '1/s'\ncost = 2", "1/s -> 1/s, cost 2"),
            ("limit = '1/s'\nmode = 'shadow'", "1/s -> 1/s, in shadow"),
            ("limit = '1/s'\nwhen = { path = '/x' }", "when {  } -> { path = \"/x\" }"),
            (
                "limit = '1/s'\nunless = { path = '/x', user = { missing = true } }",
                "unless {  } -> { path = \"/x\", user = { missing = true } }",
            ),
            ("limit = '1/s'\ngroup = 'plan'", "group none -> \"plan\""),
            (
                "limit = '1/s sliding-log'",
                "1/s -> 1/s sliding-log; another algorithm: counts are not carried over",
            ),
            (
                "limit = '1/s'\nzone = 'z'",
                "another zone: it goes on with the counts that are there, or begins anew",
            ),
            ("limit = '1/s'\nipv6_prefix = 56", "addresses in other groups: their counts begin anew"),
            (
                "limit = '1/s'\nschedule = [{ from = '01:00', to = '02:00', limit = '3/s' }]",
                "another schedule",
            ),
            ("limit = '1/s'\non_missing = 'skip'", "other settings"),
            ("limit = '1/s'\non_repeated = 'last'", "other settings"),
        ] {
            assert_eq!(between(&usual, &rule(more)), [format!("~ rule \"a\": {line}")]);
        }
        let other = usual.replace("'a'", "'b'");
        assert_eq!(
            between(&usual, &other),
            ["- rule \"a\": its counts are not looked at any more", "+ rule \"b\": 1/s"]
        );
        let by_user = usual.replace("'ip'", "'user'");
        let line = "~ rule \"a\": key [ip] -> [user]: other values are other counts";
        assert_eq!(between(&usual, &by_user), [line]);
        assert!(between(&usual, &usual).is_empty());
        let deny = format!("[rules]\nunmatched = 'deny'\n{usual}");
        assert_eq!(between(&usual, &deny), ["~ requests to which no rule applies: allowed -> denied"]);
        assert_eq!(between(&deny, &usual), ["~ requests to which no rule applies: denied -> allowed"]);
        let both = [&*usual, &*other];
        assert_eq!(between(&both.concat(), &[both[1], both[0]].concat()), ["~ the order of the rules"]);
    }

    #[test]
    fn a_decision_that_only_runs_in_shadow_from_now_on_is_listed() {
        let deny = "[[rule]]\nname = 'a'\ndecision = 'deny'\n";
        let shadow = format!("{deny}mode = 'shadow'\n");
        assert_eq!(between(deny, &shadow), ["~ rule \"a\": deny -> deny, in shadow"]);
        assert_eq!(between(&shadow, deny), ["~ rule \"a\": deny, in shadow -> deny"]);
    }

    #[test]
    fn the_rule_that_a_candidate_would_replace_is_listed() {
        let rules = "[[rule]]\nname = 'a'\nlimit = '1/s'\n[[rule]]\nname = 'b'\nlimit = '1/s'\n";
        let with = |base: &str| format!("{rules}[[rule]]\nname = 'c'\nlimit = '2/s'\n{base}\n");
        for (old, new, line) in [
            ("candidate_for = 'a'", "candidate_for = 'b'", "a candidate for \"a\" -> for \"b\""),
            ("candidate_for = 'a'", "", "no candidate for \"a\" any more: it is obeyed"),
            ("", "candidate_for = 'b'", "a candidate for \"b\" now: it is not obeyed"),
        ] {
            assert_eq!(between(&with(old), &with(new)), [format!("~ rule \"c\": {line}")]);
        }
    }

    #[test]
    fn another_order_is_listed_beside_other_changes_and_not_for_added_or_removed_rules() {
        let rule = |name: &str| format!("[[rule]]\nname = '{name}'\nlimit = '1/s'\n");
        let all = |names: &[&str]| names.iter().map(|name| rule(name)).collect::<String>();
        assert_eq!(
            between(&all(&["a", "b"]), &all(&["b", "a", "c"])),
            ["+ rule \"c\": 1/s", "~ the order of the rules"]
        );
        assert_eq!(between(&all(&["a", "b"]), &all(&["a", "c", "b"])), ["+ rule \"c\": 1/s"]);
        assert_eq!(
            between(&all(&["a", "c", "b"]), &all(&["a", "b"])),
            ["- rule \"c\": its counts are not looked at any more"]
        );
    }
}
