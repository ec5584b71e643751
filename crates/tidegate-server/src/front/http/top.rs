//! `/v1/top`: the keys with the most denials, or with the most requests.
//!
//! The counts come from a bounded table, so they are estimates with a known error. They are the answer to
//! "which client hits the limit" without a log of denials.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hyper::StatusCode;
use serde::Serialize;
use tidegate_rules::{HotKey, Rule};
use tidegate_support::{decoded_query, is_percent_encoded};

use super::problem::Problem;
use super::reply::Reply;
use crate::engine::Engine;

/// The maximum number of keys of one page.
pub(super) const MAX_KEYS: usize = 100;
/// The number of keys by default.
const USUAL_KEYS: usize = 10;

#[derive(Serialize)]
struct TopKey {
    /// The name of the rule; `None` for a limit that came with the request.
    rule: Option<String>,
    /// The key parts, as text.
    key: Vec<String>,
    /// The number of requests of the key, approximately.
    asked: u64,
    /// The number of denials of the key, approximately.
    denied: u64,
    /// The maximum error of the counts: they may be too high by so much.
    error: u64,
}

/// The parameters in the query of the URI.
#[derive(Debug, PartialEq, Eq)]
struct TopQuery<'a> {
    /// The rule to list keys of; all rules if it is missing.
    rule: Option<Cow<'a, str>>,
    /// The number of keys to list.
    keys: usize,
    /// The number to sort by.
    by: Order,
}

/// The number that keys are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The number of denials.
    Denied,
    /// The number of requests.
    Asked,
}

/// Returns the keys, those with the most denials or requests first.
pub(super) fn top(query: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked = TopQuery::read(query).map_err(Problem::bad_request)?;
    let gate = engine.gate();
    let is_known = |name: &str| {
        gate.with_policy(|policy| policy.rules().iter().map(Rule::name).any(|rule| rule == name))
    };
    if let Some(rule) = asked.rule.as_deref().filter(|rule| !is_known(rule)) {
        let detail = format!("rule {rule:?}: there is no rule of this name; /v1/rules lists those in force");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    }
    let keys = match asked.by {
        Order::Denied => gate.top(asked.rule.as_deref(), asked.keys),
        Order::Asked => gate.top_by_requests(asked.rule.as_deref(), asked.keys),
    };
    let keys = keys.into_iter();
    let keys =
        keys.map(|HotKey { rule, key, asked, denied, error, .. }| TopKey { rule, key, asked, denied, error });
    Ok(Reply::of(&BTreeMap::from([("keys", keys.collect::<Vec<_>>())])))
}

impl<'a> TopQuery<'a> {
    /// Parses the query. An unknown parameter is an error.
    fn read(query: &'a [u8]) -> Result<TopQuery<'a>, String> {
        let query = std::str::from_utf8(query).map_err(|_| "the query is no text".to_owned())?;
        let mut asked = TopQuery { rule: None, keys: USUAL_KEYS, by: Order::Denied };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok_or_else(|| format!("{name}: this is no percent-encoded text"))?;
            match name {
                "rule" => asked.rule = Some(value),
                "n" => {
                    let number = value.parse().ok().filter(|number| (1..=MAX_KEYS).contains(number));
                    asked.keys = number
                        .ok_or_else(|| format!("n {value:?}: has to be a number from 1 to {MAX_KEYS}"))?;
                }
                "by" => {
                    asked.by = match &*value {
                        "denied" => Order::Denied,
                        "asked" => Order::Asked,
                        other => return Err(format!("by {other:?}: is unknown; write denied or asked")),
                    }
                }
                other => return Err(format!("{other:?} is no parameter; there are rule, n and by")),
            }
        }
        Ok(asked)
    }
}

/// Decodes a value of a query; `None` if it is not percent-encoded UTF-8.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    if !is_percent_encoded(value.as_bytes()) {
        return None;
    }
    match decoded_query(value.as_bytes()) {
        Cow::Borrowed(_) => Some(Cow::Borrowed(value)),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_a_rule_and_how_many() {
        let asked = |query: &'static str| {
            TopQuery::read(query.as_bytes()).map(|asked| (asked.rule.map(Cow::into_owned), asked.keys))
        };
        assert_eq!(asked(""), Ok((None, USUAL_KEYS)));
        assert_eq!(asked("n=100&rule=api"), Ok((Some("api".to_owned()), 100)));
        assert_eq!(asked("rule=a%2Fb%3a+c"), Ok((Some("a/b: c".to_owned()), USUAL_KEYS)));
        let by = |query: &'static str| TopQuery::read(query.as_bytes()).map(|asked| asked.by);
        assert_eq!(
            [by(""), by("by=denied"), by("by=asked")].map(Result::ok),
            [Some(Order::Denied), Some(Order::Denied), Some(Order::Asked)]
        );
        for wrong in [
            "by=",
            "by=allowed",
            "n=0",
            "n=101",
            "n=",
            "n=-1",
            "n=x",
            "m=1",
            "rule=%",
            "rule=%2",
            "rule=%zz",
            "rule=%ff",
        ] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }
}
