//! The error of a command, and its exit code.
//!
//! A failure is printed as `error: ` and its message, on standard error. Causes of the operating system follow on a
//! line of their own.

use std::fmt;
use std::io::ErrorKind::{AddrInUse, PermissionDenied};
use std::process::ExitCode;

use tidegate::{LimitError, ZoneError};
use tidegate_rules::UnsupportedPolicy;

use super::output::say;
use crate::StartError;
use crate::files::{self, with_cause};
use crate::settings::SettingsError;

/// The exit code of a failure.
const FAILED: u8 = 1;
/// The exit code of an invalid call or configuration.
const MISUSED: u8 = 2;

/// The error of a command, with one or more messages.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    code: u8,
    /// The messages, each with a remedy.
    messages: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.messages.join("; "))
    }
}

impl Failure {
    /// Creates an error with exit code 1.
    ///
    /// For faults outside of the call: no server, no memory, a port in use.
    pub(super) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, messages: vec![message.into()] }
    }

    /// Creates an error with exit code 2.
    ///
    /// For faults of the call or of its files: an invalid value, a missing file, an invalid setting.
    pub(super) fn misused(message: impl Into<String>) -> Failure {
        Failure { code: MISUSED, messages: vec![message.into()] }
    }

    /// Appends a line of explanation to the last message.
    pub(super) fn explained(mut self, line: &str) -> Failure {
        if let Some(message) = self.messages.last_mut() {
            *message += &format!("\n  {line}");
        }
        self
    }

    /// Prints all messages, and returns the exit code.
    pub(super) fn report(&self) -> ExitCode {
        for message in &self.messages {
            say(format_args!("error: {message}"));
        }
        ExitCode::from(self.code)
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        Failure { code: MISUSED, messages: error.each().collect() }
    }
}

impl From<LimitError> for Failure {
    fn from(error: LimitError) -> Failure {
        Failure::misused(format!("{error:#}"))
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match &error {
            StartError::NoPort | StartError::Open { .. } | StartError::Store(_) => {
                Failure::misused(error.to_string())
            }
            // The message contains the cause already.
            StartError::Bind { source, .. } if matches!(source.kind(), AddrInUse | PermissionDenied) => {
                Failure::failed(error.to_string())
            }
            StartError::Unfit(UnsupportedPolicy::NoMemory(error)) if error.files().is_some() => {
                Failure::failed(with_cause(error))
            }
            StartError::Unfit(_) | StartError::Overrides(_) => Failure::failed(error.to_string()),
            StartError::Bind { .. } | StartError::Threads(_) => Failure::failed(with_cause(&error)),
        }
    }
}

impl From<ZoneError> for Failure {
    fn from(error: ZoneError) -> Failure {
        Failure::failed(files::described(&error))
    }
}
