//! A denial, and the response to it.
//!
//! Clients react to the status and to `Retry-After`, so both are conservative. A status of 429 means that this caller
//! has to slow down; 503 means that the service is short of capacity, for every caller. `Retry-After` is rounded up to
//! whole seconds, because a retry that comes a moment too early is denied again.

use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use tidegate_core::{Decision, Verdict};
use tidegate_support::{LimitStatus, Problem, ProblemKind, ceil_seconds};

use super::Retry;
use super::grpc::{self, Code};
use super::promise::Promise;
use crate::head::Head;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The reason of a denial.
///
/// It determines the default status. A reply of your own ([`otherwise`](crate::RateLimitLayer::otherwise)) can match
/// it; more reasons may be added.
#[doc(alias = "status code")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A limit is used up: 429, in gRPC `RESOURCE_EXHAUSTED`.
    Quota,
    /// There is no capacity, for any caller: 503, in gRPC `UNAVAILABLE`.
    Capacity,
    /// The store has no memory for another key: 429, in gRPC `RESOURCE_EXHAUSTED`. Known keys are decided as usual.
    StoreFull,
    /// A rule denies such requests: 403, in gRPC `PERMISSION_DENIED`.
    Forbidden,
    /// No rule applies, and the policy denies such requests: 403, in gRPC `PERMISSION_DENIED`.
    Unmatched,
    /// A part of the key is missing and its extractor has `or_deny`, or it is repeated and its extractor denies that:
    /// 400, in gRPC `INVALID_ARGUMENT`.
    Missing,
    /// The key is a peer address that no server has added, which is a mistake of the program: 500, in gRPC `INTERNAL`.
    NoPeer,
    /// No decision was possible: 503, in gRPC `UNAVAILABLE`.
    Undecided,
}

impl Reason {
    /// Returns the HTTP status of the default response.
    pub(super) fn status(self) -> StatusCode {
        match self {
            // Many proxies handle a status of 500 and above as if the request were allowed.
            Reason::Quota | Reason::StoreFull => StatusCode::TOO_MANY_REQUESTS,
            Reason::Capacity | Reason::Undecided => StatusCode::SERVICE_UNAVAILABLE,
            Reason::Forbidden | Reason::Unmatched => StatusCode::FORBIDDEN,
            Reason::Missing => StatusCode::BAD_REQUEST,
            Reason::NoPeer => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A denied request, for which a response is made.
///
/// The argument of [`RateLimitLayer::otherwise`](crate::RateLimitLayer::otherwise) and of the same method of the other
/// layers. A reply of your own can be a page, JSON of another form, or a redirect:
///
/// ```
/// use http::Response;
/// use tidegate::Limit;
/// use tidegate::tower::{RateLimitLayer, key};
///
/// let layer = RateLimitLayer::new(Limit::per_minute(100), key::header("x-api-key")).otherwise(|denied| {
///     let wait = denied.retry_after().map_or(0, |wait| wait.as_secs() + 1);
///     let body = format!("{{\"error\":\"slow down\",\"wait\":{wait}}}");
///     let mut response = Response::new(body.into());
///     *response.status_mut() = denied.status();
///     response
/// });
/// # let _ = layer;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeniedRequest<'a> {
    head: Head<'a>,
    reason: Reason,
    promise: Option<&'a Promise>,
    decision: Option<Decision>,
    /// The other limits that decided, for the header fields.
    others: &'a [LimitStatus<'a>],
    retry_after: Option<Duration>,
}

impl<'a> DeniedRequest<'a> {
    /// Returns a denial by a decision of a limit.
    #[inline]
    pub(crate) fn by_limit(head: Head<'a>, promise: &'a Promise, decision: Decision) -> DeniedRequest<'a> {
        let reason = if decision.is_store_full() { Reason::StoreFull } else { Reason::Quota };
        DeniedRequest::in_handler(head, Some(promise), decision, reason)
    }

