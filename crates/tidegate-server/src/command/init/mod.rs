//! `tidegate init`: writes a starter file.
//!
//! The file has one active rule in shadow mode, which denies no request, and an example of every other feature as a
//! comment. An existing file is never overwritten.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::failure::Failure;
use super::output::{print, say};

/// The starter file. Its comments explain the rules.
const STARTER: &str = include_str!("starter.toml");

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate init
  tidegate init etc/tidegate.toml
  tidegate init - | less";

/// Write a starter file of settings and rules
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// File to write; a dash prints it
    #[arg(value_name = "FILE", default_value = "tidegate.toml")]
    file: PathBuf,
}

impl Init {
    /// Runs the command. Prints the next steps to standard error.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        if self.file == Path::new("-") {
            print(STARTER.as_bytes());
            return Ok(ExitCode::SUCCESS);
        }
        write(&self.file).map_err(|error| self.failure(&error))?;
        let file = self.file.display();
        let config =
            if self.file == Path::new("tidegate.toml") { String::new() } else { format!(" --config {file}") };
        say(format_args!("wrote {file}; read it, then try:"));
        say(format_args!("  tidegate explain{config} ip=192.0.2.7 path=/login method=POST"));
        say(format_args!("  tidegate serve{config}"));
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the error about a file that was not written.
    fn failure(&self, error: &io::Error) -> Failure {
        let file = self.file.display();
        match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::failed(format!(
                "{file}: is there already and stays as it is; name another, as in `tidegate init new.toml`, \
                 or print it with `tidegate init -`"
            )),
            _ => Failure::failed(format!(
                "{file}: cannot be written: {error}; name a file in a folder that is there"
            )),
        }
    }
}

/// Writes the file. An existing file is an error.
///
/// The check and the creation are one operation, so a file that appears meanwhile is not overwritten.
fn write(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(STARTER.as_bytes())
}
