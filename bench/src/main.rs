//! Tidegate and its peers side by side, in one run.
//!
//! `cargo xtask bench NAME` runs one of these. Each prints a table and ends with a line per goal, and exits
//! with 1 if a goal is missed.

mod decide;
mod rounds;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("decide") => decide::run(),
        other => {
            eprintln!("unknown bench {}; there is: decide", other.unwrap_or("(none)"));
            ExitCode::from(2)
        }
    }
}
