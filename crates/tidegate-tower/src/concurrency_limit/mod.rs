//! A layer that limits the concurrency of requests by any [`ConcurrencyLimiter`]: a fixed or an adaptive limit, with
//! priority classes and a queue.
//!
//! A request beyond the limit is denied with 503, `Retry-After` and `application/problem+json`; a gRPC call with
//! `UNAVAILABLE` and a pushback. If [`ConcurrencyLimitLayer::wait`] is set and the [`ConcurrencyLimiter`] has a queue,
//! it waits instead.
//!
//! ```
//! use std::time::Duration;
//!
//! use axum::{Router, routing::get};
//! use tidegate::{AdaptiveLimit, Class, ConcurrencyLimiter};
//! use tidegate::tower::ConcurrencyLimitLayer;
//!
//! let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::gradient2(2..=500))
//!     .classes([Class::new("critical").share(50), Class::new("bulk").share(10)])
//!     .max_waiters(100)
//!     .newest_first_after(Duration::from_millis(500))
//!     .build();
//! let [critical, bulk] = places.class_ids();
//! let in_flight = ConcurrencyLimitLayer::new(places.clone())
//!     .class(move |head| if head.path().starts_with("/checkout") { critical } else { bulk })
//!     .wait(Duration::from_millis(200));
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(in_flight);
//!
//! println!("{} of {} in flight", places.in_flight(), places.limit()); // for metrics
//! # let _ = app;
//! ```
//!
//! The layer reports the outcome of a call when the head of its response is there, or when its body has ended. An
//! adaptive limit is derived from these outcomes; [`outcome_of`] classifies responses. A connection that is upgraded
//! (101) releases its permit when the head of the response is sent.
//!
//! An error of the service in place of a response counts as [`Overloaded`](Outcome::Overloaded): from layers of tower
//! it is a timeout, shed load or a connection that was not accepted. So a timeout layer inside of this one is taken
//! into account. A timeout layer outside of this one drops the call; for that, set
//! [`ConcurrencyLimitLayer::overloaded_after`].
//!
//! Put this layer next to the service and a [`RateLimit`](crate::RateLimitLayer) outside of it, so that requests which
//! the rate limit denies take no permit. If the rate limit is inside, its denials do not count as outcomes of the
//! service.

mod body;
mod not_sent;
mod ongoing;
mod outcome;
mod service;

pub use body::PermitBody;
pub use not_sent::NotSent;
pub(crate) use ongoing::Ongoing;
#[doc(hidden)]
pub use outcome::is_own_denial;
pub(crate) use outcome::judge;
pub use outcome::outcome_of;
pub use service::{ConcurrencyLimit, ConcurrencyLimitFuture};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::Body;
use tidegate_core::{ClassId, ConcurrencyLimiter, ConcurrencyPermit, Denied, Outcome};
use tower_layer::Layer;

use crate::answer::{DeniedRequest, deny};
use crate::body::Answered;
use crate::event::{DecisionEvent, DecisionHook, DecisionResult};
use crate::head::{Head, ResponseHead};

/// A layer that limits the number of requests in flight; clones share the limit.
///
/// The layer is ready when the service is. A waiting request holds no readiness: it waits with a clone of the service,
/// which is polled for readiness when the request has a permit.
///
/// This is a bulkhead: a service that becomes slow cannot occupy more than its permits, however many requests arrive.
/// With a fixed limit the number is yours; with an adaptive one it is derived from latency and errors, which sheds load
/// before queues grow.
///
/// It differs from a rate limit in that it needs no estimate of the service's throughput. It protects the service, not
/// one caller from another: put a [`RateLimitLayer`](crate::RateLimitLayer) outside for that.
#[doc(alias = "bulkhead")]
#[doc(alias = "semaphore")]
#[doc(alias = "load shedding")]
#[doc(alias = "backpressure")]
#[doc(alias = "adaptive concurrency")]
#[doc(alias = "concurrency limit middleware")]
#[doc(alias = "AIMD")]
#[doc(alias = "Gradient2")]
#[derive(Clone)]
pub struct ConcurrencyLimitLayer {
    settings: Arc<ConcurrencyLimitSettings>,
}

