//! The text of a policy: what was written → what holds, or everything that is wrong with it.
//!
//! ```text
//!   text -> RuleText, each field with its place -> Rule, valid   (`written/`, `valid/`)
//!                                               -> complaints, all at once
//! ```

#[cfg(test)]
mod tests;
mod valid;
mod warnings;
mod window;
mod written;

use std::error::Error;
use std::fmt;

use tidegate_support::syntax;
use toml::de::DeTable;

pub use tidegate_support::{Complaint, TextPlace};

use crate::gate::{Calendar as _, SystemCalendar};
use crate::policy::Policy;
use valid::Valid;
use written::Reader;

/// What came of a text.
#[derive(Debug)]
pub struct Reading {
    /// The policy, if nothing is wrong.
    pub policy: Option<Policy>,
    /// What is wrong, in the order of the places.
    pub errors: Vec<Complaint>,
    /// What is probably not meant so, in the order of the places.
    pub warnings: Vec<Complaint>,
}

/// Which tables a text may have that are not about rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherTables {
    /// Those of a server, which are passed over.
    OfServer,
    /// Any: somebody else looks at them.
    Any,
}

/// Reads a policy, and says everything that is wrong with it. What is probably not meant so may depend on the date.
pub fn read(text: &str, others: OtherTables) -> Reading {
    read_at(text, others, SystemCalendar.now())
}

/// Reads a policy as on this day, in seconds since 1970.
pub(crate) fn read_at(text: &str, others: OtherTables, now: i64) -> Reading {
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        // What follows a slip is guesswork.
        return Reading { policy: None, errors: vec![syntax(error, text)], warnings: Vec::new() };
    }
    let mut reader = Reader::default();
    let written = reader.policy(root.get_ref(), others);
    let mut valid = Valid::new(text, reader.complaints);
    let Some(all) = valid.all(&written) else {
        return Reading { policy: None, errors: valid.complaints.shown(), warnings: Vec::new() };
    };
    let mut warnings = warnings::warnings(&all.rules, &written.rules, now);
    if text.trim().is_empty() {
        let what =
            "is empty: nothing is limited; write a rule, or a comment if there shall be none: # no rules";
        warnings.push(Complaint::at(0..0, what));
    }
    let warnings = warnings.shown();
    let policy = Policy::new(all.rules, all.zones, valid.slots);
    Reading { policy: Some(policy), errors: Vec::new(), warnings }
}

/// A text that is no policy.
///
/// Displays as a line for each complaint, and under it the line of the text with carets.
#[derive(Clone, Debug)]
pub struct PolicyError {
    text: String,
    complaints: Vec<Complaint>,
}

impl PolicyError {
    /// Everything that is wrong, in the order of the places.
    pub fn complaints(&self) -> &[Complaint] {
        &self.complaints
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> =
            self.complaints.iter().map(|complaint| complaint.shown("policy", &self.text)).collect();
        out.write_str(&lines.join("\n"))
    }
}

impl Error for PolicyError {}

impl Policy {
    /// Reads a policy; tables of the same file that are about a server are passed over.
    pub fn from_toml(text: &str) -> Result<Policy, PolicyError> {
        let Reading { policy, errors, .. } = read(text, OtherTables::OfServer);
        policy.ok_or_else(|| PolicyError { text: text.to_owned(), complaints: errors })
    }
}