    /// Returns a denial in a handler, which may not know the limit and its name.
    #[inline]
    pub(super) fn in_handler(
        head: Head<'a>,
        promise: Option<&'a Promise>,
        decision: Decision,
        reason: Reason,
    ) -> DeniedRequest<'a> {
        let retry_after = decision.retry_after();
        let decision = Some(decision);
        DeniedRequest { promise, decision, retry_after, ..DeniedRequest::because(head, reason) }
    }

    /// Returns the same denial with the other limits that decided about the request.
    pub(crate) fn beside(self, others: &'a [LimitStatus<'a>]) -> DeniedRequest<'a> {
        DeniedRequest { others, ..self }
    }

    /// Returns the same denial with another reason.
    pub(crate) fn for_reason(self, reason: Reason) -> DeniedRequest<'a> {
        DeniedRequest { reason, ..self }
    }

    /// Returns a denial for lack of capacity, which may pass after this wait.
    pub(crate) fn for_want_of_room(head: Head<'a>, retry_after: Option<Duration>) -> DeniedRequest<'a> {
        DeniedRequest { retry_after, ..DeniedRequest::because(head, Reason::Capacity) }
    }

    /// Returns a denial for any other reason.
    pub(crate) fn because(head: Head<'a>, reason: Reason) -> DeniedRequest<'a> {
        DeniedRequest { head, reason, promise: None, decision: None, others: &[], retry_after: None }
    }

    /// Returns the head of the request.
    pub fn head(&self) -> Head<'a> {
        self.head
    }

    /// Returns the reason.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns the name of the limit that denied the request.
    ///
    /// It is the name of [`RateLimitLayer::named`](crate::RateLimitLayer::named) or of a rule, in a form that is valid
    /// in header fields. `None` if no limit decided: a rule that always denies, a missing key, a lack of capacity.
    pub fn policy(&self) -> Option<&'a str> {
        self.promise.map(Promise::name)
    }

    /// Returns the decision of the limit.
    ///
    /// It contains the limit, the remaining quota and the time until the limit is full again. `None` if no limit
    /// decided.
    pub fn decision(&self) -> Option<Decision> {
        self.decision
    }

    /// Returns the time to the next try, if it is known and a retry can pass.
    ///
    /// It is exact for the limit that denied the request, if no other request spends meanwhile. For a lack of capacity
    /// it is a guess. In the default response it is rounded up.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the HTTP status of the default response.
    ///
    /// A gRPC call gets 200 with a `grpc-status` in place of it.
    pub fn status(&self) -> StatusCode {
        self.reason.status()
    }

    /// Returns the decision as header fields report it.
    pub(crate) fn limit_status(&self) -> Option<LimitStatus<'_>> {
        Some(self.promise?.status(self.decision.as_ref()?))
    }

    /// Returns the other limits that decided, as header fields report them.
    pub(crate) fn other_limits(&self) -> &[LimitStatus<'a>] {
        self.others
    }

    /// Returns the advice to a gRPC client, which may retry by itself.
    fn retry(&self) -> Retry {
        match (self.retry_after, self.reason) {
            (Some(wait), _) => Retry::After(wait),
            (None, Reason::Capacity | Reason::StoreFull | Reason::Undecided) => Retry::Unknown,
            (
                None,
                Reason::Quota | Reason::Forbidden | Reason::Unmatched | Reason::Missing | Reason::NoPeer,
            ) => Retry::Never,
        }
    }

    /// Returns true if the cost is more than the limit can ever admit.
    fn is_too_much(&self) -> bool {
        self.decision.is_some_and(|decision| decision.verdict_in_ticks() == Verdict::Impossible)
    }

    /// Returns the problem document. Those of a limit are made once, so this copies a reference.
    fn body(&self) -> Bytes {
        let (kind, detail) = match (self.reason, self.promise) {
            (Reason::Quota, Some(promise)) if self.is_too_much() => return promise.too_much.clone(),
            (Reason::Quota, Some(promise)) => return promise.exceeded.clone(),
            (Reason::Quota, None) if self.is_too_much() => (
                ProblemKind::QuotaExceeded,
                "This request can never pass: its cost is more than the limit can hold; ask for less.",
            ),
            (Reason::Quota, None) => (
                ProblemKind::QuotaExceeded,
                "Too many requests; Retry-After says in how many seconds the same request passes.",
            ),
            (Reason::Capacity, _) => {
                (ProblemKind::ReducedCapacity, "There is no room for this request now; try again later.")
            }
            (Reason::StoreFull, _) => {
                (ProblemKind::ReducedCapacity, "The store has no room for another key; try again later.")
            }
            (Reason::Undecided, _) => {
                (ProblemKind::Plain, "No decision about this request was possible; try again later.")
            }
            (Reason::Forbidden, _) => (ProblemKind::Plain, "A rule denies this request, however rare it is."),
            (Reason::Unmatched, _) => {
                (ProblemKind::Plain, "No rule applies to this request, and such requests are denied.")
            }
            (Reason::Missing, _) => (
                ProblemKind::Plain,
                "The request lacks what it is counted by, or has several values of it; send it once.",
            ),
            (Reason::NoPeer, _) => (
                ProblemKind::Plain,
                "Requests are counted by address here, and the server does not note who is connected. \
                 Say where it does by key::peer_in; with axum serve into_make_service_with_connect_info.",
            ),
        };
        Problem { kind, status: self.status(), detail }.document(None).into()
    }

    /// Returns the gRPC status, the counterpart of the HTTP status.
    fn code(&self) -> Code {
        match self.reason {
            Reason::Quota | Reason::StoreFull => Code::ResourceExhausted,
            Reason::Capacity | Reason::Undecided => Code::Unavailable,
            Reason::Forbidden | Reason::Unmatched => Code::PermissionDenied,
            Reason::Missing => Code::InvalidArgument,
            Reason::NoPeer => Code::Internal,
        }
    }

    /// Returns the gRPC message. It has no number in it: details and pushback have the time to the next try.
    fn message(&self) -> &'static str {
        match self.reason {
            Reason::Quota if self.is_too_much() => "the call weighs more than its limit can hold",
            Reason::Quota => "too many calls; try again later",
            Reason::Capacity => "there is no room for this call now; try again later",
            Reason::StoreFull => "the store has no room for another key; try again later",
            Reason::Undecided => "no decision about this call was possible; try again later",
            Reason::Forbidden => "a rule denies such calls",
            Reason::Unmatched => "no rule applies to this call, and such calls are denied",
            Reason::Missing => "the call lacks what it is counted by, or has several values of it",
            Reason::NoPeer => "the server does not note who is connected; say where it does by key::peer_in",
        }
    }
}

/// Returns the response: a problem document, or in gRPC a status. After a decision of a limit, the caller adds the
/// header fields with the remaining quota and `Retry-After`.
pub(crate) fn deny(refused: &DeniedRequest<'_>) -> Response<Bytes> {
    if refused.head.is_grpc() {
        let kind = refused.head.header(header::CONTENT_TYPE);
        return grpc::answer(refused.code(), refused.message(), refused.retry(), kind);
    }
    let mut response = Response::new(refused.body());
    *response.status_mut() = refused.status();
    response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM);
    if let (Some(wait), None) = (refused.retry_after, refused.limit_status()) {
        response.headers_mut().insert(header::RETRY_AFTER, ceil_seconds(wait).max(1).into());
    }
    response
}
