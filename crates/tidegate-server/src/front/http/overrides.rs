//! `/v1/overrides`: limits or decisions for single keys that replace those of their rule until a date.
//!
//! An override needs no change of the rules file. It ends by itself after at most 366 days, or lasts until it is deleted.
//! Each has an entity tag, and a replacement names it. Overrides are kept in a file or in Redis; a change is answered
//! when it is kept and in force.
//!
//! ```text
//! PUT /v1/overrides     {"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s","for":"2h"}
//! GET /v1/overrides     {"kept_in":"file","wrong":null,"overrides":[{"rule":"api","key":{"ip":"192.0.2.7"},
//!                         "limit":"100/s","decision":null,"until":"2026-11-15T14:00:00Z","by":"ana",
//!                         "at":"2026-11-15T12:00:00Z","in_effect":true,"etag":"\"...\""}]}
//! DELETE /v1/overrides  {"rule":"api","key":{"ip":"192.0.2.7"}}
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use tidegate_rules::{Instead, Override, OverrideError, PutOverride};
use tidegate_support::{ceil_seconds, positive};

use super::operator::{Conditions, tag_reply, unmet};
use super::problem::Problem;
use super::reply::Reply;
use super::request::NamedParts;
use super::{json, limits};
use crate::date;
use crate::engine::Engine;
use crate::explained::Parts;
use crate::overrides::{self, AllowOrDeny, AuditRecord, NotKept, OverrideRecord};
use crate::precondition::{Tag, Unmet};

/// The farthest end of an override, in seconds from now.
const MAX_AHEAD_SECONDS: i64 = 366 * 24 * 3600;

/// The example in errors about the body.
const EXAMPLE: &str = r#"{"rule":"api","key":{"ip":"192.0.2.7"},"limit":"100/s","for":"2h"}"#;

/// The warning about an override without an end that is kept in memory.
const ENDS_WITH_THE_SERVER: &str = "until \"never\": this server keeps overrides in memory, so this one ends with the \
    server; name a file with [server] overrides_file";

/// The body that puts an override in force.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Put<'a> {
    /// The name of the rule.
    #[serde(borrow)]
    rule: Cow<'a, str>,
    /// The key parts by name.
    #[serde(borrow)]
    key: NamedParts<'a>,
    /// The limit in place of the rule's; either this or `decision`.
    #[serde(default, borrow)]
    limit: Option<Cow<'a, str>>,
    /// The static verdict in place of the rule's limit.
    #[serde(default)]
    decision: Option<AllowOrDeny>,
    /// The length, as in `2h`; either this or `until`.
    #[serde(default, borrow, rename = "for")]
    span: Option<Cow<'a, str>>,
    /// The end, as a date or as seconds since 1970; `never` for none.
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
    key: NamedParts<'a>,
}

/// The end of an override.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// A date, in seconds since 1970.
    At(i64),
    /// There is none.
    Never,
}

/// The list of overrides.
#[derive(serde::Serialize)]
struct OverrideList<'a> {
    /// The place where they are kept: `file`, `redis` or `memory`.
    kept_in: &'static str,
    /// The reason why that place could not be read at the last look; those that were read before it are in force then.
    wrong: Option<String>,
    overrides: Vec<Shown<'a>>,
}

/// Returns all overrides that have not ended, each with its tag.
pub(super) fn list(engine: &Engine) -> Reply {
    let (all, keeper) = (engine.gate().overrides(), engine.overrides());
    let idle: BTreeSet<_> = engine.gate().idle_overrides().into_iter().map(|idle| idle.one.id()).collect();
    let shown = |one| Shown { in_effect: Some(!idle.contains(&Override::id(one))), ..tagged(one) };
    let overrides = all.iter().map(shown).collect();
    Reply::of(&OverrideList { kept_in: keeper.kept_in(), wrong: keeper.wrong(), overrides })
}

