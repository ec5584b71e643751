//! `tidegate doctor`: checks the dependencies of a server, and reports what to change.
//!
//! Each finding has a topic, a gravity (good, warning, bad) and a text that names a remedy. With a shared store the
//! client library of the server examines Redis. With a file the files of the store are examined. No state is
//! changed: scripts run on keys that the doctor creates and removes.

mod files;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tidegate::{FallbackStore, Map};
use tidegate_redis::doctor::{self, Gravity, examine};
use tidegate_rules::{Gate, Policy};
use tokio::runtime::Builder;

use super::failure::Failure;
use super::output::{print_line, say};
use super::written::Written;
use crate::settings::{Settings, SharedSettings, Source};

/// The long help text.
const ABOUT: &str = "\
Diagnose the dependencies of a server

Reads settings as `tidegate serve` does, and starts no server. If counts are shared in Redis or Valkey, it connects as a server \
does and checks address and password, version and role, eviction policy, clock, round-trip time, permissions of the user, and every \
script on keys of its own, which it removes; with Sentinels and in a cluster also the topology. If counts are in a file, it checks \
each file of the store: size, bytes in use, and the process that has it open.

Exits with 0 if all is well, with 1 if a finding is bad, and with --strict also if there are warnings.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate doctor
  tidegate doctor --config etc/tidegate.toml
  tidegate doctor --store-kind redis --store-url redis+sentinel://10.0.0.5:26379,10.0.0.6:26379/shop
  tidegate doctor --json | jq '.findings[] | select(.gravity != \"good\")'";

/// Diagnose the dependencies of a server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// File of settings [default: ./tidegate.toml if there is one]
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    config: Option<OsString>,
    /// Print all findings as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    written: Written,
}

/// The topic of a finding, its gravity, and its text.
type Finding = (String, Gravity, String);

/// All findings, for programs.
#[derive(Serialize)]
struct Found<'a> {
    /// True if no finding is bad and, with `--strict`, none is a warning.
    ok: bool,
    /// The findings, in the order of the examination.
    findings: Vec<Row<'a>>,
}

/// One finding, for programs.
#[derive(Serialize)]
struct Row<'a> {
    /// The topic of the finding.
    about: &'a str,
    /// `good`, `warning` or `bad`.
    gravity: &'static str,
    /// The text for people.
    what: &'a str,
}

impl Doctor {
    /// Runs the command. Invalid settings are a [`Failure`], since nothing can be examined then.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let config = self.config.filter(|path| !path.is_empty()).map(PathBuf::from);
        let mut loaded = Source::new(config, self.written.0).load()?;
        let mut rows = vec![("settings".to_owned(), Gravity::Good, loaded.origin.clone())];
        rows.extend(
            loaded.warnings.iter().map(|warning| ("settings".to_owned(), Gravity::Warning, warning.clone())),
        );
        match &loaded.settings.store.shared.clone() {
            Some(shared) => {
                rows.push(rules(std::mem::take(&mut loaded.settings.policy), shared)?);
                rows.extend(
                    look(shared)?
                        .into_iter()
                        .map(|doctor::Finding { about, gravity, what, .. }| (about, gravity, what)),
                );
            }
            None => rows.extend(own(&loaded.settings)),
        }
        let worst = rows.iter().map(|(_, gravity, _)| *gravity).max().unwrap_or(Gravity::Good);
        let is_ok = worst < Gravity::Bad && !(self.strict && worst > Gravity::Good);
        if self.json {
            let findings = rows
                .iter()
                .map(|(about, gravity, what)| Row { about, gravity: gravity.as_str(), what })
                .collect();
            print_line(serde_json::to_string(&Found { ok: is_ok, findings }).expect("text is JSON"));
        } else {
            rows.iter().for_each(|(about, gravity, what)| {
                print_line(format_args!("{:<8} {about}: {what}", gravity.as_str()));
            });
            say(if is_ok {
                "no problem found"
            } else {
                "something has to change; see the lines that begin with bad or warning"
            });
        }
        Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Returns the findings about a store that is not shared.
fn own(settings: &Settings) -> Vec<Finding> {
    match &settings.store.file {
        Some(path) => files::look(settings, path),
        None => {
            let what = "counts are in this server's own memory; there is nothing else to look at. They end with the process; \
                        --store-file FILE keeps them";
            vec![("store".to_owned(), Gravity::Good, what.to_owned())]
        }
    }
}

/// Examines the servers of the shared store.
///
/// Blocks until the examination ends. Every request to a server has a deadline.
fn look(shared: &SharedSettings) -> Result<Vec<doctor::Finding>, Failure> {
    let runtime = Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("cannot wait for answers: {error}")))?;
    let found = runtime.block_on(examine(shared.options()));
    found.map_err(|error| Failure::misused(error.to_string()))
}

/// Returns the finding about the store's support for the rules.
fn rules(policy: Policy, shared: &SharedSettings) -> Result<Finding, Failure> {
    let store = shared.open().map_err(|error| Failure::misused(error.to_string()))?;
    let count = policy.rules().len();
    let store = FallbackStore::new(Arc::new(store), &Map::new());
    let gate = Gate::new(policy, store);
    Ok(match gate {
        Ok(_) => {
            ("rules".to_owned(), Gravity::Good, format!("the store can hold what all {count} of them count"))
        }
        Err(unfit) => ("rules".to_owned(), Gravity::Bad, unfit.to_string()),
    })
}
