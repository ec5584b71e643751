//! A decision as JSON.
//!
//! Bodies are written by hand into a reused buffer. The tests read them with a JSON parser.
//!
//! ```text
//! {"allowed":true,"limit":20,"remaining":19,"retry_after_ms":null,"reset_after_ms":100,"delay_ms":0,
//!  "rule":"api","decided_by":"memory",
//!  "limits":[{"name":"api","limit":20,"remaining":19,"retry_after_ms":null,"reset_after_ms":100}]}
//! ```
//!
//! `limits` exists in answers of rules only, `overridden` only if an override of the key decides, and `ban` only if a
//! key is banned.

use std::fmt::{self, Write as _};

use bytes::BytesMut;
use hyper::StatusCode;
use tidegate::{Algorithm, Ban, DecidedBy, Decision, Limit, Verdict};
use tidegate_rules::{Admission, Penalty};
use tidegate_support::{Problem, ProblemKind, in_ms, put_json, put_number, put_violated};

use super::limits::ADHOC;
use crate::decision_fields::{self, DecisionFields, LimitFields};
use crate::penalty::Strikes;
use crate::permit::Permits;
use crate::spans::span;

/// Writes the fields of every answer, without the braces around them.
///
/// The order of the members is fixed. Every member but `limits`, `overridden` and `ban` is always present, with `null` for no value.
#[inline]
pub(super) fn put(out: &mut BytesMut, fields: DecisionFields<'_>) {
    let allowed: &[u8] = if fields.is_allowed { b"\"allowed\":true" } else { b"\"allowed\":false" };
    out.extend_from_slice(allowed);
    out.extend_from_slice(b",\"limit\":");
    put_or_null(out, fields.limit);
    out.extend_from_slice(b",\"remaining\":");
    put_or_null(out, fields.remaining);
    out.extend_from_slice(b",\"retry_after_ms\":");
    put_or_null(out, fields.retry_after_ms);
    out.extend_from_slice(b",\"reset_after_ms\":");
    put_or_null(out, fields.reset_after_ms);
    out.extend_from_slice(b",\"delay_ms\":");
    put_or_null(out, fields.delay_ms);
    out.extend_from_slice(b",\"rule\":");
    match fields.rule {
        Some(rule) => put_json(out, rule),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"decided_by\":\"");
    out.extend_from_slice(fields.decided_by.as_str().as_bytes());
    out.extend_from_slice(b"\"");
    if let Some(admission) = fields.by_rules {
        put_limits(out, admission);
    }
    if fields.is_overridden {
        out.extend_from_slice(b",\"overridden\":true");
    }
    put_ban(out, fields.ban);
}

/// Writes the limits that decided as the member `limits`, the binding one first; an empty array if none did.
fn put_limits(out: &mut BytesMut, admission: &Admission) {
    out.extend_from_slice(b",\"limits\":[");
    for (nth, limit) in LimitFields::each(admission).enumerate() {
        out.extend_from_slice(if nth == 0 { b"{\"name\":" } else { b",{\"name\":" });
        put_json(out, limit.name);
        out.extend_from_slice(b",\"limit\":");
        put_number(out, limit.limit);
        out.extend_from_slice(b",\"remaining\":");
        put_number(out, limit.remaining);
        out.extend_from_slice(b",\"retry_after_ms\":");
        put_or_null(out, limit.retry_after_ms);
        out.extend_from_slice(b",\"reset_after_ms\":");
        put_number(out, limit.reset_after_ms);
        put_ban(out, limit.ban);
        out.extend_from_slice(b"}");
    }
    out.extend_from_slice(b"]");
}

/// Writes a ban as the member `ban`; nothing if there is none.
#[inline]
fn put_ban(out: &mut BytesMut, ban: Option<Ban>) {
    if let Some(ban) = ban {
        out.extend_from_slice(b",\"ban\":\"");
        out.extend_from_slice(decision_fields::ban(ban).as_bytes());
        out.extend_from_slice(b"\"");
    }
}

