//! Why a file of rules is read or written, and what came of it.

use std::io;

use serde::Serialize;

use crate::precondition::Unmet;
use crate::reload::Look;
use crate::settings::SettingsError;

/// What came of reading the rules again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Status {
    /// How often others came into force.
    pub(crate) replaced: u64,
    /// How often a file did not hold.
    pub(crate) rejected: u64,
    /// What is wrong with the file as it is now; the rules before it are in force.
    pub(crate) wrong: Option<String>,
}

/// Why a file is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Somebody says so, and wants to hear what came of it.
    Asked,
    /// It had this look, twice.
    Seen(Look),
    /// It has had this look for so long that nobody is writing it any more.
    Rested(Look),
}

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reloaded {
    /// The rules in force are what they were, and so is what is wrong with the file, if anything.
    Same,
    /// Other rules are in force.
    Replaced,
    /// It does not hold; the rules before it stay in force.
    Rejected,
    /// It is the beginning of what is in force, and perhaps being written.
    Unfinished,
}

/// What came with other rules.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// What is different, a line each.
    pub(crate) differences: Vec<String>,
    /// What is probably not meant so, a text each.
    pub(crate) warnings: Vec<String>,
}

/// Why a file was not written.
#[derive(Debug)]
pub(crate) enum NotWritten {
    /// The text does not hold.
    Rejected(SettingsError),
    /// The server was started without a file.
    NoFile,
    /// The text in force is not the one that is to be replaced.
    Unmet(Unmet),
    /// The file was changed by hand.
    Changed,
    /// The system does not let it be written.
    Io(io::Error),
}
