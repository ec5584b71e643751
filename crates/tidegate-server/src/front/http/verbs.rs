//! The verbs of a store, asked over HTTP.

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};
use tidegate::{Ask, Decision};

use super::fields::Refused;
use super::headers::Spoken;
use super::json::{self, Adjust, OfPermit, Reset, Take};
use super::limits::{self, Known};
use super::problem::Problem;
use super::reply::{self, Kind, Reply};
use super::{fields, headers};
use crate::answer::{self, Answer};
use crate::engine::Engine;
use crate::permit::Permits;
use crate::worker::Post;

/// Decides, and spends if allowed.
#[inline]
pub(super) fn take(body: &[u8], headers: &mut HeaderMap, post: &Post) -> Result<Reply, Problem> {
    let asked: Take<'_> = json::read(body)?;
    let (key, ask) = (json::key(&asked.key)?, asked.ask());
    limits::with(&asked.limit, |known| {
        let decision = post.engine.adhoc.take(key, &known.limit, ask);
        post.meter().decided(&decision);
        let dialect = post.engine.settings.headers;
        Ok(reply::written(|out| {
            headers::put(headers, out, dialect, spoken(known, decision));
            if decision.is_allowed() {
                return Reply::json(allowed(out, decision, key, known));
            }
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            let cost = ask.cost.get();
            fields::put_refusal(out, Refused { rule: None, decision, limit: &known.limit, cost });
            Reply { status: StatusCode::TOO_MANY_REQUESTS, kind: Kind::Problem, body: out.split().freeze() }
        }))
    })
}

#[inline]
fn allowed(out: &mut BytesMut, decision: Decision, key: &str, known: &Known) -> Bytes {
    let permits = decision.permit().map(|id| Permits::of_key(key.as_bytes(), &known.limit, id));
    fields::put_object(out, Answer(decision).into(), permits.as_ref());
    out.split().freeze()
}

/// What the header fields say about a limit that came with the request.
#[inline]
fn spoken(known: &Known, decision: Decision) -> Spoken<'_, impl FnOnce(&mut BytesMut) -> HeaderValue> {
    Spoken { name: headers::ADHOC, policy: |_: &mut BytesMut| known.policy.clone(), answer: Answer(decision) }
}

/// What a take would say.
pub(super) fn peek(body: &[u8], headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    let asked: Take<'_> = json::read(body)?;
    let key = json::key(&asked.key)?;
    limits::with(&asked.limit, |known| {
        let decision = engine.adhoc.peek(key, &known.limit, asked.ask());
        Ok(reply::written(|out| {
            headers::put(headers, out, engine.settings.headers, spoken(known, decision));
            // It was not refused: it was only looked at.
            headers.remove(header::RETRY_AFTER);
            fields::put_object(out, Answer(decision).into(), None);
            Reply::json(out.split().freeze())
        }))
    })
}

/// Charges or gives back, and says what is left.
pub(super) fn adjust(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked: Adjust<'_> = json::read(body)?;
    let key = json::key(&asked.key)?;
    limits::with(&asked.limit, |known| {
        let adjusted = answer::adjusted(engine.adhoc.adjust(key, &known.limit, asked.amount.0));
        let answer = Answer(engine.adhoc.peek(key, &known.limit, Ask::ONE));
        Ok(reply::written(|out| {
            out.extend_from_slice(b"{\"adjusted\":\"");
            out.extend_from_slice(adjusted.as_bytes());
            out.extend_from_slice(b"\",");
            fields::put(out, answer.into());
            out.extend_from_slice(b"}");
            Reply::json(out.split().freeze())
        }))
    })
}

/// Forgets a key.
pub(super) fn reset(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked: Reset<'_> = json::read(body)?;
    Ok(word("reset", engine.adhoc.reset(json::key(&asked.key)?)))
}

/// Gives a place in flight back.
pub(super) fn release(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    Ok(word("released", permits(body)?.release(engine)))
}

/// Starts a lease anew.
pub(super) fn renew(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    Ok(word("renewed", permits(body)?.renew(engine)))
}

fn permits(body: &[u8]) -> Result<Permits, Problem> {
    let asked: OfPermit<'_> = json::read(body)?;
    Permits::parse(asked.permit.as_bytes()).ok_or_else(|| {
        Problem::bad_request(
            "permit: this is none; send the \"permit\" of an answer of /v1/take or /v1/admit as it was",
        )
    })
}

/// One word, and whether it is so.
fn word(word: &str, is_so: bool) -> Reply {
    Reply::json(format!("{{\"{word}\":{is_so}}}"))
}