/// Writes a number, or `null`.
fn put_or_null(out: &mut BytesMut, number: Option<u64>) {
    match number {
        Some(number) => put_number(out, number),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes an answer as an object, with the permit if there is one.
pub(super) fn put_object(out: &mut BytesMut, fields: DecisionFields<'_>, permits: Option<&Permits>) {
    out.extend_from_slice(b"{");
    put(out, fields);
    if let Some(permits) = permits {
        // Writing to a buffer in memory cannot fail, and a permit is plain ASCII.
        let _ = write!(out, ",\"permit\":\"{permits}\"");
    }
    out.extend_from_slice(b"}");
}

/// A denial by a limit, and the ask that was denied.
#[derive(Clone, Copy, Debug)]
pub(super) struct DenialFields<'a> {
    /// The rule of the limit; `None` if the limit came with the request.
    pub(super) rule: Option<&'a str>,
    /// The decision of the limit.
    pub(super) decision: Decision,
    /// The limit that denied.
    pub(super) limit: &'a Limit,
    /// The penalty of the rule, if the key is banned.
    pub(super) penalty: Option<Penalty>,
    /// The cost that was denied, in units.
    pub(super) cost: u64,
    /// The source of the decision.
    pub(super) decided_by: DecidedBy,
    /// The status code of the reply.
    pub(super) status: StatusCode,
}

impl DenialFields<'_> {
    /// Returns true if the request was denied because the remote store is down: the store might have allowed it.
    fn is_for_want_of_the_store(&self) -> bool {
        let is_denied = matches!(self.decision.verdict_in_ticks(), Verdict::Denied { .. });
        is_denied
            && self.decision.ban().is_none()
            && (self.decided_by == DecidedBy::Closed || self.is_above_the_share())
    }

    /// Returns true if the cost is more than this server's share of the limit, by which the fallback decides. A pacer's
    /// limit is not an upper bound of the cost.
    fn is_above_the_share(&self) -> bool {
        self.decided_by == DecidedBy::Local
            && self.cost > self.decision.limit()
            && self.limit.algorithm() != Algorithm::Pacer
    }
}

/// Writes a denial as a problem, with the fields of every answer.
///
/// The type of the problem is `quota-exceeded`, or `temporary-reduced-capacity` if the store has no room or is
/// down.
pub(super) fn put_denial(out: &mut BytesMut, denial: DenialFields<'_>, fields: DecisionFields<'_>) {
    begin_denial(out, denial);
    put(out, fields);
    out.extend_from_slice(b"}");
}

/// Writes the problem members of a denial.
///
/// The object is still open: the caller appends the decision fields and the brace.
pub(super) fn begin_denial(out: &mut BytesMut, denial: DenialFields<'_>) {
    let is_for_want = denial.decision.is_store_full() || denial.is_for_want_of_the_store();
    let kind = if is_for_want { ProblemKind::ReducedCapacity } else { ProblemKind::QuotaExceeded };
    Problem { kind, status: denial.status, detail: Detail(denial) }.put(out);
    put_violated(out, denial.rule.unwrap_or(ADHOC));
    out.extend_from_slice(b",");
}

/// Writes a denial without a limit, as a problem with the fields of every answer.
pub(super) fn put_forbidden(out: &mut BytesMut, fields: DecisionFields<'_>) {
    begin_forbidden(out, &fields);
    put(out, fields);
    out.extend_from_slice(b"}");
}

/// Writes the problem members of such a denial. Without a rule it is that of a request to which no rule applies.
pub(super) fn begin_forbidden(out: &mut BytesMut, fields: &DecisionFields<'_>) {
    let explain = "POST /v1/explain with the same attributes reports why.";
    let detail = match fields.rule {
        Some(rule) if fields.is_overridden => {
            format!("An override of this key denies it under rule \"{rule}\"; {explain}")
        }
        Some(rule) => format!("Rule \"{rule}\" always denies this request; {explain}"),
        None => format!("No rule applies to this request, and such requests are denied; {explain}"),
    };
    Problem { kind: ProblemKind::Plain, status: StatusCode::FORBIDDEN, detail }.put(out);
    out.extend_from_slice(b",");
}

