//! Peek, adjust and reset of one key under a rule: `/v1/peek`, `/v1/adjust` and `/v1/reset` with a `rule` in the body.
//!
//! ```text
//! POST /v1/peek    {"rule": "login", "attributes": {"user": "ana"}}
//! POST /v1/adjust  {"rule": "login", "key": {"user": "ana"}, "amount": -3}
//! POST /v1/reset   {"rule": "login", "key": {"user": "ana"}}
//! ```
//!
//! `attributes` are those of a request, of which the rule reads its key. `key` is the key by its parts alone, so a
//! misspelled part is an error. An adjustment and a reset change what holds for others: they need a server with a
//! token, as a change of the rules does.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tidegate::StoreError;
use tidegate_rules::{Admission, RuleKey, RuleKeyError};

use super::fields;
use super::json::{self, Amount, Milliseconds, Units};
use super::overrides::{has_these_parts, not_kept};
use super::problem::Problem;
use super::reply::{self, Reply};
use super::request::{Named, NamedParts};
use super::route::Route;
use super::{admit, verbs};
use crate::decision_fields;
use crate::engine::{Engine, not_available};
use crate::overrides::{AuditRecord, Author, audited};

/// The example in errors about the body.
const EXAMPLE: &str = r#"{"rule":"login","key":{"user":"ana"}}"#;

/// The member that distinguishes the body of a rule's key from that of a limit.
#[derive(Deserialize)]
struct HasRule {
    rule: Option<IgnoredAny>,
}

/// The body of `/v1/peek`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulePeekBody<'a> {
    #[serde(borrow)]
    rule: Cow<'a, str>,
    #[serde(borrow, default)]
    attributes: Option<Named<'a>>,
    #[serde(borrow, default)]
    key: Option<NamedParts<'a>>,
    /// The cost of the request, which the cost of the rule multiplies.
    #[serde(default)]
    cost: Units,
    /// The longest acceptable delay; the rule's own if it is missing.
    #[serde(default)]
    max_wait_ms: Option<Milliseconds>,
}

/// The body of `/v1/adjust`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleAdjustBody<'a> {
    #[serde(borrow)]
    rule: Cow<'a, str>,
    #[serde(borrow, default)]
    attributes: Option<Named<'a>>,
    #[serde(borrow, default)]
    key: Option<NamedParts<'a>>,
    /// The units to charge, or to refund if negative, which the cost of the rule multiplies.
    amount: Amount,
}

/// The body of `/v1/reset`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleResetBody<'a> {
    #[serde(borrow)]
    rule: Cow<'a, str>,
    #[serde(borrow, default)]
    attributes: Option<Named<'a>>,
    #[serde(borrow, default)]
    key: Option<NamedParts<'a>>,
}

/// Returns true if the body names a rule.
///
/// Anything else, also what is not JSON, is read as a body with a key and a limit.
pub(super) fn names_a_rule(body: &[u8]) -> bool {
    // serde would also accept an array of the values.
    body.trim_ascii_start().first() == Some(&b'{')
        && serde_json::from_slice::<HasRule>(body).is_ok_and(|body| body.rule.is_some())
}

/// Returns the decision of the rule alone about a request of the key, and spends nothing.
///
/// Replies 200 also for a denial, since nothing was denied yet.
pub(super) async fn peek(body: &[u8], headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    let RulePeekBody { rule, attributes, key, cost, max_wait_ms } = json::read_like(EXAMPLE, body)?;
    let mut of = OfKey { rule, attributes, key }.attributes(engine)?;
    of.1.0 = std::mem::take(&mut of.1.0).cost(cost.0);
    if let Some(longest) = max_wait_ms {
        of.1.0 = std::mem::take(&mut of.1.0).max_wait(longest.0);
    }
    let key = engine.gate().rule_key(&of.0, &of.1.0)?;
    let admission = key.peek().await?;
    Ok(reply::written(|out| {
        admit::put_status(out, headers, &admission, engine);
        // It is not a denial, so there is no `Retry-After`.
        headers.remove(header::RETRY_AFTER);
        fields::put_object(out, (&admission).into(), None);
        Reply::json(out.split().freeze())
    }))
}

/// Returns true for an adjustment and for a reset of a key of a rule.
pub(super) fn is_change(route: Route, body: &[u8]) -> bool {
    matches!(route, Route::Adjust | Route::Reset) && names_a_rule(body)
}

/// Returns the problem of a body that names a key by its parts without a rule, if it is one.
#[cold]
pub(super) fn without_rule(body: &[u8]) -> Option<Problem> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let is_of_rule = body["rule"].is_null() && (body["key"].is_object() || body["attributes"].is_object());
    is_of_rule.then(|| {
        Problem::bad_request(format!(
            "body: \"rule\" is missing: a key by its parts belongs to a rule; send {EXAMPLE}"
        ))
    })
}

