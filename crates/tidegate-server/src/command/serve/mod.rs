//! `tidegate serve`: a server until it is told to stop.

mod folder;
mod greeting;
mod host;
mod notify;
mod owner;
mod signals;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tidegate::{Clock as _, SystemClock, WallAlignment, Zone};
use tidegate_rules::config::Bytes;
use tokio::runtime::Builder;

use super::failure::Failure;
use super::written::Written;
use crate::command::output::say;
use crate::memory;
use crate::reload::{Every, Tell};
use crate::settings::{Source, StoreSettings};
use crate::{Server, StartError};
use greeting::Greeting;
use signals::Signals;

const ABOUT: &str = "\
Start a server that speaks RESP and HTTP

Without any setting it listens on this machine only and holds its counts in memory. A flag counts before a variable \
of the environment, that before the file, and the file before the default. Ctrl-C or SIGTERM stops it: what has begun \
is finished first.

In the file the settings stand under [server] and [store], with underscores for dashes: --max-connections is \
max_connections = 10000 under [server], --store-size is size = \"64MiB\" under [store].";

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
    /// The file of settings; paths in it are meant from its folder [default: ./tidegate.toml if there is one]
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG", hide_env_values = true)]
    config: Option<OsString>,
    /// Print one line of JSON on standard output when it is ready, with the addresses
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    written: Written,
}

impl Serve {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let clock = SystemClock::new();
        let started = clock.now();
        let config = self.config.filter(|path| !path.is_empty()).map(PathBuf::from);
        let source = Source::new(config, self.written.0);
        let loaded = source.load()?;
        loaded.warnings.iter().for_each(|warning| say(format_args!("warning: {warning}")));
        let cannot_run = |error: io::Error| Failure::failed(format!("cannot wait for signals: {error}"));
        let runtime = Builder::new_current_thread().enable_io().build().map_err(cannot_run)?;
        // Signals count from here on, also while the store is opened.
        let signals = runtime.block_on(async { Signals::new() }).map_err(cannot_run)?;
        host::let_open(loaded.settings.bounds.max_connections);
        memory::suffices_for(&loaded.settings).map_err(Failure::misused)?;
        let zone = open(&loaded.settings.store)?;
        loaded.settings.store.file.iter().for_each(|file| folder::warn_if_open(file));
        if zone.wall_alignment() != WallAlignment::Aligned {
            say(format_args!("warning: {}", zone.wall_alignment()));
        }
        let server = Server::start(loaded.settings.clone(), zone).map_err(with_owner)?;
        let store = server.watch_store(|line| say(line));
        server.read_rules_from(source, loaded.text.clone(), Tell::new(|lines| say(lines)), Every::default());
        Greeting { loaded: &loaded, server: &server, store }.give((&clock, started), self.json);
        notify::say("READY=1");
        let code = runtime.block_on(signals.stop(server));
        // Whoever is told twice to stop does not wait for threads.
        runtime.shutdown_background();
        Ok(code)
    }
}

fn open(store: &StoreSettings) -> Result<Zone, Failure> {
    match &store.file {
        Some(path) => Ok(Zone::in_file(path, store.size)?),
        None => Zone::try_new(store.size).map_err(|_| {
            let size = Bytes(store.size);
            Failure::failed(format!(
                "a store of {size}: the system has no such memory; choose a smaller --store-size"
            ))
        }),
    }
}

/// The failure, and who has the port if that is why.
fn with_owner(error: StartError) -> Failure {
    let owner = match &error {
        StartError::Bind { address, source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            owner::owner(*address)
        }
        _ => None,
    };
    let failure = Failure::from(error);
    match owner {
        Some(owner) => failure.explained(&format!("taken by: {owner}")),
        None => failure,
    }
}