/// The text of a denial: when to retry, or why a retry is useless.
///
/// Exactly one of these: no room in the store, the store is down, a ban, a time to retry, a wait that is longer than
/// the maximum wait, or a cost that can never pass.
struct Detail<'a>(DenialFields<'a>);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DenialFields { rule, decision, limit, penalty, cost, .. } = self.0;
        let named = |other: &str| rule.map_or(other.to_owned(), |rule| format!("rule \"{rule}\""));
        match decision.verdict_in_ticks() {
            Verdict::Denied { .. } if decision.is_store_full() => {
                out.write_str("The store has no room for another key; try again in a while.")
            }
            Verdict::Denied { .. } if self.0.is_for_want_of_the_store() => {
                out.write_str("The store is not available, and ")?;
                if self.0.is_above_the_share() {
                    write!(
                        out,
                        "a cost of {cost} is more than this server's share of {}",
                        named("the limit")
                    )?;
                } else {
                    let limit = named("a limit that comes with the request");
                    write!(out, "{limit} denies every request without it")?;
                }
                out.write_str("; try again in a while.")
            }
            Verdict::Denied { retry_after } => {
                out.write_str(if decision.ban().is_some() { "The key is banned" } else { "Denied" })?;
                if let Some(rule) = rule {
                    write!(out, " by rule \"{rule}\"")?;
                }
                if let Some(penalty) = &penalty {
                    write!(out, ", for {} after {}", span(penalty.lasts), Strikes(penalty))?;
                }
                let ms = in_ms(retry_after);
                write!(out, "; the same request passes in {ms} ms if no other request spends meanwhile.")
            }
            _ if limit.algorithm() == Algorithm::Pacer => write!(
                out,
                "A cost of {cost} needs a longer wait than max_wait_ms allows; lower the cost, or raise max_wait_ms."
            ),
            _ => {
                let most = decision.limit();
                // In an all-or-none batch the costs of one key add up.
                let is_sum = cost <= most;
                match is_sum {
                    true => out.write_str("These costs, added up for one key, can never pass together: ")?,
                    false => write!(out, "A cost of {cost} can never pass: ")?,
                }
                let limit = named("this limit");
                write!(out, "{limit} holds at most {most}; ask for less, or raise the limit.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use tidegate::{Ask, Cost, DynamicLimiter, Limit, ManualClock, Map, Zone};

    use super::*;

    fn denial(adhoc: &DynamicLimiter, limit: &str, ask: Ask) -> Value {
        let limit: Limit = limit.parse().unwrap();
        let mut out = BytesMut::new();
        let decision = adhoc.admit("ana", &adhoc.prepare(limit), ask);
        put_denial(
            &mut out,
            DenialFields {
                rule: None,
                decision,
                limit: &limit,
                penalty: None,
                cost: ask.cost.get(),
                decided_by: DecidedBy::Memory,
                status: StatusCode::TOO_MANY_REQUESTS,
            },
            decision.into(),
        );
        serde_json::from_slice(&out).unwrap()
    }

    fn zone() -> DynamicLimiter {
        DynamicLimiter::on(&Zone::with_clock(1 << 16, Arc::new(ManualClock::new())), "")
    }

    #[test]
    fn a_denial_has_the_time_of_a_retry() {
        let adhoc = zone();
        assert!(adhoc.admit("ana", &adhoc.prepare(Limit::per_minute(1)), Ask::ONE).is_allowed());
        let denial = denial(&adhoc, "1/60s", Ask::ONE);
        assert_eq!(
            denial["detail"],
            "Denied; the same request passes in 60000 ms if no other request spends meanwhile."
        );
        assert_eq!((&denial["retry_after_ms"], &denial["delay_ms"]), (&60_000.into(), &Value::Null));
        assert_eq!(denial["violated-policies"], Value::from(vec!["adhoc"]));
        assert!(denial["type"].as_str().unwrap().ends_with("#quota-exceeded"));
    }

    #[test]
    fn what_can_never_pass_has_a_reason() {
        let detail = |limit, ask| denial(&zone(), limit, ask)["detail"].as_str().unwrap().to_owned();
        let too_much = detail("10/s", Ask::new(Cost::of(11)));
        assert_eq!(
            too_much,
            "A cost of 11 can never pass: this limit holds at most 10; ask for less, or raise the limit."
        );
        let too_hasty = Ask::new(Cost::of(5)).max_wait(tidegate::MILLISECOND);
        assert!(
            detail("10/s pacer burst 2 pay self", too_hasty)
                .contains("needs a longer wait than max_wait_ms allows")
        );
    }

    #[test]
    fn a_full_store_denies_new_keys_and_names_the_reason() {
        let adhoc = DynamicLimiter::on(&Map::new().max_keys(1), "");
        assert!(adhoc.admit("bob", &adhoc.prepare(Limit::per_hour(1)), Ask::ONE).is_allowed());
        let denial = denial(&adhoc, "5/h", Ask::ONE);
        assert!(denial["type"].as_str().unwrap().ends_with("#temporary-reduced-capacity"), "{denial}");
        assert_eq!((&denial["status"], &denial["allowed"]), (&429.into(), &false.into()));
        assert!(denial["retry_after_ms"].as_u64().unwrap() > 0);
    }
}
