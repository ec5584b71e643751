//! Settings that do not hold: everything that is wrong with them at once.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use tidegate_support::{Complaint, in_order};

use super::load::ConfigFile;

/// Settings that do not hold.
///
/// Displays as a line for each complaint, and under it the line of the file with carets.
#[derive(Debug)]
pub(crate) struct SettingsError {
    file: Option<ConfigFile>,
    complaints: Vec<Complaint>,
}

impl SettingsError {
    /// Complaints about a file, the environment and flags, in the order of their places.
    pub(super) fn new(file: Option<ConfigFile>, mut complaints: Vec<Complaint>) -> SettingsError {
        in_order(&mut complaints);
        SettingsError { file, complaints }
    }

    /// One complaint that is about no place of a file.
    pub(crate) fn alone(what: String) -> SettingsError {
        SettingsError { file: None, complaints: vec![Complaint::alone(what)] }
    }

    /// Each complaint by itself.
    pub(crate) fn each(&self) -> impl Iterator<Item = String> {
        self.complaints.iter().map(|complaint| match &self.file {
            Some(file) => file.shown(complaint),
            None => complaint.what.clone(),
        })
    }

    /// Each complaint as it is, and the file that it is about.
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

/// One complaint, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Finding<'a> {
    line: Option<usize>,
    column: Option<usize>,
    message: &'a str,
    /// With the line of the text, and carets under the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<String>,
}

impl<'a> Finding<'a> {
    /// A complaint about this text.
    pub(crate) fn new(complaint: &'a Complaint, text: &str, shown: Option<String>) -> Finding<'a> {
        let (line, column) = complaint.place(text).map(|place| (place.line, place.column)).unzip();
        Finding { line, column, message: &complaint.what, shown }
    }
}
