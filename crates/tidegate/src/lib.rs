#![cfg_attr(docsrs, feature(doc_cfg))]
//! Exact rate limiting: Tidegate decides whether one more action of a key may happen now, later or not at all.
//!
//! This crate is the one to depend on. It re-exports the library, [`tidegate_core`], and, by features, the crates
//! around it:
//!
//! | feature | module or item | content |
//! |---|---|---|
//! | – | everything at the root | [`Limit`], [`Limiter`], [`DirectLimiter`], [`Pacer`], [`Shaper`], [`Permits`], stores |
//! | `macros` | `rate_limit` | an attribute that limits a function |
//! | `rules` | `rules` | policies: which limits apply to a request |
//! | `redis` | `redis` | states that many machines share, on Redis or Valkey |
//! | `tower` | `tower` | layers for any `http` service |
//! | `outbound` | `outbound` | a layer for clients that obeys the limits of servers |
//! | `serde` | – | limits, rates and algorithms as their texts; decisions as structures |
//! | `tracing` | – | events at denials, and at failures of a remote store |
//!
//! ```toml
//! tidegate = { version = "0.1", features = ["macros", "tower"] }
//! ```
//!
//! ```
//! use tidegate::{Limit, Limiter};
//!
//! const API: Limit = Limit::per_second(10).burst(20); // an invalid literal does not compile
//! let limiter = Limiter::new(API);
//! assert!(limiter.admit("ana").is_allowed());
//! ```

pub use tidegate_core::*;

/// The attribute macro of the feature `macros`: limits a function or a method.
#[cfg(feature = "macros")]
#[doc(inline)]
pub use tidegate_macros::rate_limit;
/// A tower layer for clients: paces calls and obeys the limits that servers report.
#[cfg(feature = "outbound")]
pub use tidegate_outbound as outbound;
/// A store on Redis or Valkey, for states that many machines share.
#[cfg(feature = "redis")]
pub use tidegate_redis as redis;
/// Policies: which limits apply to a request, from a file or in code.
#[cfg(feature = "rules")]
pub use tidegate_rules as rules;
/// Tower layers: rate limits, concurrency limits and circuit breakers for any `http` service.
#[cfg(feature = "tower")]
pub use tidegate_tower as tower;

/// The pages for programs, whose code is compiled and run as doctests.
#[cfg(all(
    doctest,
    feature = "axum",
    feature = "macros",
    feature = "outbound",
    feature = "redis",
    feature = "rules",
    feature = "tower",
))]
mod pages {
    #[doc = include_str!("../../../README.md")]
    pub struct Readme;

    #[doc = include_str!("../../../docs/library.md")]
    pub struct Library;

    #[doc = include_str!("../../../docs/zone.md")]
    pub struct ZonePage;

    #[doc = include_str!("../../../docs/distributed.md")]
    pub struct Distributed;

    #[doc = include_str!("../../../docs/in-your-code.md")]
    pub struct InYourCode;
}
