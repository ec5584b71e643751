//! The required behaviour of every implementation of a Tidegate limit, in a form that any of them can replay.
//!
//! - [`trace`]: the text format of recorded behaviour, and a player; the files are in `traces/`.
//! - [`promise`]: a limit as plain numbers, from which both the product and the oracle are built.
//! - [`calendar`]: the periods of a calendar, found by walking.
//! - [`oracle`]: judges that keep only the list of what was admitted and the written promise. They share no
//!   code and no formula with the algorithms.
//! - [`model`]: the textbook token bucket and funnel, to be compared step by step with the one-word form.
//! - [`extreme`]: the promises in integers that cannot overflow.
//! - [`generate`]: random traces aimed at the instants where a verdict changes.
//! - [`law`]: what must hold after every step, whatever the limit.
//! - [`keeper`]: the owners of states, the pure functions or a store; laws and oracles judge any of them.
//! - [`clock`]: a clock that can advance at every reading, so that no two readings are the same time.
//! - [`batch`]: random batches in lock-step with the same takes one by one.
//! - [`versions`]: the laws of a rule whose numbers change, and of servers that still have the old ones.
//! - [`arm`]: the targets of a trace: keepers and handles here, protocols in other crates.

pub mod arm;
pub mod batch;
pub mod calendar;
pub mod clock;
pub mod extreme;
mod folder;
pub mod generate;
pub mod keeper;
pub mod law;
pub mod model;
pub mod oracle;
pub mod promise;
pub mod random;
pub mod trace;
pub mod versions;

pub use folder::Folder;

use tidegate::{Ticks, Timestamp};

/// Returns a span of so many ticks of 1/16 ns, for what is finer than a `Duration`.
pub const fn ticks(count: u64) -> Ticks {
    Timestamp::from_ticks(count).since(Timestamp::EPOCH)
}

/// Returns the rows of a table in a text, each of `N` cells with ` | ` between them. Empty lines are left out.
///
/// # Panics
/// If a row has another number of cells.
pub fn rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    let cells = |row| str::split(row, " | ").collect::<Vec<_>>();
    let of = move |row| cells(row).try_into().unwrap_or_else(|_| panic!("{N} cells: {row}"));
    table.lines().filter(|row| !row.is_empty()).map(of)
}
