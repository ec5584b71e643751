//! What is wrong with a URL, where, and what would do.

use std::error::Error;
use std::fmt;

/// A URL that cannot be used. It never repeats what may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    what: String,
}

impl UrlError {
    pub(super) fn new(what: impl Into<String>) -> UrlError {
        UrlError { what: what.into() }
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl Error for UrlError {}
