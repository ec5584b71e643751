//! An answer that makes no sense.

use std::fmt;

/// A server's answer could not be understood: it is no server, or another version of these scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(String);

impl Unreadable {
    /// With what was there.
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
