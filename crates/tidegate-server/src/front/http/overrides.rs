//! `/v1/overrides`: limits or decisions for single keys that replace those of their rule until a date.
//!
//! An override needs no change of the rules file, and ends by itself after at most 366 days. It is the tool for one
//! customer for one evening. Each has an entity tag, and a replacement names it.
//!
//! ```text
//! PUT /v1/overrides     {"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s","for":"2h"}
//! GET /v1/overrides     {"overrides":[{"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s",
//!                         "decision":null,"until":"2026-11-15T14:00:00Z","etag":"\"...\""}]}
//! DELETE /v1/overrides  {"rule":"api","key":{"ip":"192.0.2.7"}}
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use tidegate_rules::{Instead, Override, OverrideError, PutOverride};
use tidegate_support::{ceil_seconds, positive};

use super::operator::{tag_reply, unmet};
use super::problem::Problem;
use super::reply::Reply;
use super::request::Named;
use super::{json, limits};
use crate::date;
use crate::engine::Engine;
use crate::explained::Parts;
use crate::precondition::{Precondition, Tag, Unmet};

/// The farthest end of an override, in seconds from now.
const MAX_AHEAD_SECONDS: i64 = 366 * 24 * 3600;

/// The example in errors about the body.
const EXAMPLE: &str = r#"{"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s","for":"2h"}"#;

/// The body that puts an override in force.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Put<'a> {
    /// The name of the rule.
    #[serde(borrow)]
    rule: Cow<'a, str>,
    /// The key parts by name.
    #[serde(borrow)]
    key: Named<'a>,
    /// The limit in place of the rule's; either this or `decision`.
    #[serde(default, borrow)]
    limit: Option<Cow<'a, str>>,
    /// The static verdict in place of the rule's limit.
    #[serde(default)]
    decision: Option<Word>,
    /// The length, as in `2h`; either this or `until`.
    #[serde(default, borrow, rename = "for")]
    span: Option<Cow<'a, str>>,
    /// The end, as a date or as seconds since 1970.
    #[serde(default)]
    until: Option<Until>,
}

/// The body that removes an override.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Delete<'a> {
    #[serde(borrow)]
    rule: Cow<'a, str>,
    #[serde(borrow)]
    key: Named<'a>,
}

/// The words for a static verdict.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Allow,
    Deny,
}

/// A date, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Until(i64);

/// Returns all overrides in force, each with its tag.
pub(super) fn list(engine: &Engine) -> Reply {
    let all = engine.gate().overrides();
    Reply::of(&BTreeMap::from([("overrides", all.iter().map(tagged).collect::<Vec<_>>())]))
}

/// Puts an override in force, or replaces one. Warnings are in the reply and in the log.
///
/// The check of the precondition and the replacement are one step in the gate. Two operators therefore cannot both
/// replace the same version. Replies 404 for an unknown rule, and 409 if there are too many overrides.
pub(super) fn put(
    body: &[u8],
    named: &Precondition,
    headers: &mut HeaderMap,
    engine: &Engine,
) -> Result<Reply, Problem> {
    let asked: Put<'_> = json::read_like(EXAMPLE, body)?;
    let instead = asked.instead()?;
    let until = asked.until(engine.gate().date()).map_err(Problem::bad_request)?;
    has_these_parts(&asked.rule, &asked.key, engine)?;
    let may_replace = |old: Option<&Override>, new: &Override| {
        named.check_replacing(old.map(tag), old == Some(new)).map_err(not_met)
    };
    let put = engine.gate().put_override_if(&asked.rule, &asked.key.0, instead, until, may_replace);
    let PutOverride { put, warnings, .. } = put?;
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    engine.rules().tell_overridden(&put.rule, &warnings);
    tag_reply(headers, Some(tag(&put)));
    Ok(Reply::of(&Shown { warnings: Some(warnings), ..tagged(&put) }))
}

