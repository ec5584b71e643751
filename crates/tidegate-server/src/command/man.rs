//! `tidegate man`: prints one manual page about all commands.
//!
//! The page is rendered from the same definitions as the help text, so both always agree. Package scripts write it
//! to `tidegate.1`.

use std::io;
use std::process::ExitCode;

use clap::{Args, Command};

use super::failure::Failure;
use super::output::print;

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate man | man -l -
  tidegate man > ~/.local/share/man/man1/tidegate.1";

/// Print the manual page
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Man {}

impl Man {
    /// Runs the command. It fails only if the page cannot be rendered.
    #[expect(clippy::unused_self, reason = "a command may have flags, and this one has none")]
    pub(super) fn run(&self, command: Command) -> Result<ExitCode, Failure> {
        let page =
            page(command).map_err(|error| Failure::failed(format!("cannot write the page: {error}")))?;
        print(&page);
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the page of the program, with a section for each command.
///
/// The generator would write one page per command. One page is easier to search.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for subcommand in command.get_subcommands() {
        page.extend_from_slice(section(subcommand.clone())?.as_bytes());
    }
    page.extend_from_slice(examples(&command).as_bytes());
    Ok(page)
}

/// Returns the section of a command: its own page, one level deeper.
///
/// The synopsis and the options become subsections.
fn section(command: Command) -> io::Result<String> {
    let heading = format!(".SH \"TIDEGATE {}\"\n", command.get_name().to_uppercase());
    let examples = examples(&command);
    let mut body = Vec::new();
    let man = clap_mangen::Man::new(command);
    man.render_description_section(&mut body)?;
    man.render_synopsis_section(&mut body)?;
    man.render_options_section(&mut body)?;
    let body = String::from_utf8_lossy(&body);
    let body = body.replacen(".SH DESCRIPTION\n", "", 1) + &examples;
    Ok(heading + &body.replace(".SH ", ".SS "))
}

/// Returns the examples of a command line by line, as they are typed.
///
/// Backslashes and hyphens are escaped, so that a copied command line has ASCII hyphens.
fn examples(command: &Command) -> String {
    let Some(text) = command.get_after_help() else { return String::new() };
    let lines = text.to_string();
    let lines = lines.lines().skip(1).map(|line| line.trim_start().replace('\\', "\\e").replace('-', "\\-"));
    let lines: String = lines.map(|line| line + "\n").collect();
    format!(".SH EXAMPLES\n.nf\n{lines}.fi\n")
}
