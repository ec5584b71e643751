//! Calls to others: at a pace of our own, and as others ask.
//!
//! [`Outgoing`] is a layer for clients, over any service that sends `http` requests and is `Clone`. It does two things:
//!
//! - It paces: at most so many calls leave for one server, by any [`Limit`]. The rest waits, in order.
//! - It obeys: when a server refuses and says until when, nothing leaves for it before; when it says how much is left,
//!   no more leave than that.
//!
//! A server is a scheme, a host and a port, unless [`per`](Outgoing::per) says otherwise.
//!
//! | a server says | on | what happens |
//! |---|---|---|
//! | `Retry-After: 30`, or a date in any of its three forms | any 4xx or 5xx | nothing leaves until then |
//! | `RateLimit: "name";r=5;t=30`, several or one | any answer | at most 5 more leave in 30 s, for each name |
//! | `RateLimit: "name";r=0` and `RateLimit-Policy: "name";q=5;w=30` | any answer | nothing leaves for 30 s |
//! | `RateLimit: limit=9, remaining=5, reset=30` | any answer | the same |
//! | `RateLimit-Remaining`, `RateLimit-Reset` | any answer | the same |
//! | `X-RateLimit-Remaining`, `X-RateLimit-Reset`, also `X-Rate-Limit-…` | any answer | the same; a large reset is a moment since 1970, in seconds or milliseconds |
//! | `grpc-retry-pushback-ms`, or a `RetryInfo` among the details | gRPC answers without messages, `RESOURCE_EXHAUSTED` or `UNAVAILABLE` | nothing leaves until then |
//!
//! Of a field that stands there several times the strictest counts. What an answer with an `Age` says is left is what was
//! left when a cache kept it, and is not heeded; its `Retry-After` is so much shorter.
//!
//! Dates and moments are compared with the `Date` of the same answer, so that a clock that is wrong here does no harm.
//! What cannot be read, is negative or over already is left alone; nothing holds longer than
//! [`longest_hold`](Outgoing::longest_hold).
//!
//! Calls that are on their way when an answer comes are taken off what it says is left, as if the server had not seen
//! them yet. Those that have been on their way for more than ten seconds are not: calls that hang spend no quota again
//! and again.
//!
//! ```
//! use std::time::Duration;
//!
//! use http::{Request, Response};
//! use tidegate::Limit;
//! use tidegate_outbound::{Held, Outgoing};
//! use tower::{Service, ServiceExt, layer::Layer, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // In place of a client: a server that has had enough.
//! let server = service_fn(async |_: Request<()>| {
//!     let answer = Response::builder().status(429).header("retry-after", "30").body(());
//!     Ok::<_, http::Error>(answer?)
//! });
//!
//! let outgoing = Outgoing::new().pace(Limit::per_second(10)).patience(Duration::from_secs(5)).jitter(10);
//! let mut client = outgoing.layer(server);
//! let request = || Request::get("http://example.com/").body(()).expect("a request");
//!
//! let answer = client.ready().await.expect("it is ready").call(request()).await.expect("an answer");
//! assert_eq!(answer.status(), 429);
//!
//! // From now on nothing leaves for this server for 30 s, which is more than anybody here would wait.
//! let error = client.ready().await.expect("it is ready").call(request()).await.expect_err("held back");
//! let held = error.downcast_ref::<Held>().expect("our own error");
//! assert!(held.is_told() && held.retry_after() > Some(Duration::from_secs(29)));
//! # }
//! ```
//!
//! When a hold is over, or a quota that was used up, those who waited do not leave all at once: one does, and when it is
//! answered two may be on their way, then four, and so on. An answer that tells how much is left of that quota ends it, a
//! refusal begins it anew, and a call that hangs keeps the next one for a second at most.
//!
//! A thousand servers are kept apart. What is over is forgotten first, then the one with most left. If all of them hold
//! somebody back at the same time, those that come then share one line: they may wait for each other's sake, and none
//! leaves too early.

mod course;
mod departure;
mod held;
mod opening;
mod origin;
mod origin_state;
mod origins;
mod service;
mod told;

pub use held::Held;
pub use service::{BoxError, OutgoingFuture, OutgoingService};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Clock, CounterClock, HOUR, Limit, Pay};
use tidegate_tower::key::{self, Identify};
use tower_layer::Layer;

use self::course::Terms;
use self::departure::{Settings, Shared};

