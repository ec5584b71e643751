//! The findings of a diagnosis.

use std::fmt;

/// The severity of a finding.
///
/// Severities are ordered, so the worst finding is the maximum.
#[doc(alias = "severity")]
#[doc(alias = "level")]
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
    ///
    /// The word is stable: scripts that read the output of `tidegate doctor` may rely on it.
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

/// The result of one check. Its `Display` output is one line: severity, object, observation.
#[doc(alias = "diagnostic")]
#[doc(alias = "report")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The object of the check, in a word. For example `eviction`.
    pub about: String,
    /// The severity.
    pub gravity: Gravity,
    /// The observation and, for a fault, the remedy.
    pub what: String,
}

impl Finding {
    /// Creates a finding. `what` is a sentence without a full stop; a remedy follows a semicolon.
    pub(super) fn new(about: &str, gravity: Gravity, what: impl Into<String>) -> Finding {
        Finding { about: about.to_owned(), gravity, what: what.into() }
    }

    /// Creates a finding of a check that passed.
    pub(super) fn good(about: &str, what: impl Into<String>) -> Finding {
        Finding::new(about, Gravity::Good, what)
    }

    /// Creates a finding about a risk, or about a check that could not be made.
    pub(super) fn warning(about: &str, what: impl Into<String>) -> Finding {
        Finding::new(about, Gravity::Warning, what)
    }

    /// Creates a finding about a fault.
    pub(super) fn bad(about: &str, what: impl Into<String>) -> Finding {
        Finding::new(about, Gravity::Bad, what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}: {}", self.gravity, self.about, self.what)
    }
}
