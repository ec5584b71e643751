//! Decisions for programs in any language: one server that speaks RESP and HTTP.
//!
//! A front translates and nothing else: bytes become a question to the engine, whose answer becomes bytes.
//! What every front may use up is bounded by a name in [`settings::Bounds`].

mod accept;
mod answer;
mod attribute;
#[cfg(test)]
mod bench;
pub mod command;
mod date;
mod engine;
mod explained;
mod files;
mod front;
mod memory;
mod meter;
mod outage;
mod permit;
mod precondition;
mod reload;
mod rules;
mod server;
pub mod settings;
mod unfinished;
mod worker;

/// What fuzzers reach and nobody else.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::front::http::fuzz::http_body;
    pub use crate::front::resp::fuzz::{resp_parse, resp_session, resp_split};
}

pub use front::Front;
pub use server::{Server, StartError};
pub use settings::Settings;
