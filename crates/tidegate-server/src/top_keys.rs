//! The report of the heaviest keys, for every front.
//!
//! The counts come from a bounded table, so they are estimates with a known error. They are the answer to
//! "which client hits the limit" without a log of denials.

use tidegate_rules::{HotKey, Rule};

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
        let number = text.parse().ok().filter(|number| (1..=MAX_KEYS).contains(number));
        self.keys = number.ok_or_else(|| format!("{text:?}: has to be a number from 1 to {MAX_KEYS}"))?;
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
        let (gate, rule) = (engine.gate(), self.rule.as_ref().map(AsRef::as_ref));
        let is_known = |name: &str| {
            gate.with_policy(|policy| policy.rules().iter().map(Rule::name).any(|rule| rule == name))
        };
        if let Some(rule) = rule.filter(|rule| !is_known(rule)) {
            return Err(NoSuchRule(rule.to_owned()));
        }
        Ok(match self.by {
            TopOrder::Denied => gate.top(rule, self.keys),
            TopOrder::Asked => gate.top_by_requests(rule, self.keys),
        })
    }
}
