//! The shop over real databases, and its parts.
//!
//! The crate is `cfg(test)`, so that the helpers may unwrap, too.

#![cfg(test)]

mod addresses;
mod books;
mod connections;
mod http;
mod limits;
mod links;
mod open;
mod process;
mod queue;
mod returns;
mod selling;
mod wishes;
