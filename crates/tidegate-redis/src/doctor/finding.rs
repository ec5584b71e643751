//! The findings of a diagnosis.

use std::fmt;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gravity {
    /// No fault.
    Good,
    /// It works, but may fail under load or after a failure.
    Warning,
    /// Limits will be exceeded, or no decision is possible.
    Bad,
}

impl Gravity {
    /// Returns the severity as a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Gravity::Good => "good",
            Gravity::Warning => "warning",
            Gravity::Bad => "bad",
        }
    }
}

impl fmt::Display for Gravity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The object of the check, in a word.
    pub about: String,
    /// The severity.
    pub gravity: Gravity,
    /// The observation and, for a fault, the remedy.
    pub what: String,
}

impl Finding {
    pub(super) fn new(about: &str, gravity: Gravity, what: impl Into<String>) -> Finding {
        Finding { about: about.to_owned(), gravity, what: what.into() }
    }

    pub(super) fn good(about: &str, what: impl Into<String>) -> Finding {
        Finding::new(about, Gravity::Good, what)
    }

    pub(super) fn warning(about: &str, what: impl Into<String>) -> Finding {
        Finding::new(about, Gravity::Warning, what)
    }

    pub(super) fn bad(about: &str, what: impl Into<String>) -> Finding {
        Finding::new(about, Gravity::Bad, what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}: {}", self.gravity, self.about, self.what)
    }
}