/// Adjusts or resets a key of a rule, after a line in the audit log.
pub(super) async fn change(
    route: Route,
    body: &[u8],
    author: Result<Author, Problem>,
    engine: &Engine,
) -> Result<Reply, Problem> {
    match route {
        Route::Adjust => adjust(body, author, engine).await,
        _ => reset(body, author, engine).await,
    }
}

/// Charges or refunds, and reports the remaining quota.
///
/// The decision fields describe a request of cost 1 after the adjustment.
async fn adjust(body: &[u8], author: Result<Author, Problem>, engine: &Engine) -> Result<Reply, Problem> {
    let RuleAdjustBody { rule, attributes, key, amount } = json::read_like(EXAMPLE, body)?;
    let key = may_change(engine, OfKey { rule, attributes, key })?;
    let audit = AuditRecord::adjust(&key, amount.0, &author?, engine.gate().date());
    let adjusted = audited(engine.audit(), audit, engine.adjust_rule_key(&key, amount.0)).await;
    let (adjusted, left): (_, Admission) = adjusted.map_err(|why| not_kept(&why, engine))??;
    Ok(reply::written(|out| {
        out.extend_from_slice(b"{\"adjusted\":\"");
        out.extend_from_slice(decision_fields::adjusted(adjusted).as_bytes());
        out.extend_from_slice(b"\",");
        fields::put(out, (&left).into());
        out.extend_from_slice(b"}");
        Reply::json(out.split().freeze())
    }))
}

/// Removes all counts of the key under the rule.
///
/// The reply says if there were any.
async fn reset(body: &[u8], author: Result<Author, Problem>, engine: &Engine) -> Result<Reply, Problem> {
    let RuleResetBody { rule, attributes, key } = json::read_like(EXAMPLE, body)?;
    let key = may_change(engine, OfKey { rule, attributes, key })?;
    let audit = AuditRecord::reset(&key, &author?, engine.gate().date());
    let reset = audited(engine.audit(), audit, key.reset()).await.map_err(|why| not_kept(&why, engine))?;
    reset.map(|reset| verbs::word("reset", reset)).map_err(not_reset)
}

/// Returns the problem of a failed reset: the store did not reply, or it cannot list all limits of the rules.
fn not_reset(error: StoreError) -> Problem {
    if error.is_unfit() {
        return Problem::new(StatusCode::CONFLICT, not_available(&error));
    }
    error.into()
}

/// A rule, and its key in one of two forms.
struct OfKey<'a> {
    rule: Cow<'a, str>,
    attributes: Option<Named<'a>>,
    key: Option<NamedParts<'a>>,
}

impl<'a> OfKey<'a> {
    /// Returns the name of the rule, and the attributes that name the key.
    fn attributes(self, engine: &Engine) -> Result<(Cow<'a, str>, Named<'a>), Problem> {
        let named = match (self.attributes, self.key) {
            (Some(_), Some(_)) => {
                return Err(Problem::bad_request(
                    "body: has both \"attributes\" and \"key\"; send the attributes of a request, or the parts of the key",
                ));
            }
            (None, Some(key)) => {
                has_these_parts(&self.rule, &key, engine)?;
                key.parts
            }
            (attributes, None) => attributes.unwrap_or_default(),
        };
        Ok((self.rule, named))
    }
}

/// Returns the key, if the server has a token: without one, any local process could change what holds for others.
fn may_change(engine: &Engine, of: OfKey<'_>) -> Result<RuleKey, Problem> {
    if let Err(why) = engine.may_change() {
        return Err(Problem::new(StatusCode::FORBIDDEN, why));
    }
    let (rule, named) = of.attributes(engine)?;
    Ok(engine.gate().rule_key(&rule, &named.0)?)
}

/// Converts the error of the gate: 404 for an unknown rule, 409 for one that decides nothing by a limit, else 400.
impl From<RuleKeyError> for Problem {
    fn from(error: RuleKeyError) -> Problem {
        let status = match error {
            RuleKeyError::NoSuchRule { .. } => StatusCode::NOT_FOUND,
            RuleKeyError::NoLimit(_) | RuleKeyError::Candidate { .. } | RuleKeyError::Shadow(_) => {
                StatusCode::CONFLICT
            }
            _ => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_about_a_rule_if_it_has_that_member() {
        for (body, names) in [
            (r#"{"rule":"login"}"#, true),
            (r#"{"attributes":{},"rule":5}"#, true),
            (r#"{"key":"ana","limit":"1/s"}"#, false),
            (r#"{"key":"rule","limit":"rule"}"#, false),
            (r#"{"rule":null}"#, false),
            (r#"["rule"]"#, false),
            ("rule", false),
            ("", false),
        ] {
            assert_eq!(names_a_rule(body.as_bytes()), names, "{body}");
        }
    }
}
