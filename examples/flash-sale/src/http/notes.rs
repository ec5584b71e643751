//! What the shop says to whoever runs it, on the error output.

use std::fmt;
use std::sync::LazyLock;

use tidegate::{Limit, Single};

use crate::database::Fault;

/// Requests fail by the thousand when a database does: one line a second is enough.
static LINES: LazyLock<Single> = LazyLock::new(|| Single::new(Limit::per_second(1)));

/// Says something that is worth a line of its own.
pub(super) fn note(text: fmt::Arguments<'_>) {
    eprintln!("flash-sale: {text}");
}

/// Says why a request failed, unless another has just done so.
pub(super) fn failed(what: &str, fault: &Fault) {
    if LINES.admit().is_allowed() {
        note(format_args!("{what}: {fault}"));
    }
}
