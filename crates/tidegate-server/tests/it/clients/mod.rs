//! Tests of stock Redis clients, in their own languages, against a server in this process.
//!
//! ```text
//!   law: what everybody sees -> trait Client -> script: redis-py, ioredis, node-redis, by lines of JSON
//!                                            -> redis_rs: the redis crate
//!   redis-cli, redis-benchmark: what they print
//! ```
//!
//! `cargo xtask clients` installs them. The server's clock stands still, so every number is known.

mod law;
mod place;
mod redis_benchmark;
mod redis_cli;
mod redis_rs;
mod script;
mod scripts;
pub(crate) mod tools;
