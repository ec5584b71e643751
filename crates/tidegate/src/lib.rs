#![cfg_attr(docsrs, feature(doc_cfg))]
//! Exact rate limiting: Tidegate decides whether one more action of a key may happen now, later or not at all.
//!
//! This crate is the one to depend on. It re-exports the library, [`tidegate_core`], and, by features, the crates
//! around it:
//!
//! | feature | module or item | content |
//! |---|---|---|
//! | – | everything at the root | limits, limiters, stores: see [choosing a type](#choosing-a-type) |
//! | `macros` | `rate_limit` | an attribute that limits a function |
//! | `rules` | `rules` | policies: which limits apply to a request |
//! | `redis` | `redis` | states that many machines share, on Redis or Valkey |
//! | `tower` | `tower` | layers for any `http` service |
//! | `axum` | `tower::DeniedResponse` | `IntoResponse`: denials as responses of axum handlers; enables `tower` |
//! | `outbound` | `outbound` | a layer for clients that obeys the limits of servers |
//! | `serde` | – | limits, rates and algorithms as their texts; decisions as [structures](Decision#serialized-form) |
//! | `tracing` | – | [events](#events) at denials, and at failures of a remote store |
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
//!
//! # Choosing a type
//!
//! | need | type |
//! |---|---|
//! | one limit per user, address or tenant | [`Limiter`] |
//! | one limit for the whole process | [`DirectLimiter`] |
//! | a limit in a [`Store`] that many machines share | [`SharedLimiter`] |
//! | decisions while that store is down | [`FallbackStore`] |
//! | several limits, all or none | [`admit_all`] |
//! | a batch of asks, each by itself | [`Limiter::admit_each`] |
//! | a limit that arrives with each request | [`DynamicLimiter`] |
//! | spaced calls, with bursts from saved idle time or with a warm-up | [`Pacer`] |
//! | evenly spaced calls from a bounded queue (traffic shaping) | [`Shaper`] |
//! | a maximum in flight per key, with leases | [`Permits`] |
//! | a maximum in flight for one service, fixed or adaptive | [`ConcurrencyLimiter`] |
//! | fewer calls while too many fail | [`CircuitBreaker`] |
//! | states in your own store | [`Limit::decide`], [`State`] |
#![cfg_attr(feature = "macros", doc = "| a limited function | [`rate_limit`] |")]
#![cfg_attr(feature = "rules", doc = "| limits by rules, from a file or in code | [`rules::Gate`] |")]
#![cfg_attr(feature = "redis", doc = "| a store on Redis or Valkey | [`redis::RedisStore`] |")]
#![cfg_attr(feature = "tower", doc = "| a limited `http` service | [`tower::RateLimitLayer`] |")]
#![cfg_attr(feature = "tower", doc = "| its maximum in flight | [`tower::ConcurrencyLimitLayer`] |")]
#![cfg_attr(feature = "tower", doc = "| its circuit breaker | [`tower::CircuitBreakerLayer`] |")]
#![cfg_attr(feature = "outbound", doc = "| a limited client | [`outbound::OutboundLimitLayer`] |")]
//!
//! Rates are limits per time; concurrency limits count calls in flight. A service usually needs both: a rate
//! protects it from one busy client, a concurrency limit from its own slowness.
//!
//! # Choosing an algorithm
//!
//! A [`Limit`] is a token bucket (GCRA) unless it names another [`Algorithm`].
//!
//! | need | text | constructor |
//! |---|---|---|
//! | a rate with bursts; if in doubt, this one | `10/s burst 20` | [`Limit::token_bucket`] |
//! | even load on an upstream; the others wait | `100/s queue 50 leaky-bucket` | [`Limit::leaky_bucket`] |
//! | a quota per minute, hour or day | `1000/d fixed-window` | [`Limit::fixed_window`] |
//! | a small limit in every trailing period, exactly | `5/60s sliding-log` | [`Limit::sliding_log`] |
//! | a large limit in every trailing period | `1000000/60s sliding-window` | [`Limit::sliding_window`] |
//! | spaced calls, with bursts from idle time or with a warm-up | `2/s warm-up 4s pacer` | [`Limit::pacer`] |
//! | a maximum in flight | `8/30s concurrency` | [`Limit::concurrency`] |
//! | a quota per calendar day, month or year | `1000/day calendar` | [`Limit::calendar`] |
//!
//! [`Algorithm`] compares their states and bursts. [Text of a limit](Limit#text-of-a-limit) describes all options.
//! [`Limit::worst_case`] returns the most that a limit admits in any interval.
//!
//! # Events
//!
//! With the feature `tracing`, events have the target `tidegate`:
//!
//! | level | message | fields | emitted at |
//! |---|---|---|---|
//! | debug | `denied` | `limiter`, `limit`, `remaining`, `retry_after` | a denial by `admit`, not by `acquire` |
//! | warn | `remote store failed` | `error` | the first take that the remote store of a [`FallbackStore`] did not decide |
//! | info | `remote store recovered` | none | the first take that it decided again |
//!
//! `limiter` is the name that was given to [`Limiter::on`] or [`SharedLimiter::on`], and empty for [`Limiter::new`].
//! Keys are never logged. The page of the crate [`tidegate_core`] lists the calls and the fields.

pub use tidegate_core::*;

/// The attribute macro of the feature `macros`: limits a function or a method. The page of the crate
/// [`tidegate_macros`] describes its arguments.
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

    #[doc = include_str!("../../../docs/tower.md")]
    pub struct Tower;

    #[doc = include_str!("../../../docs/macro.md")]
    pub struct Macro;

    #[doc = include_str!("../../../docs/coming-from.md")]
    pub struct ComingFrom;

    #[doc = include_str!("../../../docs/coming-from/governor.md")]
    pub struct FromGovernor;

    #[doc = include_str!("../../../docs/coming-from/guava.md")]
    pub struct FromGuava;

    #[doc = include_str!("../../../docs/coming-from/limitador.md")]
    pub struct FromLimitador;

    #[doc = include_str!("../../../docs/coming-from/nginx.md")]
    pub struct FromNginx;

    #[doc = include_str!("../../../docs/coming-from/throttlecrab.md")]
    pub struct FromThrottlecrab;
}