type ClassOf = dyn Fn(Head<'_>) -> ClassId + Send + Sync;
pub(crate) type OutcomeOf = dyn Fn(ResponseHead<'_>) -> Outcome + Send + Sync;
pub(crate) type DenialResponder = dyn Fn(&DeniedRequest<'_>) -> Response<Bytes> + Send + Sync;

/// The settings of a layer, which its services share.
#[derive(Clone)]
struct ConcurrencyLimitSettings {
    places: ConcurrencyLimiter,
    class: Option<Arc<ClassOf>>,
    wait: Duration,
    outcome: Option<Arc<OutcomeOf>>,
    otherwise: Option<Arc<DenialResponder>>,
    until_body_ends: bool,
    overloaded_after: Option<Duration>,
    hook: DecisionHook,
}

impl ConcurrencyLimitLayer {
    /// Returns a layer over this concurrency limiter. All calls are of the first class, and none waits.
    ///
    /// Clones of the limiter share its permits, so the same limiter may be behind several layers and be read for
    /// metrics.
    pub fn new(places: ConcurrencyLimiter) -> ConcurrencyLimitLayer {
        let settings = ConcurrencyLimitSettings {
            places,
            class: None,
            wait: Duration::ZERO,
            outcome: None,
            otherwise: None,
            until_body_ends: false,
            overloaded_after: None,
            hook: DecisionHook::default(),
        };
        ConcurrencyLimitLayer { settings: Arc::new(settings) }
    }

    /// Sets the function that returns the class of a call: an id of this limiter, for example from
    /// [`ConcurrencyLimiter::class_ids`].
    ///
    /// Without classes every call has the same priority. An id of another limiter panics when a call arrives.
    #[must_use]
    pub fn class(self, class: impl Fn(Head<'_>) -> ClassId + Send + Sync + 'static) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.class = Some(Arc::new(class)))
    }

    /// Queues a call beyond the limit for at most this time, or for its `grpc-timeout` if that is shorter.
    ///
    /// [`max_waiters`](tidegate_core::ConcurrencyLimiterBuilder::max_waiters) sets the capacity of the queue. It is 0
    /// unless set.
    #[doc(alias = "queue")]
    #[doc(alias = "backpressure")]
    #[doc(alias = "max_wait")]
    #[must_use]
    pub fn wait(self, longest: Duration) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.wait = longest)
    }

    /// Sets the function that classifies the outcome of a call by the head of its response; [`outcome_of`] unless set.
    #[must_use]
    pub fn outcome(
        self,
        outcome: impl Fn(ResponseHead<'_>) -> Outcome + Send + Sync + 'static,
    ) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.outcome = Some(Arc::new(outcome)))
    }

    /// Holds the permit until the body of the response has ended or is dropped, not only until its head is there.
    ///
    /// The outcome of a gRPC call is then read from the status in the trailers, unless
    /// [`ConcurrencyLimitLayer::outcome`] is set.
    #[must_use]
    pub fn until_body_ends(self) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.until_body_ends = true)
    }

    /// Counts a call that is dropped without a response after at least this time as
    /// [`Overloaded`](Outcome::Overloaded): its caller gave up because it took too long. Unless set, a dropped call
    /// reports no outcome.
    ///
    /// Use it with a timeout layer outside of this one, which drops the call. Set the time of that layer, or a little
    /// less.
    #[must_use]
    pub fn overloaded_after(self, long: Duration) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.overloaded_after = Some(long))
    }

    /// Sets the response to denied calls, in place of the default one.
    ///
    /// Its header fields are sent as they are. In gRPC the reply has to be a status of gRPC, which you write yourself.
    #[must_use]
    pub fn otherwise(
        self,
        answer: impl Fn(&DeniedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.otherwise = Some(Arc::new(answer)))
    }

    /// Sets a function that receives each decision of this layer, for metrics and logs.
    ///
    /// It is called once for each call that is allowed or denied, and not for a call that is dropped while it waits. It
    /// must not block. Unless it is set, no event is made.
    #[must_use]
    #[doc(alias = "metrics")]
    #[doc(alias = "observer")]
    pub fn on_decision(
        self,
        observer: impl Fn(&DecisionEvent<'_>) + Send + Sync + 'static,
    ) -> ConcurrencyLimitLayer {
        self.set(|settings| settings.hook = DecisionHook::new(observer))
    }

    fn set(mut self, change: impl FnOnce(&mut ConcurrencyLimitSettings)) -> ConcurrencyLimitLayer {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl ConcurrencyLimitSettings {
    /// Returns the class of a call; the first one unless a function is set.
    fn class(&self, head: Head<'_>) -> ClassId {
        self.class.as_ref().map_or(ClassId::FIRST, |class| class(head))
    }

    /// Returns the max wait of a call; `None` if it may not wait.
    fn max_wait(&self, head: Head<'_>) -> Option<Duration> {
        let max_wait = head.timeout().map_or(self.wait, |timeout| timeout.min(self.wait));
        (!max_wait.is_zero()).then_some(max_wait)
    }

    /// Returns the response to a denied call.
    fn refuse(&self, head: Head<'_>, refusal: Denied) -> Response<Bytes> {
        deny_by(self.otherwise.as_deref(), &self.hook, head, refusal)
    }

    /// Reports that a call has a permit.
    #[inline]
    fn report(&self, head: Head<'_>, result: DecisionResult) {
        self.hook.report(|| {
            let remaining = self.places.limit().saturating_sub(self.places.in_flight());
            DecisionEvent { remaining: Some(remaining), ..DecisionEvent::allowed(head, result) }
        });
    }

    /// Begins a call that has a permit; dropping it reports an outcome and releases the permit.
    fn begin(&self, place: ConcurrencyPermit) -> Ongoing<ConcurrencyPermit> {
        Ongoing::new(place, self.overloaded_after)
    }

    /// Reports the outcome of a call, or passes the permit to the body, and returns the response.
    fn conclude<R: Body>(
        &self,
        response: Response<R>,
        place: ConcurrencyPermit,
    ) -> Response<Answered<PermitBody<R>>> {
        let outcome = judge(self.outcome.as_deref(), ResponseHead::of(&response));
        if !self.until_body_ends {
            place.done(outcome);
            return response.map(|body| Answered::theirs(PermitBody::nothing(body)));
        }
        let head = ResponseHead::of(&response);
        let reads_trailers = self.outcome.is_none() && head.is_grpc() && !is_own_denial(head);
        let length = head.header(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        response.map(|body| Answered::theirs(PermitBody::place(body, place, outcome, reads_trailers, length)))
    }
}

/// Returns the response to a call that was denied for lack of capacity, and reports the denial.
pub(crate) fn deny_by(
    otherwise: Option<&DenialResponder>,
    hook: &DecisionHook,
    head: Head<'_>,
    refusal: Denied,
) -> Response<Bytes> {
    let refused = DeniedRequest::for_want_of_room(head, refusal.retry_after());
    hook.report(|| DecisionEvent::denied(&refused));
    match otherwise {
        Some(otherwise) => otherwise(&refused),
        None => deny(&refused),
    }
}

impl<S> Layer<S> for ConcurrencyLimitLayer {
    type Service = ConcurrencyLimit<S>;

    fn layer(&self, inner: S) -> ConcurrencyLimit<S> {
        ConcurrencyLimit::new(inner, Arc::clone(&self.settings))
    }
}

impl fmt::Debug for ConcurrencyLimitLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}

impl fmt::Debug for ConcurrencyLimitSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ConcurrencyLimitLayer")
            .field("places", &self.places)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
