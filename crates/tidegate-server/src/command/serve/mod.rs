//! `tidegate serve`: runs a server until a signal stops it.
//!
//! ```text
//!   settings --> signals --> limits of the process --> store and server --> report --> serve --> drain
//! ```
//!
//! Warnings do not stop a start. Any error does, with exit code 1 or 2.

mod greeting;
mod host;
mod notify;
mod signals;
mod start;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tidegate::{Clock as _, SystemClock};
use tokio::runtime::Builder;

use super::failure::Failure;
use super::written::Written;
use crate::command::output::say;
use crate::memory;
use crate::reload::{Every, ReportListener};
use crate::settings::Source;
use greeting::Greeting;
use signals::Signals;

/// The long help text.
const ABOUT: &str = "\
Start a server that speaks RESP and HTTP

By default it listens on this machine only and keeps its counts in memory. With --store-file FILE the counts of every \
algorithm and of every zone survive restarts and kill -9; a power failure may lose the last of them. A flag overrides the environment, \
the environment overrides the file, and the file overrides the default. Ctrl-C or SIGTERM stops the server: requests in flight \
are finished first.

In the file, settings are under [server] and [store], with underscores instead of dashes: --max-connections is \
max_connections = 10000 under [server], --store-size is size = \"64MiB\" under [store].";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate serve
  tidegate serve --resp 127.0.0.1:7000 --http off
  tidegate serve --store-size 1GiB --store-file zone.tg
  tidegate serve --store-kind redis --store-url redis://10.0.0.5:6379 --store-nodes 4
  TIDEGATE_TOKEN=$(openssl rand -hex 32) tidegate serve --resp 0.0.0.0:6380";

/// Start a server that speaks RESP and HTTP
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Serve {
    /// File of settings; relative paths in it start at its folder [default: ./tidegate.toml if there is one]
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    config: Option<OsString>,
    /// Print one line of JSON with the addresses on standard output when ready
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    written: Written,
}

impl Serve {
    /// Runs the command. Blocks until a signal stops the server.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let clock = SystemClock::new();
        let started = clock.now();
        let config = self.config.filter(|path| !path.is_empty()).map(PathBuf::from);
        let source = Source::new(config, self.written.0);
        let loaded = source.load()?;
        loaded.warnings.iter().for_each(|warning| say(format_args!("warning: {warning}")));
        let cannot_run = |error: io::Error| Failure::failed(format!("cannot wait for signals: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot_run)?;
        // Signals are handled from here on, also while the store is opened.
        let mut signals = runtime.block_on(async { Signals::new() }).map_err(cannot_run)?;
        host::let_open(loaded.settings.bounds.max_connections);
        memory::suffices_for(&loaded.settings).map_err(Failure::misused)?;
        let pause = || runtime.block_on(signals.stops_within(start::RETRY));
        let Some(server) = start::start(&loaded.settings, pause)? else {
            say("stopped");
            return Ok(ExitCode::SUCCESS);
        };
        server.lost_states().iter().for_each(|warning| say(format_args!("warning: {warning}")));
        let store = server.watch_store(|line| say(line));
        server.read_rules_from(source, loaded.text.clone(), ReportListener::new(|lines| say(lines)), Every);
        Greeting { loaded: &loaded, server: &server, store }.give(&clock, started, self.json);
        notify::say("READY=1");
        let code = runtime.block_on(signals.stop(server));
        // After a second signal, the process does not wait for threads.
        runtime.shutdown_background();
        Ok(code)
    }
}
