//! Tests of overrides that last: in a file that servers share, and in a real Redis.

mod audit;
mod file;
mod place;
mod redis;
mod shared;
