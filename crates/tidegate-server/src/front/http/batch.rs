//! `/v1/admit/batch`: many requests at once, decided individually, or all or none.
//!
//! The cost of a batch grows with its asks. An ask is one request under one rule. Asks are counted first, so that a
//! batch that is too large spends nothing. Individual requests are decided in stretches, each at one instant. The
//! worker serves other connections between two stretches.
//!
//! With `"all": true` the batch is one decision: either all requests spend, or none does. Its denial names the
//! request that blocks the others longest as `binding`. Without it each request has its own verdict, and the status
//! is 200 even if all are denied.
//!
//! ```text
//! POST /v1/admit/batch  {"requests":[{"attributes":{"user":"ana"}},{"attributes":{"user":"bob"},"cost":3}]}
//! 200                   {"allowed":false,"answers":[{"allowed":true,...},{"allowed":false,...}]}
//! ```

use std::fmt;
use std::ops::Range;

use bytes::BytesMut;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use tidegate::{StoreError, Ticks, Verdict};
use tidegate_rules::{Admission, Attributes, Batch};
use tidegate_support::{Dialect, join_all, put_fields_on, put_number};
use tokio::task::yield_now;

use super::admit::{NO_STORE, denial, status};
use super::problem::Problem;
use super::reply::{PROBLEM, Reply};
use super::request::{Object, Request};
use super::{fields, json};
use crate::decision_fields::DecisionFields;
use crate::engine::Engine;
use crate::permit::Permits;

/// The maximum number of asks of a batch whose requests are decided individually.
const MAX_ASKS: usize = 16_384;
/// The maximum number of asks of a batch that is decided all or none: they are decided at one instant, which blocks the
/// worker.
const MAX_ASKS_TOGETHER: usize = 4_096;
/// The maximum number of asks of one stretch, unless a single request has more. The asks of one stretch are sent to
/// a remote store before their replies are awaited.
const MAX_STRETCH: usize = 64;

/// The example in errors about the body.
const EXAMPLE: &str = r#"{"requests":[{"attributes":{"ip":"192.0.2.7"}}]}"#;

/// The body of a batch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchAsk<'a> {
    #[serde(borrow)]
    requests: Requests<'a>,
    /// True if all requests have to be allowed, or nothing is spent.
    #[serde(default)]
    all: bool,
}

/// The requests of a batch. Those above the most that any batch can have are counted and not stored.
#[derive(Debug)]
struct Requests<'a> {
    /// The requests in their order.
    kept: Vec<Attributes<'a>>,
    /// The number of all requests, including those that were not stored.
    count: usize,
}

/// Decides many requests in their order.
///
/// A batch above its bound is rejected as a whole with status 413, before anything is decided.
pub(super) async fn admit(body: &[u8], headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    let BatchAsk { requests: Requests { kept, count }, all } = json::read_like(EXAMPLE, body)?;
    let most = if all { MAX_ASKS_TOGETHER } else { MAX_ASKS };
    if count > most {
        return Err(too_many(all));
    }
    let batch = engine.gate().batch();
    let stretches = stretches(&batch, &kept, most).await.ok_or_else(|| too_many(all))?;
    if all {
        together(&kept, headers, engine, &batch).await
    } else {
        each(&kept, &stretches, engine, &batch).await
    }
}

