//! `/v1/top`: the keys with the most denials, or with the most requests.
//!
//! The query of the URI has the parameters; the report itself is that of every front.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hyper::StatusCode;
use serde::Serialize;
use tidegate_rules::HotKey;
use tidegate_support::{decoded_query, is_percent_encoded};

use super::problem::Problem;
use super::reply::Reply;
use crate::engine::Engine;
use crate::top_keys::{NoSuchRule, TopQuery};

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

/// Returns the keys, those with the most denials or requests first.
pub(super) fn top(query: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked = read(query).map_err(Problem::bad_request)?;
    let keys = asked.run(engine).map_err(no_such_rule)?.into_iter();
    let keys =
        keys.map(|HotKey { rule, key, asked, denied, error, .. }| TopKey { rule, key, asked, denied, error });
    Ok(Reply::of(&BTreeMap::from([("keys", keys.collect::<Vec<_>>())])))
}

/// Returns the problem of a query for a rule that is not in force.
#[cold]
pub(super) fn no_such_rule(NoSuchRule(rule): NoSuchRule) -> Problem {
    let detail = format!("rule {rule:?}: there is no rule of this name; /v1/rules lists those in force");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// Parses the query of the URI. An unknown parameter is an error.
fn read(query: &[u8]) -> Result<TopQuery<Cow<'_, str>>, String> {
    let mut asked = TopQuery::default();
    for parameter in parameters(query)? {
        match parameter? {
            ("rule", value) => asked.rule = Some(value),
            ("n", value) => asked.set_keys(&value).map_err(|what| format!("n {what}"))?,
            ("by", value) => asked.set_by(&value).map_err(|what| format!("by {what}"))?,
            (other, _) => return Err(format!("{other:?} is no parameter; there are rule, n and by")),
        }
    }
    Ok(asked)
}

/// A parameter of a query: its name, and its decoded value.
type Parameter<'q> = Result<(&'q str, Cow<'q, str>), String>;

/// Returns the parameters of a query.
pub(super) fn parameters(query: &[u8]) -> Result<impl Iterator<Item = Parameter<'_>>, String> {
    let query = std::str::from_utf8(query).map_err(|_| "the query is no text".to_owned())?;
    Ok(query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value).ok_or_else(|| format!("{name}: this is no percent-encoded text"))?;
        Ok((name, value))
    }))
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
    use crate::top_keys::{TopOrder, USUAL_KEYS};

    #[test]
    fn a_query_says_a_rule_and_how_many() {
        let asked = |query: &'static str| {
            read(query.as_bytes()).map(|asked| (asked.rule.map(Cow::into_owned), asked.keys))
        };
        assert_eq!(asked(""), Ok((None, USUAL_KEYS)));
        assert_eq!(asked("n=100&rule=api"), Ok((Some("api".to_owned()), 100)));
        assert_eq!(asked("rule=a%2Fb%3a+c"), Ok((Some("a/b: c".to_owned()), USUAL_KEYS)));
        let by = |query: &'static str| read(query.as_bytes()).map(|asked| asked.by);
        assert_eq!(
            [by(""), by("by=denied"), by("by=asked")].map(Result::ok),
            [Some(TopOrder::Denied), Some(TopOrder::Denied), Some(TopOrder::Asked)]
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
