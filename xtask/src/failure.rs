//! Why a command ended badly, and the exit code that says so.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// A message for the person who ran the command, and the exit code for the script that did.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// Something did not hold: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with_code(message, 1)
    }

    /// The command line was not understood: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::with_code(message, 2)
    }

    /// A child's own exit code, passed on.
    pub(crate) fn with_code(message: impl Into<String>, code: u8) -> Self {
        Self { message: message.into(), code }
    }

    /// Turns an I/O error into a failure that names the file.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(format!("{}: {error}", path.display()))
    }

    /// The same failure with the place where it happened in front.
    pub(crate) fn within(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