/// Removes an override. The reply says if there was one.
///
/// Without `If-Match` it removes whatever is there, since the request names the key.
pub(super) fn delete(body: &[u8], named: &Precondition, engine: &Engine) -> Result<Reply, Problem> {
    let asked: Delete<'_> = json::read_like(r#"{"rule":"api","key":{"ip":"192.0.2.7"}}"#, body)?;
    has_these_parts(&asked.rule, &asked.key, engine)?;
    let may_remove = |old: Option<&Override>| named.check(old.map(tag)).map_err(not_met);
    let removed: bool = engine.gate().remove_override_if(&asked.rule, &asked.key.0, may_remove)?;
    Ok(Reply::json(format!(r#"{{"removed":{removed}}}"#)))
}

/// Returns the problem of a change whose preconditions are not met.
fn not_met(why: Unmet) -> Problem {
    unmet(why, "the override of this key", "/v1/overrides")
}

/// Returns the tag of an override: the tag of its JSON.
///
/// The tag does not depend on warnings, which are only in the reply to the change.
fn tag(one: &Override) -> Tag {
    Tag::of(&Reply::of(&Shown::from(one)).body)
}

impl Put<'_> {
    /// Returns what replaces the rule's limit. Exactly one of limit and decision has to be present.
    fn instead(&self) -> Result<Instead, Problem> {
        match (&self.limit, self.decision) {
            (Some(limit), None) => limits::parsed(limit).map(Instead::Limit),
            (None, Some(Word::Allow)) => Ok(Instead::Allow),
            (None, Some(Word::Deny)) => Ok(Instead::Deny),
            _ => Err(Problem::bad_request(
                "what holds instead is either a limit or a decision; send one of them, as in \"limit\":\"100/s\"",
            )),
        }
    }

    /// Returns the end of the override, in seconds since 1970.
    fn until(&self, now: i64) -> Result<i64, String> {
        let until = match (&self.span, self.until) {
            (Some(span), None) => {
                let span = positive(span).map_err(|what| format!("for {span:?}: {what}"))?;
                let seconds = ceil_seconds(span);
                now.saturating_add_unsigned(seconds)
            }
            (None, Some(Until(until))) => until,
            _ => {
                return Err(
                    "an end is said by either for or until; send one of them, as in \"for\":\"2h\"".into()
                );
            }
        };
        if until <= now {
            return Err(format!("until {}: is over; send a date to come", date::written(until)));
        }
        if until - now > MAX_AHEAD_SECONDS {
            return Err(format!(
                "until {}: is more than 366 days ahead; write a rule for what holds longer",
                date::written(until)
            ));
        }
        Ok(until)
    }
}

/// Rejects a key with a part that is not in the rule's key, since it would have no effect.
pub(super) fn has_these_parts(rule: &str, key: &Named<'_>, engine: &Engine) -> Result<(), Problem> {
    let odd = engine.gate().with_policy(|policy| {
        let rule = policy.rules().iter().find(|known| known.name() == rule)?;
        key.0.names().find(|name| rule.key().all(|part| part != *name)).map(str::to_owned)
    });
    match odd {
        Some(part) => Err(Problem::bad_request(format!(
            "key: {part:?} is no part of this rule's key; /v1/rules says which parts it has"
        ))),
        None => Ok(()),
    }
}

/// Converts the error of the gate: 404 for an unknown rule, 409 above a bound, else 400.
impl From<OverrideError> for Problem {
    fn from(error: OverrideError) -> Problem {
        let status = match error {
            OverrideError::NoSuchRule(_) => StatusCode::NOT_FOUND,
            OverrideError::TooMany | OverrideError::TooLong { .. } => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, error.to_string())
    }
}

/// An override as JSON.
#[derive(serde::Serialize)]
struct Shown<'a> {
    /// The name of the rule.
    rule: &'a str,
    key: Parts<'a, String>,
    limit: Option<String>,
    decision: Option<&'static str>,
    until: String,
    /// The entity tag. It is left out where the tag itself is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// Warnings about an override that was put: likely mistakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
}

impl<'a> From<&'a Override> for Shown<'a> {
    fn from(one: &'a Override) -> Shown<'a> {
        let Override { rule, key, instead, until, .. } = one;
        let (limit, decision) = match instead {
            Instead::Limit(limit) => (Some(limit.to_string()), None),
            Instead::Allow => (None, Some("allow")),
            Instead::Deny => (None, Some("deny")),
        };
        Shown {
            rule,
            key: Parts(key),
            limit,
            decision,
            until: date::written(*until),
            etag: None,
            warnings: None,
        }
    }
}

/// Returns an override with its tag.
///
/// Both the list and the reply to a change contain it.
fn tagged(one: &Override) -> Shown<'_> {
    Shown { etag: Some(tag(one).to_string()), ..one.into() }
}

/// The visitor of a date: text or a number.
struct Date;

impl Visitor<'_> for Date {
    type Value = Until;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a date such as \"2026-11-15T12:00:00Z\", or whole seconds since 1970")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Until, E> {
        date::read(text).map(Until).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Until, E> {
        Ok(Until(seconds))
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Until, E> {
        Ok(Until(seconds.try_into().unwrap_or(i64::MAX)))
    }
}

impl<'de> Deserialize<'de> for Until {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Until, D::Error> {
        from.deserialize_any(Date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_whole_seconds_ahead_and_at_most_366_days() {
        let until = |end: &str| {
            let body = format!(r#"{{"rule":"api","key":{{}},"decision":"deny",{end}}}"#);
            let put: Put<'_> = json::read_like(EXAMPLE, body.as_bytes()).unwrap();
            put.until(100).ok()
        };
        assert_eq!(until(r#""for":"1s""#), Some(101));
        assert_eq!(until(r#""for":"1s500ms""#), Some(102));
        assert_eq!(until(r#""for":"1us""#), Some(101));
        assert_eq!(until(r#""until":101"#), Some(101));
        assert_eq!(until(r#""until":100"#), None);
        assert_eq!(until(r#""until":-9223372036854775808"#), None);
        assert_eq!(until(&format!(r#""until":{}"#, 100 + MAX_AHEAD_SECONDS)), Some(100 + MAX_AHEAD_SECONDS));
        assert_eq!(until(&format!(r#""until":{}"#, 101 + MAX_AHEAD_SECONDS)), None);
    }
}
