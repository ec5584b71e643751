//! Reading of a policy with all errors and warnings, each with its place in the text; for tools and servers.
//!
//! | need | function |
//! |---|---|
//! | a policy from a file, or one error with all messages | [`Policy::from_toml`] |
//! | a policy made in code | [`Policy::builder`] |
//! | errors and warnings as values, with line and column | [`read`] |
//! | a file with tables of your own beside the rules | [`read`] with [`OtherTables::Any`] |
//!
//! The fields of a file are listed on the page of [`Policy`](crate::Policy#fields-of-a-rule). A file and the builders
//! have the same fields, checks and messages.
//!
//! Validation never stops at the first error. A field that is missing, has the wrong type or an invalid value is
//! reported with its position and a remedy, and the rest of the rule is validated with a default in its place. So an
//! operator corrects a file once. At most 100 errors are listed, and one more line counts the others.
//!
//! A warning is a policy that is valid but probably not intended, such as a rule that is never reached. Warnings never
//! prevent a policy from being put in force. Only [`read`] returns them; a policy made in code has none.

mod builder;
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

pub use builder::{PolicyBuilder, RuleBuilder, ScheduleWindow};
pub use tidegate_support::{Complaint, TextPlace};

use crate::gate::{SystemCalendar, WallClock as _};
use crate::policy::Policy;
use crate::rule::{Mode, Rule, StaticVerdict};
use valid::Valid;
use written::Reader;

/// The result of reading a policy file.
///
/// A policy is present exactly if there are no errors. The warnings of a file with errors are not computed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reading {
    /// The policy, if there are no errors.
    pub policy: Option<Policy>,
    /// The errors, in the order of their positions.
    pub errors: Vec<Complaint>,
    /// The warnings, in the order of their positions.
    pub warnings: Vec<Complaint>,
}

/// The tables without rules that a file may have.
///
/// A server keeps its settings in the same file, in the tables `[server]` and `[store]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherTables {
    /// The tables of a server, which are skipped.
    OfServer,
    /// Any table. The caller validates them.
    Any,
}

/// Reads a policy, and reports all of its errors. The warnings may depend on the current date.
///
/// A window of one year that has ended is such a warning. The policy itself never depends on the date.
///
/// ```
/// use tidegate::rules::config::{OtherTables, read};
///
/// let text = "[[rule]]\nname = 'a'\nlimit = '60/min'\n\n[[rule]]\nlimit = '1/s'\n";
/// let reading = read(text, OtherTables::Any);
/// assert!(reading.policy.is_none());
/// let lines: Vec<_> = reading.errors.iter().filter_map(|error| Some(error.place(text)?.line)).collect();
/// assert_eq!(lines, [3, 5]);
/// ```
pub fn read(text: &str, others: OtherTables) -> Reading {
    read_at(text, others, SystemCalendar.now())
}

/// Reads a policy as of this date, in seconds since 1970.
///
/// The date decides only which windows of a schedule are reported as ended.
pub(crate) fn read_at(text: &str, others: OtherTables, now: i64) -> Reading {
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        // Errors after the first syntax error are unreliable.
        return Reading { policy: None, errors: vec![syntax(error, text)], warnings: Vec::new() };
    }
    let mut reader = Reader::default();
    let written = reader.policy(root.get_ref(), others);
    let mut valid = Valid::new(Some(text), reader.complaints);
    let Some(all) = valid.all(&written) else {
        return Reading { policy: None, errors: valid.complaints.shown(), warnings: Vec::new() };
    };
    let mut warnings = warnings::warnings(&all.rules, &written.rules, now);
    if text.trim().is_empty() {
        let what =
            "is empty: nothing is limited; write a rule, or a comment if there shall be none: # no rules";
        warnings.push(Complaint::at(0..0, what));
    }
    let is_enforced = |rule: &Rule| match rule.limited() {
        Some(limited) => {
            limited.candidate_for.is_none() && limited.all_terms().any(|terms| terms.mode == Mode::Enforce)
        }
        None => rule.mode() == Mode::Enforce,
    };
    if let Some(unmatched) = written.unmatched.as_ref().filter(|_| all.unmatched == StaticVerdict::Deny)
        && !all.rules.iter().any(is_enforced)
    {
        let what = "unmatched: denies every request, as no rule is enforced; write a rule for those that are allowed";
        warnings.push(Complaint::at(unmatched.span.clone(), what));
    }
    let warnings = warnings.shown();
    let policy = Policy::new(all.rules, all.zones, valid.slots, all.unmatched);
    Reading { policy: Some(policy), errors: Vec::new(), warnings }
}

/// An error: the text, or the rules of a [`PolicyBuilder`], are not a valid policy.
///
/// Displays one line for each error, followed by the line of the text with carets. An error in code names the rule
/// instead.
///
/// ```
/// use tidegate::rules::Policy;
///
/// let error = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '60/min'\n").unwrap_err();
/// assert_eq!(error.complaints().len(), 1);
/// assert!(error.to_string().starts_with("policy:3:"));
/// ```
#[derive(Clone, Debug)]
pub struct PolicyError {
    text: String,
    complaints: Vec<Complaint>,
}

impl PolicyError {
    /// Returns all errors, in the order of their positions.
    ///
    /// Each has the message and the range of bytes in the text; a complaint about a policy made in code has no range.
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
    /// Parses a policy from TOML: tables `[[rule]]`, `[zone.NAME]`, `[rules]` and `[attributes]`, with
    /// [these fields](Policy#fields-of-a-rule).
    ///
    /// The tables `[server]` and `[store]` of a server's file are skipped, and any other table is an error. Use
    /// [`read`] for a file with other tables, or to see the warnings.
    ///
    /// # Errors
    /// All errors of the text at once, each with its line and column, the value, and the remedy.
    pub fn from_toml(text: &str) -> Result<Policy, PolicyError> {
        let Reading { policy, errors, .. } = read(text, OtherTables::OfServer);
        policy.ok_or_else(|| PolicyError { text: text.to_owned(), complaints: errors })
    }
}
