//! Causes and outcomes of reading or writing the rules file.

use std::io;

use serde::Serialize;

use crate::overrides::NotKept;
use crate::precondition::Unmet;
use crate::reload::Look;
use crate::settings::SettingsError;

/// The outcome of all reloads since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Status {
    /// The number of times that other rules came into force.
    pub(crate) replaced: u64,
    /// The number of times that a file was invalid.
    pub(crate) rejected: u64,
    /// The complaints about the current file, if it is invalid. The previous rules stay in force.
    pub(crate) wrong: Option<String>,
}

/// The cause of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// An explicit request, such as a signal. The outcome is reported even if nothing changed.
    Asked,
    /// The watcher saw this state of the file twice in a row.
    Seen(Look),
    /// The file has had this state for so long that no writer is at work any more.
    Rested(Look),
}

/// The outcome of one reload.
///
/// It does not say if a report was made: an explicit request reports `Same`, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reloaded {
    /// The rules in force are unchanged, and so are the complaints about the file, if any.
    Same,
    /// Other rules are in force.
    Replaced,
    /// The file is invalid; the previous rules stay in force.
    Rejected,
    /// The file contains a prefix of the text in force; a writer may be at work.
    Unfinished,
}

/// The report of a replacement of rules.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The differences, one line each.
    pub(crate) differences: Vec<String>,
    /// The warnings about valid but probably unintended rules, one text each.
    pub(crate) warnings: Vec<String>,
}

/// The reason why a file was not written.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// The text is invalid.
    Rejected(SettingsError),
    /// The server was started without a file.
    NoFile,
    /// The text in force is not the one that the change is based on.
    Unmet(Unmet),
    /// The file on disk differs from the text in force.
    Changed,
    /// The audit log cannot be written.
    NotLogged(NotKept),
    /// The operating system reported an error.
    Io(io::Error),
}
