//! The reports of the heaviest keys and of the banned ones, for every front.
//!
//! The counts come from a bounded table, so they are estimates with a known error. They are the answer to
//! "which client hits the limit" without a log of denials.
//!
//! Bans are those that this server has denied for. The store is asked for each if it is still in force.

use tidegate::StoreError;
use tidegate_rules::{BannedKey, HotKey, Rule};

use crate::engine::Engine;

/// The maximum number of keys of one report.
pub(crate) const MAX_KEYS: usize = 100;
/// The number of keys by default.
pub(crate) const USUAL_KEYS: usize = 10;

/// A query for the heaviest keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TopQuery<R> {
    /// The rule to list keys of; `None` for all rules, and limits that came with requests.
    pub(crate) rule: Option<R>,
    /// The number of keys to list.
    pub(crate) keys: usize,
    /// The number to sort by.
    pub(crate) by: TopOrder,
}

/// A query for the banned keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BansQuery<R> {
    /// The rule to list bans of; `None` for all rules.
    pub(crate) rule: Option<R>,
    /// The number of bans to list.
    pub(crate) keys: usize,
}

/// The number that keys are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopOrder {
    /// The number of denials.
    Denied,
    /// The number of requests.
    Asked,
}

/// The error that no rule has this name.
#[derive(Debug)]
pub(crate) struct NoSuchRule(pub(crate) String);

impl<R> Default for TopQuery<R> {
    fn default() -> TopQuery<R> {
        TopQuery { rule: None, keys: USUAL_KEYS, by: TopOrder::Denied }
    }
}

impl<R: AsRef<str>> TopQuery<R> {
    /// Sets the number of keys. The error is the text behind the name of the parameter.
    pub(crate) fn set_keys(&mut self, text: &str) -> Result<(), String> {
        self.keys = number_of_keys(text)?;
        Ok(())
    }

    /// Sets the number to sort by. The error is the text behind the name of the parameter.
    pub(crate) fn set_by(&mut self, text: &str) -> Result<(), String> {
        self.by = match text {
            "denied" => TopOrder::Denied,
            "asked" => TopOrder::Asked,
            other => return Err(format!("{other:?}: is unknown; write denied or asked")),
        };
        Ok(())
    }

    /// Returns the keys, those with the most denials or requests first.
    pub(crate) fn run(&self, engine: &Engine) -> Result<Vec<HotKey>, NoSuchRule> {
        let rule = known(self.rule.as_ref(), engine)?;
        Ok(match self.by {
            TopOrder::Denied => engine.gate().top(rule, self.keys),
            TopOrder::Asked => engine.gate().top_by_requests(rule, self.keys),
        })
    }
}

impl<R> Default for BansQuery<R> {
    fn default() -> BansQuery<R> {
        BansQuery { rule: None, keys: USUAL_KEYS }
    }
}

impl<R: AsRef<str>> BansQuery<R> {
    /// Sets the number of bans. The error is the text behind the name of the parameter.
    pub(crate) fn set_keys(&mut self, text: &str) -> Result<(), String> {
        self.keys = number_of_keys(text)?;
        Ok(())
    }

    /// Checks that the rule exists.
    pub(crate) fn check(&self, engine: &Engine) -> Result<(), NoSuchRule> {
        known(self.rule.as_ref(), engine).map(drop)
    }

    /// Returns the banned keys, the longest bans first.
    pub(crate) async fn run(&self, engine: &Engine) -> Result<Vec<BannedKey>, StoreError> {
        engine.gate().bans(self.rule.as_ref().map(AsRef::as_ref), self.keys).await
    }
}

/// Parses the number of keys to list.
fn number_of_keys(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_KEYS).contains(number));
    number.ok_or_else(|| format!("{text:?}: has to be a number from 1 to {MAX_KEYS}"))
}

/// Returns the name of a rule in force.
fn known<'r, R: AsRef<str>>(rule: Option<&'r R>, engine: &Engine) -> Result<Option<&'r str>, NoSuchRule> {
    let rule = rule.map(AsRef::as_ref);
    let is_known = |name: &str| {
        engine.gate().with_policy(|policy| policy.rules().iter().map(Rule::name).any(|rule| rule == name))
    };
    match rule.filter(|rule| !is_known(rule)) {
        Some(unknown) => Err(NoSuchRule(unknown.to_owned())),
        None => Ok(rule),
    }
}
