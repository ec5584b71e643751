//! A server on a reserved port, so that a restarted server gets the same port.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{self, AddressFamily, SocketType, sockopt};
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use crate::wire::{Running, resp, settings};

/// The token of guarded servers.
pub(super) const TOKEN: &str = "open-sesame";

/// A server that can be restarted.
pub(super) struct Place {
    address: SocketAddr,
    settings: Settings,
    /// `None` only during a restart.
    running: Option<Running>,
    /// A socket that is bound and does not listen. It keeps the system from assigning the port to another process.
    _reserved: OwnedFd,
}

impl Place {
    /// Starts a server without a token.
    pub(super) fn open() -> Place {
        Place::with(None)
    }

    /// Starts a server with a token.
    pub(super) fn guarded() -> Place {
        Place::with(Token::new(TOKEN))
    }

    fn with(token: Option<Token>) -> Place {
        let (reserved, address) = reserve();
        let settings = Settings { resp: Some(address), http: None, token, ..settings() };
        let running = Some(Running::with(settings.clone()));
        Place { address, settings, running, _reserved: reserved }
    }

    pub(super) fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// Stops the server with its state, and starts a new one on the same port.
    pub(super) fn restart(&mut self) {
        if let Some(running) = self.running.take() {
            running.server.stop();
        }
        self.running = Some(Running::with(self.settings.clone()));
    }

    /// Opens a connection, and authenticates if there is a token.
    pub(super) fn connect(&self) -> resp::Client {
        let mut client = resp::Client::connect(self.address);
        if self.settings.token.is_some() {
            assert_eq!(client.ask(&["AUTH", TOKEN]), resp::Value::Simple("OK".to_owned()));
        }
        client
    }

    /// Returns the numbers of allowed and denied requests.
    pub(super) fn decided(&self) -> (u64, u64) {
        let resp::Value::Bulk(info) = self.connect().say("INFO") else { panic!("INFO is a text") };
        let info = String::from_utf8(info).expect("INFO is a text");
        let number = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name} in {info}"))
        };
        (number("tidegate_allowed"), number("tidegate_denied"))
    }
}

/// Reserves a loopback port. The system assigns it only to a process that asks for this number.
fn reserve() -> (OwnedFd, SocketAddr) {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket can be had");
    // The server sets the same option on its socket, so that it can listen on the port.
    sockopt::set_socket_reuseaddr(&socket, true).expect("a socket option can be set");
    net::bind(&socket, &any).expect("loopback has a free port");
    let address = net::getsockname(&socket).expect("it is bound");
    (socket, address.try_into().expect("it is an address of the internet"))
}
