//! `tidegate check`: reports every error and warning of a settings file.
//!
//! `check` loads the file as `serve` does, and checks existing files of the store as well. Every error and warning
//! is printed with its place, so that an editor or a pre-commit hook can show it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::Args;
use serde::Serialize;
use tidegate_support::{Complaint, MAX_COMPLAINTS};

use super::failure::Failure;
use super::output::{print_line, say};
use crate::files;
use crate::settings::{ComplaintRecord, Loaded, SettingValue, SettingsError, Source};

/// The exit code of an invalid file.
const WRONG: u8 = 2;

/// The long help text.
const ABOUT: &str = "\
Check a file of settings and rules

Reads the file as `tidegate serve --config FILE` does, and reports every error and warning. No server is started. Existing files of \
the store are checked as well: a server does not start on a zone of another size. Flags and variables of serve are ignored, \
except TIDEGATE_TOKEN: a file that opens a port to other machines needs a token, and the token itself is in no file.

Exits with 0 if the file is valid, with 2 if it is invalid, and with --strict with 1 if there are warnings.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate check
  tidegate check etc/tidegate.toml --strict
  tidegate check --json | jq .errors";

/// Check a file of settings and rules
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Check {
    /// File of settings and rules
    #[arg(value_name = "FILE", default_value = "tidegate.toml")]
    file: PathBuf,
    /// Print errors and warnings as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    strict: bool,
}

/// The outcome of a check, for programs.
#[derive(Serialize)]
struct Checked<'a> {
    /// True if the file is valid, whatever warnings there are.
    ok: bool,
    /// The errors; empty for a valid file.
    errors: Vec<ComplaintRecord<'a>>,
    /// The warnings; empty for an invalid file.
    warnings: Vec<ComplaintRecord<'a>>,
    /// The number of rules, if the file is valid.
    rules: Option<usize>,
}

impl Check {
    /// Runs the command. Errors in the file are output of the command, and not a [`Failure`].
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        is_there(&self.file)?;
        // The token counts, because `serve` would read it, too.
        match Source::new(Some(self.file.clone()), SettingValue::token().into_iter().collect()).load() {
            Ok(loaded) => Ok(self.with_files(loaded)),
            Err(error) => Ok(self.invalid(&error)),
        }
    }

    /// Checks the files of the store as well. A file that this user may not open is only a warning: the server may run
    /// as another user.
    fn with_files(&self, mut loaded: Loaded) -> ExitCode {
        match files::check(&loaded.settings) {
            Ok(()) => self.valid(&loaded),
            Err(error) if error.is_forbidden() => {
                let what = files::described(&error);
                loaded.warnings.push(what.clone());
                loaded.warned.push(Complaint::alone(what));
                self.valid(&loaded)
            }
            Err(error) => self.invalid(&SettingsError::alone(files::described(&error))),
        }
    }

    /// Prints the warnings and the result for a valid file. With `--strict` a warning is a failure.
    fn valid(&self, loaded: &Loaded) -> ExitCode {
        let text = loaded.text.as_deref().unwrap_or_default();
        let warnings = &loaded.warned;
        let (rules, zones) = (loaded.settings.policy.rules().len(), loaded.settings.policy.zones().len());
        if self.json {
            let warnings = findings(warnings, text);
            print_json(&Checked { ok: true, errors: Vec::new(), warnings, rules: Some(rules) });
        } else {
            loaded.warnings.iter().for_each(|warning| say(format_args!("warning: {warning}")));
            let zones = if zones == 0 { String::new() } else { format!(", {}", count(zones, "zone")) };
            let warned = match warnings.len() {
                0 => String::new(),
                number if number > MAX_COMPLAINTS => format!(", with more than {MAX_COMPLAINTS} warnings"),
                number => format!(", with {}", count(number, "warning")),
            };
            print_line(format_args!("{}: {}{zones}: ok{warned}", self.file.display(), count(rules, "rule")));
        }
        if self.strict && !warnings.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Prints the errors of an invalid file.
    fn invalid(&self, error: &SettingsError) -> ExitCode {
        let (file, complaints) = error.complaints();
        if self.json {
            let errors = findings(complaints, file.map_or("", |file| &file.text));
            print_json(&Checked { ok: false, errors, warnings: Vec::new(), rules: None });
        } else {
            error.each().for_each(|error| say(format_args!("error: {error}")));
            let errors = match complaints.len() {
                many if many > MAX_COMPLAINTS => format!("more than {MAX_COMPLAINTS} errors"),
                few => count(few, "error"),
            };
            print_line(format_args!("{}: {errors}", self.file.display()));
        }
        ExitCode::from(WRONG)
    }
}

/// Returns an error with a remedy if the file is missing or is a folder.
pub(super) fn is_there(file: &Path) -> Result<(), Failure> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::misused(format!(
            "{}: there is no such file; name another, or write one with `tidegate init`",
            file.display()
        ))),
        Ok(found) if found.is_dir() => {
            Err(Failure::misused(format!("{}: is a folder; name a file of settings", file.display())))
        }
        _ => Ok(()),
    }
}

/// Returns the complaints in structured form.
fn findings<'a>(complaints: &'a [Complaint], text: &str) -> Vec<ComplaintRecord<'a>> {
    complaints.iter().map(|complaint| ComplaintRecord::new(complaint, text, None)).collect()
}

/// Prints the outcome as one line of JSON.
fn print_json(checked: &Checked<'_>) {
    print_line(serde_json::to_string(checked).expect("numbers and text are JSON"));
}

/// Returns a number with its noun, as in `1 rule`, `2 rules` or `no rules`.
fn count(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
