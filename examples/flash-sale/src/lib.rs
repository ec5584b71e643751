//! A small shop that never oversells, with a rate limiter in front of it.
//!
//! ```text
//!   http: links, limits, queue --> Shop --> hint (Redis, may be wrong)
//!                                   |
//!                                   `-----> strategy --> database: stock, orders, payments --> audit
//! ```

pub mod audit;
pub mod command;
pub mod database;
pub mod hint;
pub mod http;
pub mod limits;
pub mod link;
pub mod meter;
pub mod outcome;
pub mod payment;
pub mod queue;
mod reservations;
pub mod sale;
pub mod seen;
pub mod shop;
pub mod strategy;
