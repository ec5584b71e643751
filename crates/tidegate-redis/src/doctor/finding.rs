//! What was found.

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gravity {
    /// As it should be.
    Good,
    /// It works, and may fail when it matters.
    Warning,
    /// Limits will not hold, or nothing can be decided.
    Bad,
}

impl Gravity {
    /// In a word.
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

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at, in a word.
    pub about: String,
    /// How much it matters.
    pub gravity: Gravity,
    /// What was seen, and what would do.
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