/// Keeps an override and puts it in force, or replaces one. Warnings are in the reply and in the log.
///
/// The check of the precondition and the replacement are one step in the place where overrides are kept. Two operators
/// therefore cannot both replace the same version, also on different servers. Replies 404 for an unknown rule, 409 if
/// there are too many overrides, and 503 if the change cannot be kept.
pub(super) async fn put(
    body: &[u8],
    conditions: Conditions,
    headers: &mut HeaderMap,
    engine: &Arc<Engine>,
) -> Result<Reply, Problem> {
    let asked: Put<'_> = json::read_like(EXAMPLE, body)?;
    let instead = asked.instead()?;
    let until = asked.until(engine.gate().date()).map_err(Problem::bad_request)?;
    has_these_parts(&asked.rule, &asked.key, engine)?;
    let PutOverride { put: mut new, warnings, .. } =
        engine.gate().new_override(&asked.rule, &asked.key.parts.0, instead, until)?;
    let Conditions { named, author } = conditions;
    new.by = author.shown();
    let audit = AuditRecord::put(&new, &author, new.at);
    let place = engine.clone();
    let put = overrides::change(engine.clone(), audit, move |set| {
        let old = set.get(&new.id());
        let same = old.filter(|old| old.is_same_as(&new)).cloned();
        named.check_replacing(old.map(tag), same.is_some()).map_err(not_met)?;
        // One that changes nothing keeps its author and its tag.
        if let Some(same) = same {
            return Ok(same);
        }
        set.put(new.clone())?;
        Ok::<_, Refused>(new.clone())
    });
    let put = put.await.map_err(|refused| refused.problem(&place))?;
    let mut warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    if until.is_none() && place.overrides().kept_in() == "memory" {
        warnings.push(ENDS_WITH_THE_SERVER.to_owned());
    }
    engine.rules().tell_overridden(&put.rule, &warnings);
    tag_reply(headers, Some(tag(&put)));
    Ok(Reply::of(&Shown { warnings: Some(warnings), in_effect: Some(true), ..tagged(&put) }))
}

