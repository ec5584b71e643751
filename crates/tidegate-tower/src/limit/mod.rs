//! Limits requests by whom they come from.
//!
//! ```
//! use tidegate::{Limit, SECOND};
//! use tidegate_tower::{RateLimit, key};
//!
//! let layer = RateLimit::new(Limit::per_second(10).burst(20), key::header("x-api-key"))
//!     .named("api")
//!     .cost(|head| if head.path().starts_with("/export") { 10 } else { 1 })
//!     .wait(SECOND)
//!     .exempt_options();
//! # let _ = layer;
//! ```

mod build;
mod each;
mod fixed;
mod future;
mod noted;
mod paused;
mod rules;
mod service;
mod settings;
mod settle;

pub use future::ResponseFuture;
pub use service::RateLimited;
pub use settle::Settle;

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use settings::Settings;

/// A layer that lets requests pass as a limit allows; clones share what was counted.
///
/// Whoever is refused gets 429 with `Retry-After` and `application/problem+json`, or `RESOURCE_EXHAUSTED` if it is a
/// call of gRPC; the service is not asked. All answers tell what is left, see [`Dialect`](crate::Dialect).
///
/// The layer is ready when the service is. A request that waits holds no readiness: it waits with a clone of the
/// service, which is asked whether it is ready when the wait is over. A request that is refused leaves it to others.
///
/// Under a limit such as `8/30s concurrency` a request holds its place until its response is over. The limit's time, here
/// 30 seconds, has to be longer than the longest response: the place is free after it in any case. A connection that is
/// upgraded (101) gives its place back when the head of the response is sent.
///
/// In a nested router of axum the path is what is left of it: take the layer outside, or look at axum's `OriginalUri`.
#[derive(Clone)]
pub struct RateLimit {
    settings: Arc<Settings>,
}

impl<S> Layer<S> for RateLimit {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited::new(inner, Arc::clone(&self.settings))
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(out)
    }
}
