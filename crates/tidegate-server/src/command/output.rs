//! Output of commands: data to standard output, messages to standard error. A closed pipe is not an error.
//!
//! The print macros panic if the output is closed, for example by `head`. These functions do not.

use std::fmt;
use std::io::{self, Write as _};

/// Prints data to standard output.
pub(super) fn print(data: &[u8]) {
    let mut out = io::stdout().lock();
    // If the reader is gone, there is no one to report the error to.
    let _ = out.write_all(data).and_then(|()| out.flush());
}

/// Prints a line of data to standard output.
pub(super) fn print_line(line: impl fmt::Display) {
    print(format!("{line}\n").as_bytes());
}

/// Prints a message to standard error.
///
/// The message is written with one call, so that lines of several threads do not mix.
pub(super) fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
