//! A layer that limits requests by their key or by rules.
//!
//! ```
//! use tidegate::{Limit, SECOND};
//! use tidegate::tower::{RateLimitLayer, key};
//!
//! let layer = RateLimitLayer::new(Limit::per_second(10).burst(20), key::header("x-api-key"))
//!     .named("api")
//!     .cost(|head| if head.path().starts_with("/export") { 10 } else { 1 })
//!     .wait(SECOND)
//!     .exempt_options();
//! # let _ = layer;
//! ```
//!
//! Each file imports only files below it:
//!
//! ```text
//!   layer           RateLimitLayer: settings and deciders are put together
//!   service         RateLimit: receives requests and decides about them
//!   future          CallState: waiting -> ready -> running -> settling, or denied
//!   decider         by key or by rules
//!   by_key/rules    decide, and own their waits: for a key and in a queue; for attributes, a gate, a time
//!   outcome         CallOutcome: pass, deny, wait
//!   on_response     header fields, corrections and permits, when the service has responded
//!   per_request     a limiter for each limit that comes with requests
//!   named_limiter   a limiter with the name and the header fields of its limit
//!   settings        settle
//! ```

mod by_key;
mod by_rules;
mod decider;
mod future;
mod layer;
mod named_limiter;
mod on_response;
mod outcome;
mod per_request;
mod service;
mod settings;
mod settle;

pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use service::RateLimit;
pub use settle::Settle;
