//! Warnings about attributes that a client controls, and about misspelled header fields.

use tidegate_support::Complaint;

use super::super::written::RuleText;
use crate::condition::Condition;
use crate::key::OnMissing;
use crate::rule::{Limited, Rule, StaticVerdict};

/// The prefixes of attributes that a client can set to any value.
///
/// The address is not among them: the server takes it from the connection, or from trusted proxies.
const FORGED: [&str; 3] = ["header.", "cookie.", "query."];

/// Header fields that are often used as keys, in addition to those with the prefix `x-`.
const HEADERS: [&str; 5] = ["authorization", "user-agent", "referer", "accept-language", "cf-connecting-ip"];

/// Returns warnings about names of header fields that are written without the prefix `header.`, and about names of
/// other tools.
pub(super) fn header_names(text: &RuleText) -> impl Iterator<Item = Complaint> {
    let in_key = text.key.iter().flatten().map(|name| ("key", name));
    let conditions = [("when", &text.when), ("unless", &text.unless)].into_iter();
    let in_conditions =
        conditions.flat_map(|(of, all)| all.iter().map(move |condition| (of, &condition.attribute)));
    in_conditions.chain(in_key).filter_map(|(of, name)| {
        let what = if is_header_name(&name.value) {
            let field = format!("header.{}", name.value.to_ascii_lowercase());
            format!("is an attribute of its own, and no header field; write {field:?} for the field")
        } else {
            let meant = meant_by(&name.value)?;
            format!("is an attribute of its own, which no front provides; write {meant}")
        };
        Some(Complaint::at(name.span.clone(), format!("{of} {:?}: {what}", name.value)))
    })
}

/// Returns warnings about single values with a star at the end, which is no beginning there.
pub(super) fn starred_values(text: &RuleText) -> impl Iterator<Item = Complaint> {
    let values = text.limit_for.iter().map(|(value, _)| value);
    values.filter(|value| value.value.len() > 1 && value.value.ends_with('*')).map(|value| {
        let what = format!(
            "limit_for {:?}: is one value, and the star is a part of it; for all that begin so, write a rule of a group \
             with a condition",
            value.value
        );
        Complaint::at(value.span.clone(), what)
    })
}

/// Returns the attribute that a name of another tool means.
fn meant_by(name: &str) -> Option<String> {
    const NAMESPACES: [(&str, &str); 10] = [
        ("headers.", "header."),
        ("req.headers.", "header."),
        ("request.headers.", "header."),
        ("http.", "header."),
        ("cookies.", "cookie."),
        ("params.", "query."),
        ("args.", "query."),
        ("queries.", "query."),
        ("query_params.", "query."),
        ("req.query.", "query."),
    ];
    let lower = name.to_ascii_lowercase();
    if let Some((rest, prefix)) =
        NAMESPACES.iter().find_map(|(of, prefix)| Some((lower.strip_prefix(of)?, prefix)))
    {
        return Some(format!("{:?}", format!("{prefix}{}", rest.replace('_', "-"))));
    }
    Some(match lower.as_str() {
        "header" | "headers" => "the name of the field, as in \"header.x-api-key\"".to_owned(),
        "cookie" | "cookies" => "the name of the cookie, as in \"cookie.session\"".to_owned(),
        "query" | "params" | "args" => "the name of the parameter, as in \"query.page\"".to_owned(),
        "uri" | "url" | "request_uri" | "request_path" => "\"path\"".to_owned(),
        "client_ip" | "remote_addr" | "remote_address" | "source_ip" | "ip_address"
        | "binary_remote_addr" => "\"ip\"".to_owned(),
        "http_method" | "request_method" | "verb" => "\"method\"".to_owned(),
        "hostname" | "http_host" => "\"host\"".to_owned(),
        _ => return None,
    })
}

/// Returns true if a name looks like that of a header field: `X-Api-Key`, `x-api-key`, `Api-Key`, `authorization`.
fn is_header_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_capitalized = |word: &str| word.starts_with(|letter: char| letter.is_ascii_uppercase());
    lower.starts_with("x-")
        || HEADERS.contains(&&*lower)
        || name.contains('-') && !name.contains('.') && name.split('-').all(is_capitalized)
}

