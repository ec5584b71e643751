//! Layers for any `http` service: axum, tonic, hyper, or one of your own.
//!
//! Programs reach them as `tidegate::tower`, by the feature `tower` of the crate `tidegate`.
//!
//! | layer | does |
//! |---|---|
//! | [`RateLimitLayer`] | limits the rate of requests by a key, or by rules |
//! | [`ConcurrencyLimitLayer`] | limits the concurrency of requests, with a queue and priority classes |
//! | [`CircuitBreakerLayer`] | a circuit breaker: admits a smaller share of requests while too many of them fail |
//!
//! The layer for clients is in `tidegate::outbound`. A handler that is limited inside of the service, such as by
//! `#[tidegate::rate_limit]`, replies with a [`DeniedResponse`]. Each layer passes its decisions to a function for
//! metrics: see [`RateLimitLayer::on_decision`].
//!
//! ```
//! use std::convert::Infallible;
//!
//! use http::{Request, Response, StatusCode};
//! use tidegate::Limit;
//! use tidegate::tower::{RateLimitLayer, key};
//! use tower::{Service as _, ServiceBuilder, service_fn};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let hello = service_fn(|_: Request<String>| async { Ok::<_, Infallible>(Response::new(String::from("hello"))) });
//! let limits = RateLimitLayer::new(Limit::per_hour(2), key::header("x-api-key")).named("api");
//! let mut service = ServiceBuilder::new().layer(limits).service(hello);
//!
//! let mut answers = Vec::new();
//! for _ in 0..3 {
//!     let request = Request::builder().header("x-api-key", "ana").body(String::new())?;
//!     answers.push(service.call(request).await?);
//! }
//! assert_eq!(answers[1].headers()["ratelimit-policy"], "\"api\";q=2;w=3600");
//! assert_eq!(answers[2].status(), StatusCode::TOO_MANY_REQUESTS);
//! assert!(answers[2].headers().contains_key("retry-after"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Functions that a program passes to a layer receive the [`Head`] of a request, never its body. Nothing here depends
//! on a runtime: a [`Clock`](tidegate_core::Clock) wakes waiters, without a task, a thread or a timer for each of them.
//!
//! # Order of layers
//!
//! From the outside to the inside: authentication, [`RateLimitLayer`], [`CircuitBreakerLayer`],
//! [`ConcurrencyLimitLayer`], timeouts, the service. A request that an outer layer denies costs the inner ones nothing.
//!
//! # Features
//!
//! | feature of `tidegate` | adds |
//! |---|---|
//! | `axum` | `IntoResponse` for [`DeniedResponse`], so that it is the error type of an axum handler |
//!
//! The feature `axum` includes `tower`. The layers need no feature of their own under axum.

pub mod answer;
mod body;
pub mod circuit_breaker;
pub mod concurrency_limit;
mod delay;
mod event;
mod head;
pub mod key;
mod limit;

pub use answer::{DeniedRequest, DeniedResponse, Dialect, Reason};
pub use body::Answered;
pub use circuit_breaker::CircuitBreakerLayer;
pub use concurrency_limit::{ConcurrencyLimitLayer, outcome_of};
pub use event::{DecisionEvent, DecisionResult};
pub use head::{Head, ResponseHead};
pub use limit::{RateLimit, RateLimitLayer, ResponseFuture, Settle};
pub use tidegate_rules::OnRepeated;
