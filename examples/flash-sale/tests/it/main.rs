//! The shop over real databases, and its parts.
//!
//! All of it is for tests only and says so, because then also the helpers may unwrap.

#![cfg(test)]

mod addresses;
mod books;
mod connections;
mod http;
mod keeper;
mod limits;
mod links;
mod open;
mod pauses;
mod process;
mod queue;
mod returns;
mod selling;
mod wishes;
