//! What is printed where. A reader that has gone away ends nothing.

use std::fmt;
use std::io::{self, Write as _};

/// Data, on standard output.
pub(super) fn print(data: &[u8]) {
    let mut out = io::stdout().lock();
    // Nobody is left to be told that nobody is left.
    let _ = out.write_all(data).and_then(|()| out.flush());
}

/// A line of data.
pub(super) fn print_line(line: impl fmt::Display) {
    print(format!("{line}\n").as_bytes());
}

/// A line of talk, on standard error.
pub(super) fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
