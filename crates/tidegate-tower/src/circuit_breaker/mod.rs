//! A layer with a circuit breaker: a [`CircuitBreaker`] reduces the calls of a service that fails.
//!
//! While too many calls fail, only a share of them reaches the service. The others are denied at once with 503,
//! `Retry-After` and `application/problem+json`, or in gRPC with `UNAVAILABLE` and a pushback.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tidegate::{CircuitBreaker, BreakerState, SECOND};
//! use tidegate::tower::CircuitBreakerLayer;
//!
//! let guard = CircuitBreaker::builder().window(10 * SECOND).at_least(20).percent(50).build();
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(CircuitBreakerLayer::new(guard.clone()));
//!
//! assert_eq!(guard.state(), BreakerState::Clear); // for metrics
//! # let _ = app;
//! ```
//!
//! The head of the response decides the outcome of a call, by [`outcome_of`](crate::outcome_of) unless
//! [`CircuitBreakerLayer::outcome`] is set. An error of the service counts as a failure. A dropped call reports no
//! outcome, unless [`CircuitBreakerLayer::overloaded_after`] is set.
//!
//! Put this layer inside of a [`RateLimit`](crate::RateLimitLayer) and outside of a
//! [`ConcurrencyLimitLayer`](crate::ConcurrencyLimitLayer). Denials by other layers of this crate do not count as
//! outcomes of the service, wherever those layers are.

mod service;

pub use service::{CircuitBreakerFuture, CircuitBreakerService};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate_core::{CircuitBreaker, Outcome};
use tower_layer::Layer;

use crate::answer::DeniedRequest;
use crate::concurrency_limit::{DenialResponder, OutcomeOf};
use crate::event::{DecisionEvent, DecisionHook};
use crate::head::ResponseHead;

/// A layer that admits the calls that its circuit breaker admits; clones share the breaker.
///
/// It is always ready when the service is, and it never waits: a call is admitted or denied at once.
///
/// Use it where a dependency can fail as a whole. Use a [`ConcurrencyLimitLayer`](crate::ConcurrencyLimitLayer) where
/// it becomes slow under load, and both where it does both.
#[doc(alias = "circuit breaker")]
#[doc(alias = "load shedding")]
#[doc(alias = "error rate")]
#[doc(alias = "half-open")]
#[doc(alias = "tower middleware")]
#[derive(Clone)]
pub struct CircuitBreakerLayer {
    settings: Arc<CircuitBreakerSettings>,
}

/// The settings of a layer, which its services share.
#[derive(Clone)]
struct CircuitBreakerSettings {
    guard: CircuitBreaker,
    outcome: Option<Arc<OutcomeOf>>,
    otherwise: Option<Arc<DenialResponder>>,
    overloaded_after: Option<Duration>,
    hook: DecisionHook,
}

impl CircuitBreakerLayer {
    /// Returns a layer with this circuit breaker.
    ///
    /// The breaker may be shared with other layers and with code that calls [`CircuitBreaker::admit`] itself; all of
    /// them then contribute to one error rate.
    pub fn new(guard: CircuitBreaker) -> CircuitBreakerLayer {
        let settings = CircuitBreakerSettings {
            guard,
            outcome: None,
            otherwise: None,
            overloaded_after: None,
            hook: DecisionHook::default(),
        };
        CircuitBreakerLayer { settings: Arc::new(settings) }
    }

    /// Sets the function that classifies the outcome of a call by the head of its response;
    /// [`outcome_of`](crate::outcome_of) unless set.
    ///
    /// A service that sends 200 with an error in its header fields needs one. Denials by layers of this crate are never
    /// passed to it.
    #[must_use]
    pub fn outcome(
        self,
        outcome: impl Fn(ResponseHead<'_>) -> Outcome + Send + Sync + 'static,
    ) -> CircuitBreakerLayer {
        self.set(|settings| settings.outcome = Some(Arc::new(outcome)))
    }

    /// Counts a call that is dropped without a response after at least this time as
    /// [`Overloaded`](Outcome::Overloaded): its caller gave up because it took too long. Unless set, a dropped call
    /// reports no outcome.
    ///
    /// Use it with a timeout layer outside of this one, which drops the call.
    #[must_use]
    pub fn overloaded_after(self, long: Duration) -> CircuitBreakerLayer {
        self.set(|settings| settings.overloaded_after = Some(long))
    }

    /// Sets the response to denied calls, in place of the default one.
    ///
    /// Its header fields are sent as they are: add `Retry-After` from [`DeniedRequest::retry_after`] where clients
    /// expect it.
    #[must_use]
    pub fn otherwise(
        self,
        answer: impl Fn(&DeniedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> CircuitBreakerLayer {
        self.set(|settings| settings.otherwise = Some(Arc::new(answer)))
    }

    /// Sets a function that receives each decision of this layer, for metrics and logs.
    ///
    /// It is called once for each call that is allowed or denied, before the service is called or the response is sent.
    /// It must not block. Unless it is set, no event is made.
    #[must_use]
    #[doc(alias = "metrics")]
    #[doc(alias = "observer")]
    pub fn on_decision(
        self,
        observer: impl Fn(&DecisionEvent<'_>) + Send + Sync + 'static,
    ) -> CircuitBreakerLayer {
        self.set(|settings| settings.hook = DecisionHook::new(observer))
    }

    fn set(mut self, change: impl FnOnce(&mut CircuitBreakerSettings)) -> CircuitBreakerLayer {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S> Layer<S> for CircuitBreakerLayer {
    type Service = CircuitBreakerService<S>;

    fn layer(&self, inner: S) -> CircuitBreakerService<S> {
        CircuitBreakerService::new(inner, Arc::clone(&self.settings))
    }
}

impl fmt::Debug for CircuitBreakerLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}

impl fmt::Debug for CircuitBreakerSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CircuitBreakerLayer").field("guard", &self.guard).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
