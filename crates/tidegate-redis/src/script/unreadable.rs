//! The error of a reply that cannot be parsed.

use std::fmt;

/// An error: the reply could not be parsed. It came from another kind of server, or another version of these scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(String);

impl Unreadable {
    /// Creates an error with the unexpected value.
    pub(crate) fn new(what: &str, found: &impl fmt::Debug) -> Unreadable {
        Unreadable(format!("the server answered {what}: {found:?}"))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}
