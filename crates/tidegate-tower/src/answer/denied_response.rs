//! A denial as a response, for handlers that are limited inside of the service.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tidegate_core::{Decision, Denied, Limit};
use tidegate_support::put_fields;

use super::denied::{DeniedRequest, Reason, deny};
use super::promise::Promise;
use super::{Dialect, LATER};
use crate::body::OwnDenial;
use crate::head::Head;

/// A [`Denied`] as an HTTP response: 429 with `Retry-After` and `application/problem+json`.
///
/// It is the error type of handlers that are limited inside of the service: by
/// [`#[rate_limit]`](https://docs.rs/tidegate/latest/tidegate/attr.rate_limit.html), or by a
/// [`Limiter`](tidegate_core::Limiter) that the handler asks. The response is the one that the layers of this crate
/// send, and `?` converts a [`Denied`] into it.
///
/// With the feature `axum` of the crate `tidegate` it implements axum's `IntoResponse`. Without this feature axum
/// reports only that a handler with this error does not satisfy `Handler<_, _>`.
///
/// ```
/// # #[cfg(feature = "axum")]
/// # fn main() {
/// use axum::{Router, extract::Path, routing::get};
/// use tidegate::rate_limit;
/// use tidegate::tower::DeniedResponse;
///
/// #[rate_limit("5/m", key = user)]
/// async fn report(Path(user): Path<String>) -> Result<String, DeniedResponse> {
///     Ok(format!("the report of {user}"))
/// }
///
/// let app: Router = Router::new().route("/reports/{user}", get(report));
/// # let _ = app;
/// # }
/// # #[cfg(not(feature = "axum"))]
/// # fn main() {}
/// ```
///
/// It also converts into a [`Response<Bytes>`](http::Response), which needs no feature.
///
/// # Header fields
///
/// A [`Denied`] contains the decision, not the limit and its name. So the fields `RateLimit` and `RateLimit-Policy`
/// are sent only if [`DeniedResponse::by`] adds these.
///
/// # Status
///
/// | denial | status |
/// |---|---|
/// | the limit is used up, the queue is full, or the max wait is over | 429 |
/// | the cost is more than the limit can ever admit | 429 without `Retry-After` |
/// | the store is full | 429 |
/// | there is no capacity for any caller: a concurrency limiter or a circuit breaker | 503 |
///
/// Layers of this crate that are outside of the handler do not count the response as an outcome of the service.
#[doc(alias = "IntoResponse")]
#[doc(alias = "429")]
#[doc(alias = "too many requests")]
#[derive(Clone, Debug)]
pub struct DeniedResponse {
    denied: Denied,
    limit: Option<(Box<str>, Limit)>,
    dialect: Dialect,
}

impl DeniedResponse {
    /// Adds the limit that denied the request, under a name, for the header fields and the problem document.
    ///
    /// ```
    /// use http::{HeaderMap, Response};
    /// use tidegate::{Limit, Limiter};
    /// use tidegate::tower::DeniedResponse;
    ///
    /// const EXPORTS: Limit = Limit::per_hour(1);
    ///
    /// fn export(limiter: &Limiter, user: &str) -> Result<&'static str, DeniedResponse> {
    ///     limiter.admit(user).into_result().map_err(|denied| DeniedResponse::from(denied).by("exports", &EXPORTS))?;
    ///     Ok("a long table")
    /// }
    ///
    /// let limiter = Limiter::new(EXPORTS);
    /// assert!(export(&limiter, "ana").is_ok());
    /// let response = Response::from(export(&limiter, "ana").unwrap_err());
    /// assert_eq!(response.headers()["ratelimit-policy"], "\"exports\";q=1;w=3600");
    /// ```
    #[must_use]
    pub fn by(self, name: &str, limit: &Limit) -> DeniedResponse {
        DeniedResponse { limit: Some((name.into(), *limit)), ..self }
    }

    /// Sets the header fields with the remaining quota; [`Dialect::Ietf`] unless set. They are sent only after
    /// [`DeniedResponse::by`].
    #[must_use]
    pub fn fields(self, dialect: Dialect) -> DeniedResponse {
        DeniedResponse { dialect, ..self }
    }

    /// Returns the denial.
    pub fn denied(&self) -> Denied {
        self.denied
    }

    /// Returns the HTTP status of the response.
    pub fn status(&self) -> StatusCode {
        self.reason().status()
    }

    /// Returns the time to the next try, rounded up to whole seconds in `Retry-After`; `None` if no retry can pass.
    pub fn retry_after(&self) -> Option<Duration> {
        self.decision().retry_after()
    }

    fn reason(&self) -> Reason {
        match self.denied {
            denied if denied.is_store_full() => Reason::StoreFull,
            denied if denied.is_overloaded() || denied.is_pushed_out() => Reason::Capacity,
            _ => Reason::Quota,
        }
    }

    fn decision(&self) -> Decision {
        let decision = self.denied.decision();
        // The decision is "allowed" if the system has no timer thread to wake the waiter.
        if decision.is_allowed() { decision.denied_for(LATER) } else { decision }
    }
}

impl From<Denied> for DeniedResponse {
    fn from(denied: Denied) -> DeniedResponse {
        DeniedResponse { denied, limit: None, dialect: Dialect::default() }
    }
}

impl From<DeniedResponse> for Response<Bytes> {
    fn from(denied: DeniedResponse) -> Response<Bytes> {
        // The handler has taken the request apart; a default response depends on it only if it is a gRPC call.
        let request = Request::new(());
        let promise = denied.limit.as_ref().map(|(name, limit)| Promise::new(name, limit));
        let (decision, reason) = (denied.decision(), denied.reason());
        let refused = DeniedRequest::in_handler(Head::of(&request), promise.as_ref(), decision, reason);
        let mut response = deny(&refused);
        if let Some(status) = refused.limit_status() {
            put_fields(response.headers_mut(), denied.dialect, status, &[]);
        }
        response.extensions_mut().insert(OwnDenial);
        response
    }
}

/// Writes the reason and the time to the next try, as [`Denied`] does.
impl fmt::Display for DeniedResponse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.denied.fmt(out)
    }
}

impl std::error::Error for DeniedResponse {}

#[cfg(feature = "axum")]
impl axum_core::response::IntoResponse for DeniedResponse {
    fn into_response(self) -> axum_core::response::Response {
        Response::from(self).map(axum_core::body::Body::from)
    }
}
