//! The rate-limit server: decisions for programs in any language, over RESP and HTTP.
//!
//! A front only translates: it parses bytes into a request to the engine, and serializes the decision.
//! Every resource that a connection can use has a limit in [`settings::Bounds`].
//!
//! ```text
//!   clients --RESP, HTTP--> front --> engine --> store: memory, file, or Redis with a fallback
//!                                        |
//!                         rules file --> gate
//! ```
//!
//! The binary `tidegate` is [`command::run`]. A program that embeds a server uses [`Server`] and [`Settings`]. The
//! algorithms and stores are in the crate `tidegate`, the rules in `tidegate-rules`.

mod accept;
mod attribute;
#[cfg(test)]
mod bench;
pub mod command;
mod date;
mod decision_fields;
mod engine;
mod explained;
mod files;
mod front;
mod memory;
mod meter;
mod outage;
mod overrides;
mod penalty;
mod permit;
mod precondition;
mod reload;
mod rules;
mod server;
pub mod settings;
mod spans;
mod top_keys;
mod unfinished;
mod worker;

/// Entry points of the fuzz targets.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::front::http::fuzz::http_body;
    pub use crate::front::resp::fuzz::{resp_parse, resp_session, resp_split};
}

pub use front::Front;
pub use server::{Server, StartError};
pub use settings::Settings;