/// Splits the requests into stretches, as ranges of indices. Returns `None` if there are more than `most` asks.
///
/// A single request may have more asks than a stretch has; it is a stretch by itself then. Counting yields as often
/// as deciding does, so that a large batch does not block the worker.
async fn stretches(batch: &Batch, requests: &[Attributes<'_>], most: usize) -> Option<Vec<Range<usize>>> {
    let (mut stretches, mut begin, mut asks, mut total) = (Vec::new(), 0, 0_usize, 0_usize);
    for (place, request) in requests.iter().enumerate() {
        let more = batch.asks(request);
        total = total.saturating_add(more);
        if total > most {
            return None;
        }
        if asks > 0 && asks + more > MAX_STRETCH {
            stretches.push(begin..place);
            (begin, asks) = (place, 0);
            // Counting matches each request with the rules, and takes about as long as deciding.
            yield_now().await;
        }
        asks += more;
    }
    stretches.push(begin..requests.len());
    Some(stretches)
}

/// Returns the problem of a batch that is too large, with a remedy.
#[cold]
fn too_many(all: bool) -> Problem {
    let (most, what) = if all {
        (MAX_ASKS_TOGETHER, "send fewer requests with \"all\": true, or leave it out")
    } else {
        (MAX_ASKS, "send them in several batches")
    };
    let detail = format!(
        "requests: more than {most} asks, which are counted for each request and each rule with a limit that applies to \
         it; {what}"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Decides every request by itself, one stretch after the other.
async fn each(
    requests: &[Attributes<'_>],
    stretches: &[Range<usize>],
    engine: &Engine,
    batch: &Batch,
) -> Result<Reply, Problem> {
    let (mut answers, mut permits, mut is_allowed) = (BytesMut::new(), Vec::new(), true);
    for (nth, range) in stretches.iter().enumerate() {
        if nth > 0 {
            yield_now().await;
        }
        let admissions = in_order(&requests[range.clone()], engine, batch).await?;
        is_allowed &= admissions.iter().all(Admission::is_allowed);
        for admission in &admissions {
            put_answer(&mut answers, answered(admission));
            permits.extend(Permits::of(admission));
        }
    }
    let mut out = BytesMut::with_capacity(answers.len() + 40);
    out.extend_from_slice(b"{");
    put_members(&mut out, is_allowed, &answers);
    Ok(Reply::json(out.freeze()).telling(permits))
}

/// Decides all requests at one instant, all or none.
async fn together(
    requests: &[Attributes<'_>],
    headers: &mut HeaderMap,
    engine: &Engine,
    batch: &Batch,
) -> Result<Reply, Problem> {
    let admissions = engine.rules().admit_all(batch, requests).await?;
    let (out, mut answers) = (&mut BytesMut::new(), BytesMut::new());
    let Some(index) = binding(&admissions) else {
        admissions.iter().for_each(|admission| put_answer(&mut answers, answered(admission)));
        out.extend_from_slice(b"{");
        put_members(out, true, &answers);
        return Ok(Reply::json(out.split().freeze()).telling(admissions.iter().filter_map(Permits::of)));
    };
    admissions.iter().for_each(|admission| put_answer(&mut answers, held_up(admission)));
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    let status = match admissions[index].binding() {
        Some(own) => {
            // The body contains the remaining quota of each request; the only header field is `Retry-After`.
            put_fields_on(out, headers, Dialect::None, status(own), &[]);
            fields::begin_denial(out, denial(own, &admissions[index], engine));
            StatusCode::TOO_MANY_REQUESTS
        }
        None => {
            fields::begin_forbidden(out, &(&admissions[index]).into());
            StatusCode::FORBIDDEN
        }
    };
    out.extend_from_slice(b"\"binding\":");
    put_number(out, index as u64);
    out.extend_from_slice(b",");
    put_members(out, false, &answers);
    Ok(Reply::new(status, PROBLEM, out.split().freeze()))
}

/// Decides the requests of a stretch. A remote store gets all of them at once, each after those before it.
///
/// An error of one request is the error of the whole batch.
async fn in_order(
    requests: &[Attributes<'_>],
    engine: &Engine,
    batch: &Batch,
) -> Result<Vec<Admission>, StoreError> {
    let stretch = batch.stretch();
    let asked = requests.iter().map(|request| Box::pin(engine.rules().admit_in(&stretch, request)));
    join_all(asked).await.into_iter().collect()
}

/// The time for which one request of an all-or-none batch blocks the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BatchWait {
    /// It would be allowed.
    None,
    /// It would be allowed after this time.
    Some(Ticks),
    /// Its cost is more than the limit ever allows.
    Never,
    /// A static decision denies it.
    Forbidden,
}

impl BatchWait {
    /// Returns the wait of a request. The order of the variants is the order of their length.
    fn of(admission: &Admission) -> BatchWait {
        match admission.binding().map(|own| own.decision.verdict_in_ticks()) {
            None if admission.is_forbidden() => BatchWait::Forbidden,
            None | Some(Verdict::Allowed { .. }) => BatchWait::None,
            Some(Verdict::Denied { retry_after }) => BatchWait::Some(retry_after),
            Some(Verdict::Impossible) => BatchWait::Never,
        }
    }
}

/// Returns the index of the first request with the longest wait; `None` if all are allowed.
///
/// A static denial counts as the longest wait, then a cost that can never pass, then the waits by length.
fn binding(admissions: &[Admission]) -> Option<usize> {
    let waits = admissions.iter().map(BatchWait::of).enumerate();
    let (index, longest) = waits.rev().max_by_key(|(_, wait)| *wait)?;
    (longest != BatchWait::None).then_some(index)
}

/// The decision fields of a request, and its permits.
type Answered<'a> = (DecisionFields<'a>, Option<Permits>);

/// Returns the fields of a request that was decided by itself.
fn answered(admission: &Admission) -> Answered<'_> {
    (admission.into(), Permits::of(admission))
}

/// Returns the fields of a request of a denied all-or-none batch. A request that would be allowed by itself has a
/// `retry_after_ms` of 0.
fn held_up(admission: &Admission) -> Answered<'_> {
    let fields = DecisionFields::from(admission);
    let retry_after_ms =
        if BatchWait::of(admission) == BatchWait::None { Some(0) } else { fields.retry_after_ms };
    (DecisionFields { is_allowed: false, delay_ms: None, retry_after_ms, ..fields }, None)
}

/// Appends one answer to those before it.
///
/// Answers are separated by commas; the brackets around them are written by [`put_members`].
fn put_answer(answers: &mut BytesMut, (fields, permits): Answered<'_>) {
    if !answers.is_empty() {
        answers.extend_from_slice(b",");
    }
    fields::put_object(answers, fields, permits.as_ref());
}

/// Writes the members `allowed` and `answers`, and the closing brace.
fn put_members(out: &mut BytesMut, is_allowed: bool, answers: &[u8]) {
    let allowed: &[u8] = if is_allowed { b"\"allowed\":true" } else { b"\"allowed\":false" };
    out.extend_from_slice(allowed);
    out.extend_from_slice(b",\"answers\":[");
    out.extend_from_slice(answers);
    out.extend_from_slice(b"]}");
}

/// The visitor of the array of requests.
struct List;

impl<'de> Visitor<'de> for List {
    type Value = Requests<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a sequence")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Requests<'de>, S::Error> {
        let mut requests = Requests { kept: Vec::new(), count: 0 };
        while requests.count < MAX_ASKS {
            let Some(Object(request)) = list.next_element::<Object<Request<'de>>>()? else {
                return Ok(requests);
            };
            requests.kept.push(request.into_attributes().all_limits());
            requests.count += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            requests.count += 1;
        }
        Ok(requests)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Requests<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Requests<'a>, D::Error> {
        from.deserialize_seq(List)
    }
}
