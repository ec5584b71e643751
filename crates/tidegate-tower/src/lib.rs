//! Layers for any `http` service: axum, tonic, hyper, or one of your own.
//!
//! | layer | does |
//! |---|---|
//! | [`RateLimit`] | holds callers to a limit, by whatever names them, or to rules |
//! | [`InFlight`] | so many requests at a time, with lines and classes |
//! | [`Guarded`] | lets fewer pass while too many of them fail |
//!
//! The layer for clients is in `tidegate-outbound`.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use http::{Request, Response, StatusCode};
//! use tidegate::Limit;
//! use tidegate_tower::{RateLimit, key};
//! use tower::{Service as _, ServiceBuilder, service_fn};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let hello = service_fn(|_: Request<String>| async { Ok::<_, Infallible>(Response::new(String::from("hello"))) });
//! let limits = RateLimit::new(Limit::per_hour(2), key::header("x-api-key")).named("api");
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
//! Whatever a program hands to a layer sees the [`Head`] of a request, and never its body. Nothing here needs a certain
//! runtime: who waits is woken by a [`Clock`](tidegate::Clock), without a task, a thread or a timer of its own.

pub mod answer;
mod body;
mod delay;
pub mod guarded;
mod head;
pub mod in_flight;
pub mod key;
mod limit;

pub use answer::{Dialect, Reason, Refused};
pub use body::Answered;
pub use guarded::Guarded;
pub use head::{Head, ResponseHead};
pub use in_flight::{InFlight, outcome_of};
pub use limit::{RateLimit, RateLimited, ResponseFuture, Settle};
pub use tidegate_rules::OnRepeated;
