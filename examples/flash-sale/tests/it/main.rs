//! The shop over real databases, and its parts.
//!
//! All of it is for tests only and says so, because then also the helpers may unwrap.

#![cfg(test)]

mod addresses;
mod books;
mod browser;
mod connections;
mod databases;
mod hint;
mod http;
mod keeper;
mod limits;
mod links;
mod open;
mod pauses;
mod process;
mod proved;
mod queue;
mod returns;
mod rush;
mod selling;
mod silent;
mod troubled;
mod wishes;
