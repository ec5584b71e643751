//! The files on the right read no clock and no file, except the mapping itself and `wall.rs`.

#![cfg_attr(
    any(tidegate_models, not(target_os = "linux")),
    allow(dead_code, unused_imports, reason = "zones in files need Linux, and memory that is not a model's")
)]

mod bytes;
#[cfg(target_os = "linux")]
mod create;
mod epoch;
mod error;
mod file;
#[cfg(all(test, not(tidegate_models)))]
mod folder;
#[cfg(fuzzing)]
mod fuzz;
mod header;
mod mapping;
#[cfg(target_os = "linux")]
mod open;
mod record;
mod seed;
pub(crate) mod states;
#[cfg(target_os = "linux")]
mod system;
mod wall;

pub use error::ZoneError;
pub(crate) use file::ZoneFile;
#[cfg(fuzzing)]
pub use fuzz::zone_header;
pub(crate) use header::{Flaw, Identity};
pub(crate) use mapping::{Mapping, Part, Shareable};
pub(crate) use seed::fresh_seed;
