//! So many calls in flight at a time, by any [`Places`]: a fixed number or one that adapts, with classes, with a line.
//!
//! Whoever finds no place is refused with 503, `Retry-After` and `application/problem+json`, or if it is a call of gRPC
//! with `UNAVAILABLE` and a pushback; or it waits, if the layer says so and the places have a line.
//!
//! ```
//! use std::time::Duration;
//!
//! use axum::{Router, routing::get};
//! use tidegate::{Adapt, Class, Places};
//! use tidegate_tower::InFlight;
//!
//! const CRITICAL: usize = 0; // the rank of a class is its index
//! const BULK: usize = 1;
//!
//! let places = Places::adaptive(Adapt::gradient2(2..=500))
//!     .classes([Class::new("critical").share(50), Class::new("bulk").share(10)])
//!     .line(100)
//!     .newest_first_after(Duration::from_millis(500));
//! let in_flight = InFlight::new(places.clone())
//!     .class(|head| if head.path().starts_with("/checkout") { CRITICAL } else { BULK })
//!     .wait(Duration::from_millis(200));
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(in_flight);
//!
//! println!("{} of {} in flight", places.in_flight(), places.limit()); // for metrics
//! # let _ = app;
//! ```
//!
//! How a call went is told to the places when the head of its answer is there, or when its body has ended; [`outcome_of`]
//! says how an answer is judged. A number of places that adapts learns from it. A connection that is upgraded (101) gives
//! its place back when the head of the response is sent.
//!
//! An error of the service in place of an answer counts as [`Overloaded`](Outcome::Overloaded): behind layers of tower it
//! is a time-out, shed load or a connection that nobody accepted. So a time-out inside of this layer is heard; for one
//! outside of it, which drops the call, say [`InFlight::overloaded_after`].
//!
//! The place of this layer is next to the service: a [`RateLimit`](crate::RateLimit) goes outside, so that who is refused
//! by it takes no place. Where it is inside after all, its refusals say nothing about how the service is.

mod body;
mod not_sent;
mod ongoing;
mod outcome;
mod service;

pub use body::Kept;
pub use not_sent::NotSent;
pub(crate) use ongoing::Ongoing;
#[doc(hidden)]
pub use outcome::is_our_refusal;
pub(crate) use outcome::judge;
pub use outcome::outcome_of;
pub use service::{InFlightFuture, InFlightService};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::Body;
use tidegate::{Outcome, Place, Places, Refusal};
use tower_layer::Layer;

use crate::answer::{Refused, refuse};
use crate::body::Answered;
use crate::head::{Head, ResponseHead};

/// A layer that lets as many calls be in flight as there are places; clones share them.
///
/// The layer is ready when the service is. A call that waits holds no readiness: it waits with a clone of the service,
/// which is asked whether it is ready when there is a place.
#[derive(Clone)]
pub struct InFlight {
    settings: Arc<Settings>,
}

