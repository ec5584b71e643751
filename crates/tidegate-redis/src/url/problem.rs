//! The error of an invalid URL: the fault and its remedy.

use std::error::Error;
use std::fmt;

/// An error: the URL is invalid. The text never contains secrets.
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
