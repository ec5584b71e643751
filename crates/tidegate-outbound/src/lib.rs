//! Rate limiting of outgoing calls: by a pace of the client, and by the limits that servers report.
//!
//! Programs reach it as `tidegate::outbound`, by the feature `outbound` of the crate `tidegate`.
//!
//! [`OutboundLimitLayer`] is a layer for clients, over any service that sends `http` requests and is `Clone`. It does
//! two things:
//!
//! - It paces: calls to one server leave at the rate of any [`Limit`]. The others wait, in FIFO order.
//! - It obeys servers: after a denial with a retry time, no call leaves for that server before. If a server reports its
//!   remaining quota, no more calls leave than that.
//!
//! A server is a scheme, a host and a port, unless [`per`](OutboundLimitLayer::per) is set.
//!
//! | header fields | on | effect |
//! |---|---|---|
//! | `Retry-After: 30`, or a date in any of its three forms | any 4xx or 5xx | no call leaves until then |
//! | `RateLimit: "name";r=5;t=30`, several or one | any response | at most 5 more calls leave in 30 s, for each name |
//! | `RateLimit: "name";r=0` and `RateLimit-Policy: "name";q=5;w=30` | any response | no call leaves for 30 s |
//! | `RateLimit: limit=9, remaining=5, reset=30` | any response | the same |
//! | `RateLimit-Remaining`, `RateLimit-Reset` | any response | the same |
//! | `X-RateLimit-Remaining`, `X-RateLimit-Reset`, also `X-Rate-Limit-…` | any response | the same; a large reset is a Unix time, in seconds or milliseconds |
//! | `grpc-retry-pushback-ms`, or a `RetryInfo` among the details | gRPC responses without messages, `RESOURCE_EXHAUSTED` or `UNAVAILABLE` | no call leaves until then |
//!
//! If a field occurs several times, the strictest value applies. In a response with an `Age`, the remaining quota is
//! that of the time at which a cache stored it, so it is ignored; its `Retry-After` is reduced by the age.
//!
//! Dates and Unix times are compared with the `Date` of the same response, so a wrong clock of the client does no harm.
//! Values that are invalid, negative or already over are ignored. Nothing holds longer than
//! [`longest_hold`](OutboundLimitLayer::longest_hold).
//!
//! Calls in flight when a response arrives are subtracted from the remaining quota that it reports, as if the server
//! had not counted them yet. Calls in flight for more than ten seconds are not subtracted, so that calls which hang do
//! not reduce the quota again and again.
//!
//! ```
//! use std::time::Duration;
//!
//! use http::{Request, Response};
//! use tidegate::Limit;
//! use tidegate::outbound::{Throttled, OutboundLimitLayer};
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
//! let outgoing = OutboundLimitLayer::new().pace(Limit::per_second(10)).max_wait(Duration::from_secs(5)).jitter(10);
//! let mut client = outgoing.layer(server);
//! let request = || Request::get("http://example.com/").body(()).expect("a request");
//!
//! let answer = client.ready().await.expect("it is ready").call(request()).await.expect("an answer");
//! assert_eq!(answer.status(), 429);
//!
//! // From now on nothing leaves for this server for 30 s, which is more than anybody here would wait.
//! let error = client.ready().await.expect("it is ready").call(request()).await.expect_err("held back");
//! let held = error.downcast_ref::<Throttled>().expect("our own error");
//! assert!(held.is_reported() && held.retry_after() > Some(Duration::from_secs(29)));
//! # }
//! ```
//!
//! After a hold or a used-up quota is over, waiters leave by slow start: first one, after its response two may be in
//! flight, then four, and so on. A response with the remaining quota ends the slow start, and a denial restarts it. A
//! call that hangs delays the next one for at most a second.
//!
//! The layer stores the state of 1,024 servers. If there are more, it first forgets servers whose state is over, then
//! the server with the largest remaining quota. If all of them hold calls back at the same time, further servers share
//! one queue: their calls may wait for each other, and none leaves too early.

mod departure;
mod hints;
mod hold_state;
mod origin;
mod origin_state;
mod origins;
mod service;
mod slow_start;
mod throttled;

pub use service::{BoxError, OutboundLimit, OutboundLimitFuture};
pub use throttled::Throttled;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Algorithm, Clock, CounterClock, HOUR, Limit, Pay};
use tidegate_tower::key::{self, Identify};
use tower_layer::Layer;

use self::departure::{Settings, Shared};
use self::hold_state::PaceConfig;

/// The default maximum number of waiters for one server.
const MOST_WAITING: usize = 1024;

/// A layer for clients: paces outgoing calls, and obeys the limits that servers report.
///
/// Clones, and the services that they make, share their state. A setting resets it, so apply settings first.
///
/// It is the counterpart of a rate limit of a server: it keeps a client from being denied, in place of denying
/// requests. Put it inside of retries and caches, so that exactly the requests that reach the network are counted.
#[doc(alias = "client-side rate limiting")]
#[doc(alias = "rate limit middleware")]
#[doc(alias = "throttle")]
#[doc(alias = "backpressure")]
#[doc(alias = "Retry-After")]
#[doc(alias = "RateLimit header")]
#[doc(alias = "tower middleware")]
#[derive(Clone)]
pub struct OutboundLimitLayer {
    by: Arc<dyn Identify>,
    shared: Arc<Shared>,
}