type ClassOf = dyn Fn(Head<'_>) -> usize + Send + Sync;
pub(crate) type OutcomeOf = dyn Fn(ResponseHead<'_>) -> Outcome + Send + Sync;
pub(crate) type Otherwise = dyn Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync;

#[derive(Clone)]
struct Settings {
    places: Places,
    class: Option<Arc<ClassOf>>,
    wait: Duration,
    outcome: Option<Arc<OutcomeOf>>,
    otherwise: Option<Arc<Otherwise>>,
    until_body_ends: bool,
    overloaded_after: Option<Duration>,
}

impl InFlight {
    /// A layer over these places. All calls are of the first class, and none waits.
    pub fn new(places: Places) -> InFlight {
        let settings = Settings {
            places,
            class: None,
            wait: Duration::ZERO,
            outcome: None,
            otherwise: None,
            until_body_ends: false,
            overloaded_after: None,
        };
        InFlight { settings: Arc::new(settings) }
    }

    /// Says of which class a call is: its rank, as given to [`Places::classes`].
    #[must_use]
    pub fn class(self, class: impl Fn(Head<'_>) -> usize + Send + Sync + 'static) -> InFlight {
        self.set(|settings| settings.class = Some(Arc::new(class)))
    }

    /// Lets a call that finds no place wait for one, this long or as long as its `grpc-timeout` says if that is shorter.
    ///
    /// How many may wait is said by [`Places::line`]: none, unless set.
    #[must_use]
    pub fn wait(self, longest: Duration) -> InFlight {
        self.set(|settings| settings.wait = longest)
    }

    /// Says how a call went, by the head of its answer; [`outcome_of`] unless set.
    #[must_use]
    pub fn outcome(self, outcome: impl Fn(ResponseHead<'_>) -> Outcome + Send + Sync + 'static) -> InFlight {
        self.set(|settings| settings.outcome = Some(Arc::new(outcome)))
    }

    /// Keeps the place until the body of the answer has ended or was dropped, not only until its head is there.
    ///
    /// Of calls by gRPC the status in the trailers counts then, unless [`InFlight::outcome`] is set.
    #[must_use]
    pub fn until_body_ends(self) -> InFlight {
        self.set(|settings| settings.until_body_ends = true)
    }

    /// Counts a call that goes away unanswered after at least this time as [`Overloaded`](Outcome::Overloaded): its
    /// caller has given it up, because it took too long. Unless set, whoever goes away says nothing.
    ///
    /// For a layer of time-outs that is outside of this one, which ends a call by dropping it: set the time that it
    /// gives, or a little less.
    #[must_use]
    pub fn overloaded_after(self, long: Duration) -> InFlight {
        self.set(|settings| settings.overloaded_after = Some(long))
    }

    /// Answers in its own way whoever is refused.
    #[must_use]
    pub fn otherwise(
        self,
        answer: impl Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> InFlight {
        self.set(|settings| settings.otherwise = Some(Arc::new(answer)))
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> InFlight {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl Settings {
    fn class(&self, head: Head<'_>) -> usize {
        self.class.as_ref().map_or(0, |class| class(head))
    }

    /// How long a call may wait, if at all.
    fn patience(&self, head: Head<'_>) -> Option<Duration> {
        let patience = head.timeout().map_or(self.wait, |timeout| timeout.min(self.wait));
        (!patience.is_zero()).then_some(patience)
    }

    fn refuse(&self, head: Head<'_>, refusal: Refusal) -> Response<Bytes> {
        refuse_by(self.otherwise.as_deref(), head, refusal)
    }

    fn begin(&self, place: Place) -> Ongoing<Place> {
        Ongoing::new(place, self.overloaded_after)
    }

    /// What is done with an answer.
    fn conclude<R: Body>(&self, response: Response<R>, place: Place) -> Response<Answered<Kept<R>>> {
        let outcome = judge(self.outcome.as_deref(), ResponseHead::of(&response));
        if !self.until_body_ends {
            place.done(outcome);
            return response.map(|body| Answered::theirs(Kept::nothing(body)));
        }
        let head = ResponseHead::of(&response);
        let reads_trailers = self.outcome.is_none() && head.is_grpc() && !is_our_refusal(head);
        let length = head.header(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        response.map(|body| Answered::theirs(Kept::place(body, place, outcome, reads_trailers, length)))
    }
}

/// The answer to a call for which there was no room.
pub(crate) fn refuse_by(otherwise: Option<&Otherwise>, head: Head<'_>, refusal: Refusal) -> Response<Bytes> {
    let refused = Refused::for_want_of_room(head, refusal.retry_after());
    match otherwise {
        Some(otherwise) => otherwise(&refused),
        None => refuse(&refused),
    }
}

impl<S> Layer<S> for InFlight {
    type Service = InFlightService<S>;

    fn layer(&self, inner: S) -> InFlightService<S> {
        InFlightService::new(inner, Arc::clone(&self.settings))
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("InFlight")
            .field("places", &self.places)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
