//! `tidegate completions`: prints the completion script of a shell.
//!
//! The script knows all commands, flags and fixed values. It is generated from the same definitions as the help
//! text.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::failure::Failure;
use super::output::print;

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate
  tidegate completions zsh > ~/.zfunc/_tidegate
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish";

/// Print the completion script of a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// Shell to print the script for
    shell: Shell,
}

impl Completions {
    /// Runs the command. It cannot fail.
    pub(super) fn run(&self, command: &mut Command) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        generate(self.shell, command, "tidegate", &mut script);
        print(&script);
        Ok(ExitCode::SUCCESS)
    }
}
