//! Checks that the configured store supports the rules of a file. Each complaint carries its place in the file.
//!
//! A start would fail on such rules with one error. Here all of them are found, in `tidegate check` as well as at
//! the start.

use std::ops::Range;

use tidegate::OnStoreFailure;
use tidegate::{Limit, Store as _, WhenFull};
use tidegate_redis::RedisStore;
use tidegate_rules::{Policy, Rule, UnsupportedPolicy};
use tidegate_support::{Complaint, MAX_COMPLAINTS};
use toml::de::DeTable;

use super::Settings;

/// Returns complaints about limits and zones that the store of these settings does not support.
///
/// Redis itself is not contacted: support depends only on the kind of store and the rules.
pub(super) fn complaints(text: &str, settings: &Settings, policy: &Policy) -> Vec<Complaint> {
    let Some(shared) = &settings.store.shared else { return no_file_names(settings, policy) };
    match shared.open() {
        Ok(store) => {
            let each = policy.rules().iter().flat_map(|rule| of_rule(text, &store, rule));
            each.chain(together(text, &store, policy)).collect()
        }
        Err(error) => vec![Complaint::alone(error.to_string())],
    }
}

/// Returns complaints about zone names that contain `/`: their files would be in another folder than the store file.
///
/// The name of the zone becomes a part of a file name.
fn no_file_names(settings: &Settings, policy: &Policy) -> Vec<Complaint> {
    if settings.store.file.is_none() {
        return Vec::new();
    }
    let wrong = policy.zones().iter().filter(|zone| zone.name.contains('/'));
    let complaint = |name: &str| {
        let dashed = name.replace('/', "-");
        Complaint::alone(format!(
            "zone {name:?}: a zone in a file has no \"/\" in its name; write [zone.{dashed:?}], or leave store.file out"
        ))
    };
    wrong.map(|zone| complaint(&zone.name)).collect()
}

/// Returns warnings about rule options that the store of these settings ignores.
///
/// The rule is valid and does what it says on another store, so this is no error.
pub(super) fn warnings(text: &str, settings: &Settings, policy: &Policy) -> Vec<Complaint> {
    if settings.store.shared.is_none() {
        return Vec::new();
    }
    let root = DeTable::parse(text).ok();
    let written = root.as_ref().and_then(|root| root.get_ref().get("rule")?.get_ref().as_array());
    let said = |nth: usize| Some(written?.get(nth)?.get_ref().as_table()?.get("when_full")?.span());
    let forgets = policy.rules().iter().enumerate().filter(|(_, rule)| rule.when_full() == WhenFull::Forget);
    // A candidate inherits the option from its rule, and that rule has its own warning.
    let own = forgets.filter(|(_, rule)| rule.candidate_for().is_none()).take(MAX_COMPLAINTS);
    own.map(|(nth, rule)| Complaint { span: said(nth), what: forgets_nothing(rule) }).collect()
}

/// Returns the warning about `when_full = "forget"` with a store that never evicts a key.
fn forgets_nothing(rule: &Rule) -> String {
    let effect = match rule.on_store_failure() {
        OnStoreFailure::Local => "has an effect only while Redis does not answer and this server decides",
        OnStoreFailure::Open | OnStoreFailure::Closed => "has no effect",
    };
    format!(
        "rule {:?}: when_full \"forget\" {effect}, as Redis has a state for each key and forgets none; leave it out, or \
         count in memory",
        rule.name()
    )
}

/// Returns complaints about the limits of one rule, also those of its schedule and of single values.
fn of_rule(text: &str, store: &RedisStore, rule: &Rule) -> Vec<Complaint> {
    let own = rule.limit().map(|limit| (*limit, None));
    let scheduled = rule.schedule().enumerate().map(|(nth, then)| (*then.limit, Some(nth)));
    let values = rule.limit_for().map(|(_, limit)| (*limit, None));
    let wrong = |(limit, window): (Limit, Option<usize>)| {
        let why = store.supports(&limit).err()?;
        let what = format!("rule {:?}: limit \"{limit}\": {why}", rule.name());
        // A window without its own limit uses the limit of the rule, which has its complaint already.
        match (place(text, rule.name(), window), window) {
            (Some(span), _) => Some(Complaint::at(span, what)),
            (None, Some(_)) => None,
            (None, None) => Some(Complaint::alone(what)),
        }
    };
    own.into_iter().chain(scheduled).chain(values).filter_map(wrong).collect()
}

/// Returns the complaint about more rules for one request than the store decides in one call.
///
/// A remote store decides all rules of a request in one script call, which has a bound.
fn together(text: &str, store: &RedisStore, policy: &Policy) -> Option<Complaint> {
    let most = store.most_together();
    let (rule, count) = policy.more_together_than(most)?;
    let what = UnsupportedPolicy::TooManyTogether { rule: rule.name().into(), count, most }.to_string();
    Some(match place(text, rule.name(), None) {
        Some(span) => Complaint::at(span, what),
        None => Complaint::alone(what),
    })
}

/// Returns the place of the limit of a rule, or of one of its schedule windows.
///
/// Parses the text again: complaints are rare, and the policy does not keep places.
fn place(text: &str, name: &str, window: Option<usize>) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let rules = root.get_ref().get("rule")?.get_ref().as_array()?;
    let tables = rules.iter().filter_map(|rule| rule.get_ref().as_table());
    let is_named =
        |rule: &&DeTable<'_>| rule.get("name").and_then(|value| value.get_ref().as_str()) == Some(name);
    let rule = tables.into_iter().find(is_named)?;
    let table = match window {
        None => rule,
        Some(nth) => rule.get("schedule")?.get_ref().as_array()?.get(nth)?.get_ref().as_table()?,
    };
    table.get("limit").map(|limit| limit.span())
}
