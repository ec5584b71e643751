//! The error of an invalid URL: the fault and its remedy.

use std::error::Error;
use std::fmt;

/// An error: the URL is invalid. The text never contains secrets. Its message names the part of the URL that is wrong,
/// and a valid spelling.
#[doc(alias = "parse error")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    what: String,
}

impl UrlError {
    /// Creates an error with this message. The caller must not pass credentials.
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