impl OutboundLimitLayer {
    /// Returns a layer without a pace that obeys servers by scheme, host and port, and has no max wait.
    pub fn new() -> OutboundLimitLayer {
        let terms = PaceConfig { pace: None, longest_hold: HOUR, jitter: 0 };
        let clock = Arc::new(CounterClock::new());
        let wall = hints::wall_clock;
        let settings = Settings { terms, max_wait: None, most_waiting: MOST_WAITING, clock, wall };
        OutboundLimitLayer {
            by: Arc::new(key::from(origin::origin)),
            shared: Arc::new(Shared::new(settings)),
        }
    }

    /// Sets the rate at which calls leave for each server.
    ///
    /// # Panics
    /// If the limit is a concurrency limit, which is not a rate: for that there is
    /// [`ConcurrencyLimitLayer`](tidegate_tower::ConcurrencyLimitLayer).
    #[doc(alias = "throttle")]
    #[doc(alias = "rate limiter")]
    #[must_use]
    pub fn pace(self, limit: Limit) -> OutboundLimitLayer {
        let is_pace = limit.algorithm() != Algorithm::Concurrency;
        assert!(is_pace, "limit {limit}: places in flight are no pace; use a rate, such as \"10/s\"");
        // Each call has the same cost, so the pace is the same if the next call pays; but the first call does not wait.
        let pays_next = limit.draft().pay(Pay::Next).build();
        let limit = pays_next.unwrap_or(limit);
        self.set(|settings| settings.terms.pace = Some(limit))
    }

    /// Sets the key by which calls are limited, in place of the server. The extractors are those of
    /// `tidegate::tower::key`, by the feature `tower`.
    ///
    /// Use it where several hosts share one quota, or where one host has a quota for each account:
    ///
    /// ```
    /// use tidegate::outbound::OutboundLimitLayer;
    /// use tidegate::tower::key;
    ///
    /// let by_account = OutboundLimitLayer::new().per((key::host(), key::header("x-account")));
    /// # let _ = by_account;
    /// ```
    #[must_use]
    pub fn per(self, key: impl Identify) -> OutboundLimitLayer {
        OutboundLimitLayer { by: Arc::new(key), ..self.set(|_| ()) }
    }

    /// Sets the max wait: a call that would have to wait longer fails at once, with a [`Throttled`] that contains the
    /// time to the next try.
    ///
    /// Unless set, calls wait as long as necessary. With [`Duration::ZERO`] none waits.
    #[doc(alias = "timeout")]
    #[must_use]
    pub fn max_wait(self, longest: Duration) -> OutboundLimitLayer {
        self.set(|settings| settings.max_wait = Some(longest))
    }

    /// Sets the maximum number of waiters for each server; 16 times as many may wait in all. The default is 1,024. A
    /// call beyond that fails at once.
    ///
    /// A queue without a bound would grow as long as calls come faster than they leave. A full queue is backpressure:
    /// the error is [`Throttled`] with [`is_queue_full`](Throttled::is_queue_full).
    #[doc(alias = "queue capacity")]
    #[doc(alias = "backpressure")]
    #[must_use]
    pub fn max_waiters(self, most: usize) -> OutboundLimitLayer {
        self.set(|settings| settings.most_waiting = most)
    }

    /// Sets the longest hold that a server may ask for; longer ones are cut to it. The default is an hour.
    ///
    /// It bounds the harm of a wrong header field, such as a date in the next year.
    #[must_use]
    pub fn longest_hold(self, longest: Duration) -> OutboundLimitLayer {
        self.set(|settings| settings.terms.longest_hold = longest)
    }

    /// Sets the jitter: a hold is extended by a random share of up to this percentage, so that not all clients of a
    /// server return at once. The default is 0.
    ///
    /// # Panics
    /// If it is more than 100.
    #[must_use]
    pub fn jitter(self, percent: u8) -> OutboundLimitLayer {
        assert!(percent <= 100, "jitter {percent}: it is a percentage; write 0 to 100");
        self.set(|settings| settings.terms.jitter = percent)
    }

    /// Sets the clock.
    ///
    /// Tests set a [`ManualClock`](tidegate_core::ManualClock) and advance it.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> OutboundLimitLayer {
        self.set(|settings| settings.clock = clock)
    }

    /// Returns the number of calls that wait now.
    ///
    /// It counts the calls to all servers, for metrics. It takes the lock of the queue.
    pub fn waiting(&self) -> usize {
        self.shared.counts().0
    }

    fn set(self, change: impl FnOnce(&mut Settings)) -> OutboundLimitLayer {
        let mut settings = self.shared.settings.clone();
        change(&mut settings);
        OutboundLimitLayer { by: self.by, shared: Arc::new(Shared::new(settings)) }
    }
}

impl Default for OutboundLimitLayer {
    fn default() -> OutboundLimitLayer {
        OutboundLimitLayer::new()
    }
}

impl<S> Layer<S> for OutboundLimitLayer {
    type Service = OutboundLimit<S>;

    fn layer(&self, inner: S) -> OutboundLimit<S> {
        OutboundLimit::new(inner, Arc::clone(&self.by), Arc::clone(&self.shared))
    }
}

impl fmt::Debug for OutboundLimitLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.shared.settings;
        out.debug_struct("OutboundLimitLayer")
            .field("terms", &settings.terms)
            .field("max_wait", &settings.max_wait)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
