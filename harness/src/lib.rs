//! What benches, drills, tests and the shop's rush share.
//!
//! ```text
//!   processes   Process, Server, Part --> guard: ends what is left when this process is killed
//!   time        Stopwatch, until, pause; usage: CPU time and memory of processes
//!   load        Clients: closed and open loops over RESP and HTTP       (feature `load`)
//!   report      Report: facts and claims; Goal; Progress; columns
//!   plot        Chart, Panels: small SVG charts; png                    (feature `picture`)
//!   sale        Crowd, Buyer, Round, Books: a shop seen from outside    (feature `sale`)
//!               rush: every strategy with and without limiter           (feature `rush`)
//! ```
//!
//! Nothing here knows how a limiter decides, and nothing that is judged is decided by a clock that is read here.

mod folder;
mod guard;
#[cfg(feature = "load")]
pub mod load;
mod options;
#[cfg(feature = "picture")]
mod picture;
pub mod plot;
mod port;
mod process;
mod report;
#[cfg(feature = "sale")]
pub mod sale;
mod server;
mod stopwatch;
mod usage;

pub use folder::Folder;
pub use options::{Options, Section, Sections};
#[cfg(feature = "picture")]
pub use picture::png;
pub use port::Port;
pub use process::{Process, beside, in_own_process, in_path, once_more, send};
pub use report::{Goal, Progress, Report, columns, thousands};
pub use rustix::process::Signal;
pub use server::{Complaints, Server};
pub use stopwatch::{
    Stopwatch, median, milliseconds, now, pause, quantile, running, unix_time, until, waited_to_run,
};
pub use usage::{
    cpu_time, cpu_time_of, cpu_time_of_threads, mebibytes, most_resident, raise_open_files, resident,
    resident_of,
};
