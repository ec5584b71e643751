//! Limits shared by many machines through Redis or Valkey.
//!
//! Programs reach it as `tidegate::redis`, by the feature `redis` of the crate `tidegate`.
//!
//! [`RedisStore`] is a [`tidegate_core::Store`]: one atomic script decides about any number of limits in one round
//! trip, by the server's clock, exactly as the library does. It supports Sentinel and Cluster, gives every decision a
//! deadline, and fails immediately while the server is down. A [`tidegate_core::FallbackStore`] around it then decides;
//! under a gate of `tidegate::rules`, by the `on_store_failure` of each rule.
//!
//! ```no_run
//! use tidegate::redis::{Options, RedisStore};
//! use tidegate::{Limit, SharedLimiter};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let redis = RedisStore::open(Options::new("redis://127.0.0.1:6379".parse()?))?;
//! let logins = SharedLimiter::on(&redis, "login", Limit::per_minute(5));
//! if let Some(wait) = logins.admit("ana").await?.retry_after() {
//!     println!("try again in {wait:?}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Atomicity comes from Lua scripts: each reads the states of all limits of a request, and writes only if all of them
//! allow. The states use the same algorithms and numbers as in memory, so a decision has the same fields: remaining
//! quota, retry time and time to full.
//!
//! | module | content |
//! |---|---|
//! | [`RedisStore`] | the store, which limiters and gates call; fallback, cached denials, start-up |
//! | [`Options`], [`Url`] | its configuration: deadline, prefix, TLS, Sentinel, Cluster |
//! | [`OverrideTable`] | overrides of rules, shared by all servers with the same prefix |
//! | [`Status`] | its availability and counters, for health checks and metrics |
//! | [`doctor`] | a diagnosis of a deployment: version, eviction, permissions, clocks |
//!
//! Redis 6.2 or later and Valkey are supported. No module has to be loaded.

mod adjust;
mod background;
#[doc(hidden)]
pub mod bench;
mod callers;
mod counts;
mod denial_cache;
mod dial;
pub mod doctor;
mod exchange;
mod fault;
mod limits;
mod link;
mod open;
mod options;
mod overrides;
mod request_queue;
mod reset;
mod returns;
mod script;
mod status;
mod store;
mod take;
mod topology;
mod url;

pub use open::OpenError;
pub use options::Options;
pub use overrides::{OverrideTable, TableChange, TableRead};
pub use status::Status;
pub use store::RedisStore;
pub use url::{Url, UrlError};
