//! A layer with a circuit breaker: a [`Guard`] reduces the calls of a service that fails.
//!
//! While too many calls fail, only a share of them reaches the service. The others are denied at once with 503,
//! `Retry-After` and `application/problem+json`, or in gRPC with `UNAVAILABLE` and a pushback.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tidegate::{Guard, GuardState, SECOND};
//! use tidegate_tower::Guarded;
//!
//! let guard = Guard::new().window(10 * SECOND).at_least(20).percent(50);
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(Guarded::new(guard.clone()));
//!
//! assert_eq!(guard.state(), GuardState::Clear); // for metrics
//! # let _ = app;
//! ```
//!
//! The head of the response decides the outcome of a call, by [`outcome_of`](crate::outcome_of) unless
//! [`Guarded::outcome`] is set. An error of the service counts as a failure. A dropped call reports no outcome, unless
//! [`Guarded::overloaded_after`] is set.
//!
//! Put this layer inside of a [`RateLimit`](crate::RateLimit) and outside of an [`InFlight`](crate::InFlight). Denials
//! by other layers of this crate do not count as outcomes of the service, wherever those layers are.

mod service;

pub use service::{GuardedFuture, GuardedService};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate::{Guard, Outcome};
use tower_layer::Layer;

use crate::answer::Refused;
use crate::head::ResponseHead;
use crate::in_flight::{Otherwise, OutcomeOf};

/// A layer that admits the calls that its circuit breaker admits; clones share the breaker.
#[derive(Clone)]
pub struct Guarded {
    settings: Arc<Settings>,
}

#[derive(Clone)]
struct Settings {
    guard: Guard,
    outcome: Option<Arc<OutcomeOf>>,
    otherwise: Option<Arc<Otherwise>>,
    overloaded_after: Option<Duration>,
}

impl Guarded {
    /// Returns a layer with this circuit breaker.
    pub fn new(guard: Guard) -> Guarded {
        let settings = Settings { guard, outcome: None, otherwise: None, overloaded_after: None };
        Guarded { settings: Arc::new(settings) }
    }

    /// Sets the function that classifies the outcome of a call by the head of its response;
    /// [`outcome_of`](crate::outcome_of) unless set.
    #[must_use]
    pub fn outcome(self, outcome: impl Fn(ResponseHead<'_>) -> Outcome + Send + Sync + 'static) -> Guarded {
        self.set(|settings| settings.outcome = Some(Arc::new(outcome)))
    }

    /// Counts a call that is dropped without a response after at least this time as
    /// [`Overloaded`](Outcome::Overloaded): its caller gave up because it took too long. Unless set, a dropped call
    /// reports no outcome.
    ///
    /// Use it with a timeout layer outside of this one, which drops the call.
    #[must_use]
    pub fn overloaded_after(self, long: Duration) -> Guarded {
        self.set(|settings| settings.overloaded_after = Some(long))
    }

    /// Sets the response to denied calls, in place of the default one.
    #[must_use]
    pub fn otherwise(
        self,
        answer: impl Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Guarded {
        self.set(|settings| settings.otherwise = Some(Arc::new(answer)))
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Guarded {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S> Layer<S> for Guarded {
    type Service = GuardedService<S>;

    fn layer(&self, inner: S) -> GuardedService<S> {
        GuardedService::new(inner, Arc::clone(&self.settings))
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Guarded").field("guard", &self.guard).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
