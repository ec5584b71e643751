//! A service that fails is asked less, by a [`Guard`].
//!
//! While too many calls fail, only a share of them reaches the service; the others are refused at once with 503,
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
//! How a call went is judged by the head of its answer, as [`outcome_of`](crate::outcome_of) does it unless told otherwise. An error of the
//! service counts against it; a call that goes away says nothing, unless it is told after which time it does
//! ([`Guarded::overloaded_after`]).
//!
//! Its place is inside of a [`RateLimit`](crate::RateLimit) and outside of an [`InFlight`](crate::InFlight). What other
//! layers of this crate refuse says nothing about how the service is, wherever they are.

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

/// A layer that lets pass what its guard lets pass; clones share the guard.
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
    /// A layer by this guard.
    pub fn new(guard: Guard) -> Guarded {
        let settings = Settings { guard, outcome: None, otherwise: None, overloaded_after: None };
        Guarded { settings: Arc::new(settings) }
    }

    /// Says how a call went, by the head of its answer; [`outcome_of`](crate::outcome_of) unless set.
    #[must_use]
    pub fn outcome(self, outcome: impl Fn(ResponseHead<'_>) -> Outcome + Send + Sync + 'static) -> Guarded {
        self.set(|settings| settings.outcome = Some(Arc::new(outcome)))
    }

    /// Counts a call that goes away unanswered after at least this time as [`Overloaded`](Outcome::Overloaded): its
    /// caller has given it up, because it took too long. Unless set, whoever goes away says nothing.
    ///
    /// For a layer of time-outs that is outside of this one, which ends a call by dropping it.
    #[must_use]
    pub fn overloaded_after(self, long: Duration) -> Guarded {
        self.set(|settings| settings.overloaded_after = Some(long))
    }

    /// Answers in its own way whoever is refused.
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
