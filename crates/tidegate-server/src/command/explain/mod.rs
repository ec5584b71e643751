//! `tidegate explain`: explains the decision about a request, without a server.
//!
//! The rules of a file are put in force on an empty store and decide about one request. Running servers are not
//! affected.

mod request;
mod text;
mod worst_case;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tidegate::{Cost, StoreError, Zone};
use tidegate_rules::config::{self, OtherTables};
use tidegate_rules::{Attributes, Gate, ManualCalendar, Policy, SystemCalendar, WallClock};

use super::check::is_there;
use super::failure::Failure;
use super::output::{print_line, say};
use crate::date;
use crate::explained::Explained;
use crate::settings::{names_store_file, text_of};
pub(super) use request::{key_object, object};

/// The exit code of an invalid file.
/// The exit code of an invalid rules file.
const WRONG: u8 = 2;
/// The file that is read if none is named.
const USUAL_FILE: &str = "tidegate.toml";
/// Enough for the states of one request.
const ZONE_BYTES: usize = 1 << 20;

/// The long help text.
const ABOUT: &str = "\
Explain which rules apply to a request, and what they decide

Puts the rules of a file in force on an empty store and decides about one request. It needs no server, and contacts none. \
A request is described by its attributes: ip, path, method, host, user, header.NAME, cookie.NAME, query.NAME, or any other \
name that rules use. For every limit it reports the worst case: the most that can pass at one instant and in any interval \
of a length, the memory of one key, and its bytes on disk if the file names a store file. Without a request it prints the worst case of every rule.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate explain
  tidegate explain ip=192.0.2.7 path=/api/users method=GET
  tidegate explain ip=192.0.2.7 path=/export --cost 50 --json
  tidegate explain ip=192.0.2.7 path=/ --at 2026-11-11T08:00:00+08:00";

/// Explain which rules apply to a request, and what they decide
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Explain {
    /// Attributes of the request, as in ip=192.0.2.7
    #[arg(value_name = "NAME=VALUE")]
    known: Vec<OsString>,
    /// File of rules
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_CONFIG",
        hide_env_values = true,
        default_value = USUAL_FILE
    )]
    config: OsString,
    /// Cost of the request
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,
    /// Date for schedules, as in 2026-11-11T08:00:00Z [default: now]
    #[arg(long, value_name = "DATE")]
    at: Option<String>,
    /// Print the explanation as JSON, like `POST /v1/explain`
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Runs the command. The exit code does not depend on the verdict.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let cost = Cost::new(self.cost).unwrap_or_default();
        let request = request::read(&self.known)?.cost(cost);
        let calendar = self.calendar()?;
        let (policy, is_in_file) = match self.policy()? {
            Ok(read) => read,
            Err(code) => return Ok(code),
        };
        if !self.json && self.known.is_empty() {
            print_line(worst_case::WorstCaseTable(&policy));
            return Ok(ExitCode::SUCCESS);
        }
        request::unknown(&request, &policy).iter().for_each(say);
        let gate = Gate::builder(policy, Zone::new(ZONE_BYTES))
            .calendar(calendar)
            .build()
            .map_err(|error| Failure::failed(error.to_string()))?;
        self.explain(&gate, &request, is_in_file)
            .map_err(|error| Failure::failed(format!("the store does not answer: {error}")))
    }

    /// Explains the request, and prints the result as JSON or as text.
    fn explain(
        &self,
        gate: &Gate,
        request: &Attributes<'_>,
        is_in_file: bool,
    ) -> Result<ExitCode, StoreError> {
        let explanation = gate.explain(request).now()?;
        if self.json {
            let explained = Explained::new(&explanation, is_in_file);
            print_line(serde_json::to_string(&explained).expect("numbers and text are JSON"));
        } else {
            // The store is private to this command, so the take affects no other caller.
            let answer = gate.admit(request).now()?;
            print_line(text::Text { answer: &answer, explanation: &explanation, is_in_file });
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the wall clock for schedules: the system's, or one that is fixed at the date of `--at`.
    fn calendar(&self) -> Result<Arc<dyn WallClock>, Failure> {
        let Some(text) = &self.at else { return Ok(Arc::new(SystemCalendar)) };
        let wrong = || {
            Failure::misused(format!(
                "--at {text:?}: is no date with a time and a zone; write something like 2026-11-11T08:00:00Z"
            ))
        };
        Ok(Arc::new(ManualCalendar::at(date::read(text).ok_or_else(wrong)?)))
    }

    /// Reads the rules of the file, and whether it names a store file. Other server settings are ignored.
    fn policy(&self) -> Result<Result<(Policy, bool), ExitCode>, Failure> {
        // An empty variable counts as not set.
        let file = Path::new(if self.config.is_empty() { OsStr::new(USUAL_FILE) } else { &self.config });
        is_there(file)?;
        let name = file.display().to_string();
        let text = File::open(file).and_then(text_of).map_err(|error| {
            Failure::misused(format!("{name}: cannot be read: {error}; name a file of rules with --config"))
        })?;
        let reading = config::read(&text, OtherTables::Any);
        for error in &reading.errors {
            say(format_args!("error: {}", error.shown(&name, &text)));
        }
        let with_file = |policy| (policy, names_store_file(&text));
        Ok(reading.policy.map(with_file).ok_or(ExitCode::from(WRONG)))
    }
}
