//! Errors about invalid settings, reported all at once.
//!
//! A user who fixes one error should not find the next one only at the next start. So every source of settings is
//! read to its end, and all complaints are sorted by their place.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use tidegate_support::{Complaint, in_order};

use super::load::ConfigFile;

/// The error for invalid settings: every complaint, and the file that they are about.
///
/// Displays one line per complaint, followed by the line of the file with carets.
#[derive(Debug)]
pub(crate) struct SettingsError {
    /// The file with its secrets masked; `None` if no file was read.
    file: Option<ConfigFile>,
    /// The complaints, sorted by place; those without a place come last.
    complaints: Vec<Complaint>,
}

impl SettingsError {
    /// Creates an error from complaints about a file, the environment and flags. Sorts them by place.
    pub(super) fn new(file: Option<ConfigFile>, mut complaints: Vec<Complaint>) -> SettingsError {
        in_order(&mut complaints);
        SettingsError { file, complaints }
    }

    /// Creates an error with one complaint that has no place in a file.
    pub(crate) fn alone(what: String) -> SettingsError {
        SettingsError { file: None, complaints: vec![Complaint::alone(what)] }
    }

    /// Returns the text of each complaint.
    ///
    /// A text can have several lines: the message, the line of the file, and the carets.
    pub(crate) fn each(&self) -> impl Iterator<Item = String> {
        self.complaints.iter().map(|complaint| match &self.file {
            Some(file) => file.shown(complaint),
            None => complaint.what.clone(),
        })
    }

    /// Returns the file, if there is one, and the complaints in structured form.
    pub(crate) fn complaints(&self) -> (Option<&ConfigFile>, &[Complaint]) {
        (self.file.as_ref(), &self.complaints)
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.each().collect::<Vec<_>>().join("\n"))
    }
}

impl Error for SettingsError {}

/// One complaint, serialized for programs.
#[derive(Debug, Serialize)]
pub(crate) struct ComplaintRecord<'a> {
    /// The line, from 1; `None` for a complaint without a place in the file.
    line: Option<usize>,
    /// The column in characters, from 1.
    column: Option<usize>,
    /// The fault and the remedy, in one line.
    message: &'a str,
    /// The complaint with the line of the text and carets under the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
}

impl<'a> ComplaintRecord<'a> {
    /// Creates a finding from a complaint about `text`.
    pub(crate) fn new(complaint: &'a Complaint, text: &str, shown: Option<String>) -> ComplaintRecord<'a> {
        let (line, column) = complaint.place(text).map(|place| (place.line, place.column)).unzip();
        ComplaintRecord { line, column, message: &complaint.what, shown }
    }
}