/// Returns true if a client can set the attribute to any value, and the rule does not trust it.
fn is_forged(rule: &Rule, attribute: &str) -> bool {
    FORGED.iter().any(|prefix| attribute.starts_with(prefix))
        && !rule.trusted.iter().any(|name| **name == *attribute)
}

/// Returns the parts of a key that a client can choose and that are not trusted.
pub(super) fn forged<'r>(rule: &'r Rule, limited: &'r Limited) -> impl Iterator<Item = &'r str> {
    let parts = limited.key.parts.iter().map(|part| &*part.name);
    parts.filter(|part| is_forged(rule, part))
}

/// Returns the attributes of conditions that a client can choose and that are not trusted, those of `unless` as well.
pub(super) fn forged_conditions(rule: &Rule) -> impl Iterator<Item = &str> {
    forged_of(rule, &rule.conditions).chain(forged_of(rule, &rule.unless))
}

/// Returns the attributes of these conditions of a rule that a client can choose and that are not trusted.
fn forged_of<'r>(rule: &'r Rule, conditions: &'r [Condition]) -> impl Iterator<Item = &'r str> {
    conditions.iter().map(Condition::attribute).filter(|attribute| is_forged(rule, attribute))
}

/// Returns true if a rule has a condition on an attribute that no client can choose: the address, an attribute of the
/// program, or a trusted one.
fn has_sure_condition(rule: &Rule) -> bool {
    let is_sure =
        |attribute: &str| !["path", "method", "host"].contains(&attribute) && !is_forged(rule, attribute);
    rule.conditions.iter().any(|condition| is_sure(condition.attribute()))
}

/// Returns a warning about conditions by which a client can choose the limits that apply to it.
///
/// `is_backed` returns true if another limit counts the requests of the rule whatever the client sends.
pub(super) fn forged_choice(rule: &Rule, is_backed: impl FnOnce() -> bool) -> Option<String> {
    let (when, unless) = (forged_of(rule, &rule.conditions), forged_of(rule, &rule.unless));
    let (when, unless): (Vec<_>, Vec<_>) = (when.collect(), unless.collect());
    let is_exemption = rule.decision() == Some(StaticVerdict::Allow);
    let (attributes, effect) = match (&when[..], &unless[..]) {
        ([..], [_, ..]) if !is_exemption => {
            (unless, "excepts requests by {}, which anybody can send: a client excepts itself")
        }
        ([_, ..], _) if is_exemption && !has_sure_condition(rule) => {
            (when, "allows by {}, which anybody can send: a client exempts itself from all limits")
        }
        ([_, ..], _) if rule.group().is_some() && !has_sure_condition(rule) => {
            (when, "is chosen by {}, which anybody can send: a client chooses its own limit")
        }
        ([_, ..], _) if rule.limited().is_some() && rule.group().is_none() && !is_backed() => {
            (when, "applies by {}, which anybody can leave out: a client is not limited then")
        }
        _ => return None,
    };
    let names = attributes.join(" and ");
    let remedy = match rule.decision() {
        Some(_) => "add a condition on ip",
        None => "add a rule for the same without it",
    };
    Some(format!(
        "{}; {remedy}, or write trusted = {attributes:?} if something before Tidegate sets it",
        effect.replace("{}", &names)
    ))
}

/// Returns warnings about parts of the key that a client can choose. Such a client gets a new count with each request.
pub(super) fn forged_parts<'r>(rule: &'r Rule, limited: &'r Limited) -> impl Iterator<Item = String> + 'r {
    let is_candidate = limited.candidate_for.is_some();
    forged(rule, limited).filter(move |_| !is_candidate).map(|part| {
        let way_around = match limited.key.on_missing {
            OnMissing::Skip => {
                "another value each time is a fresh count each time, and none is no count at all"
            }
            OnMissing::Share => "another value each time is a fresh count each time",
        };
        format!(
            "counts by {part}, which anybody can choose: {way_around}; add a rule for the same by ip, \
             or write trusted = [{part:?}] if something before Tidegate checks it"
        )
    })
}
