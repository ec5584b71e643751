//! `/v1/admit`: decides a request by the rules; `/v1/explain`: reports the reasons without spending anything.
//!
//! An allowed request gets status 200. A denial by a limit is 429 with `Retry-After`, a denial by a static decision
//! is 403. Both denials are problems (RFC 9457) with the decision fields. A store that cannot decide is 503.

use std::error::Error as _;

use bytes::BytesMut;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};
use tidegate::StoreError;
use tidegate_rules::{Admission, Binding};
use tidegate_support::{LimitStatus, PolicyHeader, put_fields_on};

use super::fields::{self, DenialFields};
use super::json;
use super::problem::Problem;
use super::reply::{self, PROBLEM, Reply};
use super::request::{EXAMPLE, Request};
use crate::decision_fields::DecisionFields;
use crate::engine::{Engine, not_available};
use crate::explained::Explained;
use crate::permit::Permits;

/// `Cache-Control` of a denial: it is only true for a moment.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Decides one request, and spends if it is allowed.
///
/// The permits of the request are in the body. They are released if the response cannot be written.
pub(super) async fn admit(body: &[u8], headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    let request: Request<'_> = json::read_like(EXAMPLE, body)?;
    let admission = engine.rules().admit(&request.into_attributes().all_limits()).await?;
    let format = ReplyFormat { of_denial: StatusCode::TOO_MANY_REQUESTS, is_held: false };
    Ok(reply_to(&admission, headers, engine, format))
}

/// The parts of a reply in which routes differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyFormat {
    /// The status code of a denial by a limit.
    pub(super) of_denial: StatusCode,
    /// True if the reply is sent after the delay, so that the caller has nothing to wait for.
    pub(super) is_held: bool,
}

/// Returns the reply to a decided request.
pub(super) fn reply_to(
    admission: &Admission,
    headers: &mut HeaderMap,
    engine: &Engine,
    ReplyFormat { of_denial, is_held }: ReplyFormat,
) -> Reply {
    reply::written(|out| {
        put_status(out, headers, admission, engine);
        if admission.is_allowed() {
            let permits = Permits::of(admission);
            let mut fields = DecisionFields::from(admission);
            fields.delay_ms = fields.delay_ms.map(|delay| if is_held { 0 } else { delay });
            fields::put_object(out, fields, permits.as_ref());
            return Reply::json(out.split().freeze()).telling(permits);
        }
        headers.insert(header::CACHE_CONTROL, NO_STORE);
        let code = match admission.binding() {
            Some(binding) => {
                let denial = DenialFields { status: of_denial, ..denial(binding, admission, engine) };
                fields::put_denial(out, denial, admission.into());
                of_denial
            }
            None => {
                fields::put_forbidden(out, admission.into());
                StatusCode::FORBIDDEN
            }
        };
        Reply::new(code, PROBLEM, out.split().freeze())
    })
}

/// Writes the header fields of all limits that decided, and `Retry-After` of a denial.
pub(super) fn put_status(
    out: &mut BytesMut,
    headers: &mut HeaderMap,
    admission: &Admission,
    engine: &Engine,
) {
    if let Some(binding) = admission.binding() {
        let others: Vec<_> = admission.limits().skip(1).map(status).collect();
        put_fields_on(out, headers, engine.settings().headers, status(binding), &others);
    }
}

/// Reports why a request would be allowed or denied.
///
/// Replies 200 also for a denial, which is the subject of the reply and not its outcome.
pub(super) async fn explain(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let request: Request<'_> = json::read_like(EXAMPLE, body)?;
    let explanation = engine.gate().explain(&request.into_attributes()).await?;
    Ok(Reply::of(&Explained::new(&explanation, engine.is_in_file())))
}

/// Returns the denial of a rule's limit.
///
/// The verdict is that of the binding rule, the one with the longest wait.
pub(super) fn denial<'a>(binding: &'a Binding, admission: &Admission, engine: &Engine) -> DenialFields<'a> {
    let penalty = || engine.gate().with_policy(|policy| policy.named(&binding.rule)?.penalty());
    DenialFields {
        rule: Some(&binding.rule),
        decision: binding.decision,
        limit: &binding.limit,
        penalty: binding.decision.ban().and_then(|_| penalty()),
        cost: binding.cost,
        decided_by: admission.decided_by(),
        status: StatusCode::TOO_MANY_REQUESTS,
    }
}

/// Returns the header fields for the limit of a rule.
///
/// The policy field is formatted from the limit of the decision, with schedule and override applied.
pub(super) fn status(binding: &Binding) -> LimitStatus<'_> {
    LimitStatus { name: &binding.rule, policy: PolicyHeader::Of(&binding.limit), decision: &binding.decision }
}

/// Converts a store error: 400 if the store can never answer this request, else 503. `Retry-After` is set if a retry is
/// safe.
impl From<StoreError> for Problem {
    #[cold]
    fn from(error: StoreError) -> Problem {
        if error.is_unfit() {
            let what = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            return Problem::new(StatusCode::BAD_REQUEST, what);
        }
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, not_available(&error));
        // A retry of a request that may have been executed would spend twice.
        if error.is_retryable() { problem.with(header::RETRY_AFTER, "1") } else { problem }
    }
}
