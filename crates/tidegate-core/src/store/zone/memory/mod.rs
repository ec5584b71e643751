//! The memory beneath a zone: anonymous, or a file that outlives the process.
//!
//! ```text
//!  file.rs     a zone's file, open        mapping.rs  memory from the system; all unsafe code
//!  open.rs     what is there, looked at   header.rs   what never changes, as bytes
//!  create.rs   a new one, all or nothing  record.rs   what ties the zone's time to the machine's, as bytes
//!  system.rs   the system's calls         epoch.rs    what time it is in the zone
//!  states/     states of more than one    wall.rs     a wall clock that is set while the zone is in use
//!              word, in a file beside
//! ```
//!
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
pub(crate) use mapping::{MappedPart, Mapping, Shareable};
pub(crate) use seed::fresh_seed;
