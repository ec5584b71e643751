//! Why a command did not do what it was told, and the code that it ends with.

use std::io::ErrorKind::{AddrInUse, PermissionDenied};
use std::process::ExitCode;

use tidegate::{LimitError, ZoneError};
use tidegate_rules::Unfit;

use super::output::say;
use crate::StartError;
use crate::files::{self, with_cause};
use crate::settings::SettingsError;

/// It failed.
const FAILED: u8 = 1;
/// It was called or configured wrongly.
const MISUSED: u8 = 2;

/// What went wrong, perhaps several things at once.
#[derive(Debug)]
pub(super) struct Failure {
    code: u8,
    messages: Vec<String>,
}

impl Failure {
    /// It could not be done.
    pub(super) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, messages: vec![message.into()] }
    }

    /// It was not asked for in a way that can be done.
    pub(super) fn misused(message: impl Into<String>) -> Failure {
        Failure { code: MISUSED, messages: vec![message.into()] }
    }

    /// The same, with one more line of explanation.
    pub(super) fn explained(mut self, line: &str) -> Failure {
        if let Some(message) = self.messages.last_mut() {
            *message += &format!("\n  {line}");
        }
        self
    }

    /// Says it, and returns the code to end with.
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
            // What the system says is in the message already.
            StartError::Bind { source, .. } if matches!(source.kind(), AddrInUse | PermissionDenied) => {
                Failure::failed(error.to_string())
            }
            StartError::Unfit(Unfit::NoMemory(error)) if error.files().is_some() => {
                Failure::failed(with_cause(error))
            }
            StartError::Unfit(_) => Failure::failed(error.to_string()),
            StartError::Bind { .. } | StartError::Threads(_) => Failure::failed(with_cause(&error)),
        }
    }
}

impl From<ZoneError> for Failure {
    fn from(error: ZoneError) -> Failure {
        Failure::failed(files::described(&error))
    }
}
