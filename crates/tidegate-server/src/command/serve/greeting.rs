//! The startup report: for people on standard error, for programs on standard output.
//!
//! ```text
//!   tidegate 0.1.0
//!   settings  ./tidegate.toml
//!   store     64 MiB in memory; --store-file FILE survives restarts
//!   rules     3
//!   resp      127.0.0.1:6380
//!             redis-cli -p 6380 CL.THROTTLE user123 15 30 60
//!   http      127.0.0.1:8380
//!             curl -i -d ...
//!   ready in 3 ms
//! ```

use std::net::SocketAddr;

use serde::Serialize;
use tidegate::{Clock as _, SystemClock, Timestamp};
use tidegate_redis::Status;
use tidegate_support::Bytes;

use crate::Server;
use crate::command::output::{print_line, say};
use crate::outage::absent;
use crate::settings::{Loaded, StoreSettings};

/// A server that is ready, and its settings.
pub(super) struct Greeting<'a> {
    /// The settings and their origin.
    pub(super) loaded: &'a Loaded,
    /// The running server.
    pub(super) server: &'a Server,
    /// The status of the remote store, if there is one.
    pub(super) store: Option<Status>,
}

/// The startup report for programs. A front that is off is `null`.
#[derive(Serialize)]
struct Ready {
    /// Always `ready`.
    event: &'static str,
    /// The address of the RESP port, with the port that the system picked.
    resp: Option<String>,
    /// The address of the HTTP port.
    http: Option<String>,
}

impl Greeting<'_> {
    /// Prints the report. `started` is the start of the program on this clock.
    pub(super) fn give(&self, clock: &SystemClock, started: Timestamp, json: bool) {
        say(format_args!("tidegate {}", env!("CARGO_PKG_VERSION")));
        say(format_args!("settings  {}", self.loaded.origin));
        let settings = &self.loaded.settings;
        say(format_args!("store     {}", store(&settings.store)));
        let is_own = settings.store.shared.is_none();
        for zone in settings.policy.zones().iter().filter(|_| is_own) {
            say(format_args!("            and {} for zone {:?}", Bytes(zone.bytes), zone.name));
        }
        if let (Some(status), Some(shared)) = (&self.store, &self.loaded.settings.store.shared)
            && !status.is_available
        {
            say(format_args!("            {}", absent(&shared.url, status)));
        }
        say(format_args!("rules     {}", rules(self.loaded.settings.policy.rules().len())));
        for (front, address, line) in [
            ("resp", self.server.resp(), Greeting::redis_cli as fn(&Self, SocketAddr) -> String),
            ("http", self.server.http(), Greeting::curl),
        ] {
            match address {
                Some(address) => {
                    say(format_args!("{front}      {address}\n            {}", line(self, address)));
                }
                None => say(format_args!("{front}      off")),
            }
        }
        let took = clock.now().since(started).to_duration();
        say(format_args!("ready in {} ms", took.as_micros().div_ceil(1000)));
        if json {
            let text = |address: Option<SocketAddr>| address.map(|address| address.to_string());
            let ready =
                Ready { event: "ready", resp: text(self.server.resp()), http: text(self.server.http()) };
            print_line(serde_json::to_string(&ready).expect("two addresses are text"));
        }
    }

    /// Returns an example command line.
    ///
    /// It can be pasted into a shell, also if the server has a token.
    fn redis_cli(&self, address: SocketAddr) -> String {
        let ip = reachable(address).ip();
        let host = if ip.to_string() == "127.0.0.1" { String::new() } else { format!(" -h {ip}") };
        let token = self.loaded.token.as_ref();
        // Not as an argument, which other users of the machine can see.
        let token = token.map_or(String::new(), |token| format!("REDISCLI_AUTH=\"{}\" ", token.in_a_shell()));
        format!("{token}redis-cli{host} -p {} CL.THROTTLE user123 15 30 60", address.port())
    }

    /// Returns an example command line.
    ///
    /// It can be pasted into a shell, also if the server has a token.
    fn curl(&self, address: SocketAddr) -> String {
        let token = self.loaded.token.as_ref();
        let token = token
            .map_or(String::new(), |token| format!(" -H \"authorization: Bearer {}\"", token.in_a_shell()));
        format!(
            "curl -i -d '{{\"key\":\"user123\",\"limit\":\"30/60s burst 16\"}}' \
             -H 'content-type: application/json'{token} http://{}/v1/take",
            reachable(address)
        )
    }
}

/// Returns the address at which this machine reaches the listener: loopback for an unspecified address.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(address) if address.ip().is_unspecified() => ([127, 0, 0, 1], address.port()).into(),
        SocketAddr::V6(address) if address.ip().is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, address.port()).into()
        }
        address => address,
    }
}

/// Returns the line about the rules.
fn rules(count: usize) -> String {
    match count {
        0 => "none; tidegate init writes a file to begin with".to_owned(),
        count => count.to_string(),
    }
}

/// Returns the line about the store.
fn store(store: &StoreSettings) -> String {
    if let Some(shared) = &store.shared {
        let (url, size) = (&shared.url, Bytes(store.size));
        let servers = match shared.nodes.get() {
            1 => "for this server alone; --store-nodes says how many share it".to_owned(),
            nodes => format!("shared by {nodes} servers"),
        };
        return format!("{url}, {servers}; {size} in memory for when it is away");
    }
    match &store.file {
        Some(path) => {
            format!("{} in {}; survives restarts and kill -9", Bytes(store.size), path.display())
        }
        None => format!("{} in memory; --store-file FILE survives restarts", Bytes(store.size)),
    }
}
