//! Stock clients of Redis, in their own languages, against a server in this process.
//!
//! ```text
//!   law: what everybody sees -> trait Client -> script: redis-py, ioredis, node-redis, by lines of JSON
//!                                            -> redis_rs: the redis crate
//!   redis-cli, redis-benchmark: what they print
//! ```
//!
//! `cargo xtask clients` gets them. The server's clock stands still, so every number is known.

mod ioredis;
mod law;
mod node_redis;
mod place;
mod redis_benchmark;
mod redis_cli;
mod redis_py;
mod redis_rs;
mod script;
mod tools;
