//! `/v1/admit/batch`: many requests at once, each for itself or all or none.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::BytesMut;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use serde::Deserialize;
use tidegate::{StoreError, Ticks, Verdict};
use tidegate_rules::{Admission, Attributes};
use tidegate_tower::answer::{Dialect, put_fields_on, put_number};

use super::admit::{NO_STORE, refused, spoken, unavailable};
use super::problem::Problem;
use super::reply::{Kind, Reply};
use super::request::{Object, Request};
use super::{fields, json};
use crate::answer::Told;
use crate::engine::Engine;
use crate::permit::Permits;

/// The most requests that are asked about at once.
pub(super) const MAX_REQUESTS: usize = 1000;
/// How many of them a store elsewhere is asked about before its answers are waited for.
const MAX_AT_ONCE: usize = 64;

const EXAMPLE: &str = r#"{"requests":[{"attributes":{"ip":"192.0.2.7"}}]}"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    requests: Vec<Object<Request<'a>>>,
    /// Whether all are allowed or nothing is spent.
    #[serde(default)]
    all: bool,
}

/// Decides about many requests in their order.
pub(super) async fn admit(body: &[u8], headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    let Batch { requests, all } = json::read_like(EXAMPLE, body)?;
    if requests.len() > MAX_REQUESTS {
        let detail = format!("requests: {} of them; send at most {MAX_REQUESTS} at a time", requests.len());
        return Err(Problem::bad_request(detail));
    }
    let requests: Vec<_> = requests.into_iter().map(|request| request.0.into_attributes()).collect();
    if all { together(&requests, headers, engine).await } else { each(&requests, engine).await }
}

async fn each(requests: &[Attributes<'_>], engine: &Engine) -> Result<Reply, Problem> {
    let admissions = in_order(requests, engine).await.map_err(|error| unavailable(&error))?;
    let out = &mut BytesMut::from(&b"{"[..]);
    put(out, admissions.iter().all(Admission::is_allowed), admissions.iter().map(told));
    Ok(Reply::json(out.split().freeze()))
}

async fn together(
    requests: &[Attributes<'_>],
    headers: &mut HeaderMap,
    engine: &Engine,
) -> Result<Reply, Problem> {
    let admissions = engine.rules.admit_all(requests).await.map_err(|error| unavailable(&error))?;
    let out = &mut BytesMut::new();
    let Some((index, _)) = binding(&admissions) else {
        out.extend_from_slice(b"{");
        put(out, true, admissions.iter().map(told));
        return Ok(Reply::json(out.split().freeze()));
    };
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    let status = match admissions[index].binding() {
        Some(own) => {
            // What is left of each stands in the body; here is only when to try again.
            put_fields_on(out, headers, Dialect::None, spoken(own));
            fields::begin_refusal(out, refused(own, &admissions[index]));
            StatusCode::TOO_MANY_REQUESTS
        }
        None => {
            fields::begin_forbidden(out, admissions[index].rule());
            StatusCode::FORBIDDEN
        }
    };
    out.extend_from_slice(b"\"binding\":");
    put_number(out, index as u64);
    out.extend_from_slice(b",");
    put(out, false, admissions.iter().map(held_up));
    Ok(Reply { status, kind: Kind::Problem, body: out.split().freeze() })
}

/// What is said to each. Where states are elsewhere several are asked at once, each after those before it.
async fn in_order(requests: &[Attributes<'_>], engine: &Engine) -> Result<Vec<Admission>, StoreError> {
    let mut admissions = Vec::with_capacity(requests.len());
    if engine.elsewhere.is_none() {
        for request in requests {
            admissions.push(engine.rules.admit(request).await?);
        }
        return Ok(admissions);
    }
    for some in requests.chunks(MAX_AT_ONCE) {
        let asked = some.iter().map(|request| Box::pin(engine.rules.admit(request)));
        for answer in all(asked.collect()).await {
            admissions.push(answer?);
        }
    }
    Ok(admissions)
}

/// What comes of all of these, begun in their order.
async fn all<T, F: Future<Output = T>>(mut asked: Vec<Pin<Box<F>>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = asked.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut are_there = true;
        for (answer, future) in answers.iter_mut().zip(&mut asked).filter(|(answer, _)| answer.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(there) => *answer = Some(there),
                Poll::Pending => are_there = false,
            }
        }
        if are_there { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

/// How long one of those that stand or fall together holds up the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// It would pass.
    None,
    Some(Ticks),
    /// It costs more than ever passes.
    Never,
    Forbidden,
}

impl Wait {
    fn of(admission: &Admission) -> Wait {
        match admission.binding().map(|own| own.decision.verdict_in_ticks()) {
            None if admission.is_forbidden() => Wait::Forbidden,
            None | Some(Verdict::Allowed { .. }) => Wait::None,
            Some(Verdict::Denied { retry_after }) => Wait::Some(retry_after),
            Some(Verdict::Impossible) => Wait::Never,
        }
    }
}

/// The first of those with the longest wait; none if all pass.
fn binding(admissions: &[Admission]) -> Option<(usize, Wait)> {
    let waits = admissions.iter().map(Wait::of).enumerate();
    let longest = waits.rev().max_by_key(|(_, wait)| *wait)?;
    (longest.1 != Wait::None).then_some(longest)
}

/// What is told about a request, and the places in flight that it took.
type Answered<'a> = (Told<'a>, Option<Permits>);

fn told(admission: &Admission) -> Answered<'_> {
    (admission.into(), Permits::of(admission))
}

/// The same about a request that does not happen, as one of those with which it stands or falls was refused. What
/// would pass by itself has nothing to wait for.
fn held_up(admission: &Admission) -> Answered<'_> {
    let told = Told::from(admission);
    let retry_after_ms = if Wait::of(admission) == Wait::None { Some(0) } else { told.retry_after_ms };
    (Told { is_allowed: false, delay_ms: None, retry_after_ms, ..told }, None)
}

/// Whether all are allowed, and the answer to each, with the brace that ends them.
fn put<'a>(out: &mut BytesMut, is_allowed: bool, answers: impl Iterator<Item = Answered<'a>>) {
    let allowed: &[u8] = if is_allowed { b"\"allowed\":true" } else { b"\"allowed\":false" };
    out.extend_from_slice(allowed);
    out.extend_from_slice(b",\"answers\":[");
    for (index, (told, permits)) in answers.enumerate() {
        if index > 0 {
            out.extend_from_slice(b",");
        }
        fields::put_object(out, told, permits.as_ref());
    }
    out.extend_from_slice(b"]}");
}