/// How many wait at most for one server, unless set.
const MOST_WAITING: usize = 1024;

/// A layer for clients: paces outgoing calls, and obeys what servers say.
///
/// Clones, and the services that they make, share what is known. A setting begins anew, so make them first.
#[derive(Clone)]
pub struct Outgoing {
    by: Arc<dyn Identify>,
    shared: Arc<Shared>,
}

impl Outgoing {
    /// A layer that obeys, by scheme, host and port, waits as long as it takes, and sets no pace of its own.
    pub fn new() -> Outgoing {
        let terms = Terms { pace: None, longest_hold: HOUR, jitter: 0 };
        let clock = Arc::new(CounterClock::new());
        let wall = told::wall_clock;
        let settings = Settings { terms, patience: None, most_waiting: MOST_WAITING, clock, wall };
        Outgoing { by: Arc::new(key::from(origin::origin)), shared: Arc::new(Shared::new(settings)) }
    }

    /// Lets calls leave at most as this limit allows, for each server.
    ///
    /// # Panics
    /// If the limit counts places in flight, which is no pace: for that there is [`InFlight`](tidegate_tower::InFlight).
    #[must_use]
    pub fn pace(self, limit: Limit) -> Outgoing {
        let is_pace = limit.algorithm() != Algorithm::Concurrency;
        assert!(is_pace, "limit {limit}: places in flight are no pace; use a rate, such as \"10/s\"");
        // Each call weighs the same, so it is the same pace whoever pays; but nobody waits for the first.
        let pays_next = limit.draft().pay(Pay::Next).build();
        let limit = pays_next.unwrap_or(limit);
        self.set(|settings| settings.terms.pace = Some(limit))
    }

    /// Keeps calls apart by this instead of the server that they are for.
    #[must_use]
    pub fn per(self, key: impl Identify) -> Outgoing {
        Outgoing { by: Arc::new(key), ..self.set(|_| ()) }
    }

    /// Lets a call that would have to be held for longer fail at once, with a [`Held`] that says until when.
    ///
    /// Without it, calls wait as long as it takes; with [`Duration::ZERO`] none waits.
    #[must_use]
    pub fn patience(self, longest: Duration) -> Outgoing {
        self.set(|settings| settings.patience = Some(longest))
    }

    /// Lets at most so many calls wait at a time for each server, and 16 times as many in all; 1,024 unless set. One more
    /// fails at once.
    #[must_use]
    pub fn line(self, most: usize) -> Outgoing {
        self.set(|settings| settings.most_waiting = most)
    }

    /// Believes no server that asks for more than this; an hour unless set.
    #[must_use]
    pub fn longest_hold(self, longest: Duration) -> Outgoing {
        self.set(|settings| settings.terms.longest_hold = longest)
    }

    /// Makes what a server asks for longer by up to this percentage of it, at random, so that not all of its clients
    /// come back at once; none unless set.
    ///
    /// # Panics
    /// If that is more than 100.
    #[must_use]
    pub fn jitter(self, percent: u8) -> Outgoing {
        assert!(percent <= 100, "jitter {percent}: it is a percentage; write 0 to 100");
        self.set(|settings| settings.terms.jitter = percent)
    }

    /// Takes the time from another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Outgoing {
        self.set(|settings| settings.clock = clock)
    }

    /// How many calls wait now.
    pub fn waiting(&self) -> usize {
        self.shared.counts().0
    }

    fn set(self, change: impl FnOnce(&mut Settings)) -> Outgoing {
        let mut settings = self.shared.settings.clone();
        change(&mut settings);
        Outgoing { by: self.by, shared: Arc::new(Shared::new(settings)) }
    }
}

impl Default for Outgoing {
    fn default() -> Outgoing {
        Outgoing::new()
    }
}

impl<S> Layer<S> for Outgoing {
    type Service = OutgoingService<S>;

    fn layer(&self, inner: S) -> OutgoingService<S> {
        OutgoingService::new(inner, Arc::clone(&self.by), Arc::clone(&self.shared))
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.shared.settings;
        out.debug_struct("Outgoing")
            .field("terms", &settings.terms)
            .field("patience", &settings.patience)
            .finish_non_exhaustive()
    }
}

/// The code in the guide compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/in-your-code.md")]
pub struct Guide;

#[cfg(test)]
mod tests;