/// Removes an override. The reply says if there was one.
///
/// Without `If-Match` it removes whatever is there, since the request names the key. The key may also be written as it is
/// listed, which is the only way to name one whose rule is not in force.
pub(super) async fn delete(
    body: &[u8],
    conditions: Conditions,
    engine: &Arc<Engine>,
) -> Result<Reply, Problem> {
    let listed = OverrideRecord::named_key(body).filter(|id| engine.gate().override_set().get(id).is_some());
    let id = match listed {
        Some(id) => id,
        None => {
            let asked: Delete<'_> = json::read_like(r#"{"rule":"api","key":{"ip":"192.0.2.7"}}"#, body)?;
            has_these_parts(&asked.rule, &asked.key, engine)?;
            engine.gate().override_id(&asked.rule, &asked.key.parts.0)?
        }
    };
    let Conditions { named, author } = conditions;
    let audit = AuditRecord::delete(OverrideRecord::of_key(&id), &author, engine.gate().date());
    let removed = overrides::change(engine.clone(), audit, move |set| {
        named.check(set.get(&id).map(tag)).map_err(not_met)?;
        Ok::<_, Refused>(set.remove(&id).is_some())
    });
    let removed = removed.await.map_err(|refused| refused.problem(engine))?;
    Ok(Reply::json(format!(r#"{{"removed":{removed}}}"#)))
}

/// The reason why a change was not made.
enum Refused {
    /// The change itself is at fault.
    Problem(Problem),
    /// The change cannot be kept.
    NotKept(NotKept),
}

impl Refused {
    fn problem(self, engine: &Engine) -> Problem {
        match self {
            Refused::Problem(problem) => problem,
            Refused::NotKept(why) => not_kept(&why, engine),
        }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        Refused::Problem(problem)
    }
}

impl From<OverrideError> for Refused {
    fn from(error: OverrideError) -> Refused {
        Refused::Problem(error.into())
    }
}

impl From<NotKept> for Refused {
    fn from(why: NotKept) -> Refused {
        Refused::NotKept(why)
    }
}

/// Returns the problem of a change that cannot be kept, and reports it: an operator of this server has to act.
pub(super) fn not_kept(why: &NotKept, engine: &Engine) -> Problem {
    engine.rules().report("a change was not made", &[why.to_string()]);
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
}

/// Returns the problem of a change whose preconditions are not met.
fn not_met(why: Unmet) -> Problem {
    unmet(why, "the override of this key", "/v1/overrides")
}

/// Returns the tag of an override: the tag of its JSON.
///
/// The tag does not depend on warnings, which are only in the reply to the change, nor on whether the rule is in force.
fn tag(one: &Override) -> Tag {
    Tag::of(&Reply::of(&Shown::from(one)).body)
}

impl Put<'_> {
    /// Returns what replaces the rule's limit. Exactly one of limit and decision has to be present.
    fn instead(&self) -> Result<Instead, Problem> {
        match (&self.limit, self.decision) {
            (Some(limit), None) => limits::parsed(limit).map(Instead::Limit),
            (None, Some(AllowOrDeny::Allow)) => Ok(Instead::Allow),
            (None, Some(AllowOrDeny::Deny)) => Ok(Instead::Deny),
            _ => Err(Problem::bad_request(
                "what holds instead is either a limit or a decision; send one of them, as in \"limit\":\"100/s\"",
            )),
        }
    }

    /// Returns the end of the override, in seconds since 1970; `None` if it has none.
    fn until(&self, now: i64) -> Result<Option<i64>, String> {
        let until = match (&self.span, self.until) {
            (Some(span), None) => {
                if span == "never" {
                    return Err("for \"never\": is no length; send \"until\":\"never\" for no end".into());
                }
                let span = positive(span).map_err(|what| format!("for {span:?}: {what}"))?;
                let seconds = ceil_seconds(span);
                now.saturating_add_unsigned(seconds)
            }
            (None, Some(Until::Never)) => return Ok(None),
            (None, Some(Until::At(until))) => until,
            _ => {
                return Err(
                    "an end is said by either for or until; send one of them, as in \"for\":\"2h\", or \
                            \"until\":\"never\" for none"
                        .into(),
                );
            }
        };
        if until <= now {
            return Err(format!("until {}: is over; send a date to come", date::written(until)));
        }
        if until - now > MAX_AHEAD_SECONDS {
            return Err(format!(
                "until {}: is more than 366 days ahead; send \"until\":\"never\", or write a rule for what holds longer",
                date::written(until)
            ));
        }
        Ok(Some(until))
    }
}

/// Rejects a key with a part that is not in the rule's key, since it would have no effect, and one with a group of
/// addresses that the rule does not count.
pub(super) fn has_these_parts(rule: &str, key: &NamedParts<'_>, engine: &Engine) -> Result<(), Problem> {
    if let Some(group) = key.group {
        group.check(rule, engine.gate()).map_err(Problem::bad_request)?;
    }
    let key = &key.parts;
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
    /// The end; `None` if there is none.
    until: Option<String>,
    /// The author: the name that the request gave, or else the address of the client.
    by: Option<&'a str>,
    /// The date at which it was put.
    at: String,
    /// False if its rule is not in force or has another key. It is left out where the tag is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_effect: Option<bool>,
    /// The entity tag. It is left out where the tag itself is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// Warnings about an override that was put: likely mistakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
}

impl<'a> From<&'a Override> for Shown<'a> {
    fn from(one: &'a Override) -> Shown<'a> {
        let Override { rule, key, instead, until, by, at, .. } = one;
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
            until: until.map(date::written),
            by: by.as_deref(),
            at: date::written(*at),
            in_effect: None,
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
        out.write_str("a date such as \"2026-11-15T12:00:00Z\", whole seconds since 1970, or \"never\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Until, E> {
        if text == "never" {
            return Ok(Until::Never);
        }
        date::read(text).map(Until::At).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Until, E> {
        Ok(Until::At(seconds))
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Until, E> {
        Ok(Until::At(seconds.try_into().unwrap_or(i64::MAX)))
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
        assert_eq!(until(r#""until":"never""#), Some(None));
        let until = |end: &str| until(end).flatten();
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
