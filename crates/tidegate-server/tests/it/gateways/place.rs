//! A gateway between a client, the server under test and a service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use testbed::Port;
use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use super::App;
use crate::process::Process;
use crate::wire::http::Talk;
use crate::wire::{Running, settings};

/// The token of the server under test.
pub(super) const TOKEN: &str = "sesame";

/// The page with the configurations.
const PAGE: &str = include_str!("../../../../../docs/gateways.md");

/// A running gateway, and everything around it.
pub(super) struct Place {
    pub(super) app: App,
    /// `None` if a test starts the server by itself.
    pub(super) running: Option<Running>,
    pub(super) folder: PathBuf,
    port: Port,
    /// Ended before the rest is dropped.
    gateway: Option<Process>,
}

/// Returns the blocks of the page in this language, in order.
pub(super) fn blocks(language: &str) -> Vec<&'static str> {
    let within = PAGE.split("```").skip(1).step_by(2);
    within.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// Returns the rules of the page.
pub(super) fn rules() -> &'static str {
    blocks("toml")[0]
}

impl Place {
    /// Creates a place with a server under the rules of the page, whose clock stands still.
    pub(super) fn new(name: &str) -> Place {
        let policy = Policy::from_toml(rules()).unwrap_or_else(|error| panic!("{error}"));
        let running = Running::with(Settings { policy, token: Token::new(TOKEN), ..settings() });
        Place::before(running, name)
    }

    /// Creates a place with this server.
    pub(super) fn before(running: Running, name: &str) -> Place {
        Place { running: Some(running), ..Place::without_server(name) }
    }

    /// Creates a place without a server.
    pub(super) fn without_server(name: &str) -> Place {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gateways").join(name);
        // It does not exist on the first run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        Place { app: App::start(), running: None, folder, port: Port::free(), gateway: None }
    }

    /// Returns the address of the server under test.
    pub(super) fn tidegate(&self) -> SocketAddr {
        self.running.as_ref().and_then(|running| running.server.http()).expect("it speaks HTTP")
    }

    /// Returns a configuration of the page with the addresses of this place. If a server runs, the timeouts for its reply
    /// are a minute, so that no verdict depends on how busy the machine is.
    pub(super) fn placed(&self, block: &str, tidegate: SocketAddr) -> String {
        let timeout = if self.running.is_some() { "60s" } else { "1s" };
        block
            .replace("proxy_read_timeout 1s", &format!("proxy_read_timeout {timeout}"))
            .replace("response_header_timeout 1s", &format!("response_header_timeout {timeout}"))
            .replace(":8080", &format!(":{}", self.port.number()))
            .replace("127.0.0.1:8380", &tidegate.to_string())
            .replace("127.0.0.1:3000", &self.app.address().to_string())
            .replace("TOKEN", TOKEN)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).expect("a file can be written");
    }

    /// Starts the gateway, and waits until it accepts connections.
    pub(super) fn start(&mut self, command: &mut Command) {
        command.current_dir(&self.folder);
        self.gateway = Some(Process::start(command));
        until("the gateway accepts connections", || {
            std::net::TcpStream::connect(self.port.address()).is_ok()
        });
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Opens a connection to the gateway.
    pub(super) fn talk(&self) -> Talk {
        Talk::at(self.port.address())
    }
}

/// Waits until something is so. It takes no verdict about how long that takes.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    testbed::until(what, Duration::from_secs(120), || is_so().then_some(()));
}

/// Returns a program that pip has installed for the tests.
pub(super) fn installed(name: &str) -> PathBuf {
    crate::clients::tools::python().with_file_name(name)
}
