//! The verbs of a store over HTTP.
//!
//! Each verb reads a body, asks the engine, and writes the decision fields. Keys and limits come with the request; a
//! body that names a rule is for the module `rule_key`.

use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use serde::Deserialize;
use tidegate::{DecidedBy, Decision, Key, StoreError};
use tidegate_support::{LimitStatus, PolicyHeader, put_fields_on};

use super::admit::NO_STORE;
use super::fields::{self, DenialFields};
use super::json::{self, AdjustBody, PermitBody, ResetBody, TakeBody};
use super::limits::{self, ADHOC, KnownLimit};
use super::problem::Problem;
use super::reply::{self, PROBLEM, Reply};
use super::rule_key;
use crate::decision_fields;
use crate::engine::{Decided, Engine, not_available};
use crate::permit::{Lease, Permits};
use crate::worker::WorkerContext;

/// Decides, and spends if allowed.
///
/// A denial is status 429. It has `Retry-After`, unless it can never pass; the dialect decides about the other fields.
pub(super) async fn take(
    body: &[u8],
    headers: &mut HeaderMap,
    worker: &WorkerContext,
) -> Result<Reply, Problem> {
    let asked: TakeBody<'_> = json::read(body)?;
    let (key, ask) = (json::key(&asked.key)?, asked.ask());
    let known = limits::known(&worker.engine, &asked.limit)?;
    let decided = worker.engine.take(key.as_bytes(), &known.limit, ask).await?;
    worker.decided(key.as_bytes(), &decided);
    let dialect = worker.engine.settings().headers;
    Ok(reply::written(|out| {
        let Decided { decision, by } = decided;
        // With fail-open nothing is counted, so there is no remaining quota to report; a denial still has its reason.
        if by != DecidedBy::Open || !decision.is_allowed() {
            put_fields_on(out, headers, dialect, status(&known, &decision), &[]);
        }
        let limit = known.limit.limit();
        if decision.is_allowed() {
            let permits = Permits::of_key(key.as_bytes(), limit, &decided);
            fields::put_object(out, decided.into(), permits.as_ref());
            return Reply::json(out.split().freeze()).telling(permits);
        }
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        let cost = ask.cost.get();
        let status = StatusCode::TOO_MANY_REQUESTS;
        let denial =
            DenialFields { rule: None, decision, limit, penalty: None, cost, decided_by: by, status };
        fields::put_denial(out, denial, decided.into());
        Reply::new(status, PROBLEM, out.split().freeze())
    }))
}

/// Returns the header fields for a limit that came with the request.
#[inline]
fn status<'a>(known: &'a KnownLimit, decision: &'a Decision) -> LimitStatus<'a> {
    LimitStatus { name: ADHOC, policy: PolicyHeader::Made(&known.policy), decision }
}

/// Decides like a take, and spends nothing.
///
/// Replies 200 also for a denial, since nothing was denied yet.
pub(super) async fn peek(body: &[u8], headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    if rule_key::names_a_rule(body) {
        return rule_key::peek(body, headers, engine).await;
    }
    let asked: TakeBody<'_> = read(body)?;
    let key = Key::new(json::key(&asked.key)?);
    let known = limits::known(engine, &asked.limit)?;
    let decided = engine.peek(&key, &known.limit, asked.ask()).await?;
    Ok(reply::written(|out| {
        put_fields_on(out, headers, engine.settings().headers, status(&known, &decided.decision), &[]);
        // It is not a denial, so there is no `Retry-After`.
        headers.remove(header::RETRY_AFTER);
        fields::put_object(out, decided.into(), None);
        Reply::json(out.split().freeze())
    }))
}

/// Charges or refunds, and reports the remaining quota.
///
/// The decision fields describe an ask of cost 1 after the adjustment.
pub(super) async fn adjust(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked: AdjustBody<'_> = read(body)?;
    let key = Key::new(json::key(&asked.key)?);
    let known = limits::known(engine, &asked.limit)?;
    let (adjusted, left) = engine.adjust(&key, &known.limit, asked.amount.0).await?;
    Ok(reply::written(|out| {
        out.extend_from_slice(b"{\"adjusted\":\"");
        out.extend_from_slice(decision_fields::adjusted(adjusted).as_bytes());
        out.extend_from_slice(b"\",");
        fields::put(out, left.into());
        out.extend_from_slice(b"}");
        Reply::json(out.split().freeze())
    }))
}

/// Removes the state of a key under one limit, or under all.
///
/// The reply says if there was any state.
pub(super) async fn reset(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked: Result<ResetBody<'_>, _> = json::read_like(r#"{"key":"ana"}"#, body);
    let asked = asked.map_err(|problem| rule_key::without_rule(body).unwrap_or(problem))?;
    let key = Key::new(json::key(&asked.key)?);
    let reset = match &asked.limit {
        Some(text) => engine.reset_limit(&key, &limits::known(engine, text)?.limit).await,
        None => engine.reset(&key).await,
    };
    reset.map(|reset| word("reset", reset)).map_err(not_reset)
}

/// Reads a body with a key and a limit, in a verb that also takes a key of a rule.
fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    json::read(body).map_err(|problem| rule_key::without_rule(body).unwrap_or(problem))
}

/// Returns the problem of a failed reset: the store did not reply, or it cannot list all limits of a key.
fn not_reset(error: StoreError) -> Problem {
    if error.is_unfit() {
        let detail = format!("{}; add \"limit\" to the request", not_available(&error));
        return Problem::new(StatusCode::CONFLICT, detail);
    }
    error.into()
}

/// Releases permits, or renews their leases.
///
/// The reply is false if one of the permits was not in flight any more.
pub(super) async fn lease(body: &[u8], lease: Lease, engine: &Engine) -> Result<Reply, Problem> {
    let name = match lease {
        Lease::Release => "released",
        Lease::Renew => "renewed",
    };
    Ok(word(name, permits(body)?.change(lease, engine).await?))
}

/// Parses the permits of a body.
fn permits(body: &[u8]) -> Result<Permits, Problem> {
    let asked: PermitBody<'_> = json::read(body)?;
    Permits::parse(asked.permit.as_bytes()).ok_or_else(|| {
        Problem::bad_request(
            "permit: this is none; send the \"permit\" of an answer of /v1/take or /v1/admit as it was",
        )
    })
}

/// Returns an object of one boolean member.
pub(super) fn word(word: &str, is_so: bool) -> Reply {
    Reply::json(format!("{{\"{word}\":{is_so}}}"))
}
