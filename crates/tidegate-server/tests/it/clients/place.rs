//! Where the server is: on a port that stays ours while one server has gone and the next has not come.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{self, AddressFamily, SocketType, sockopt};
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use crate::wire::{Running, resp, settings};

/// What callers have to know, where they have to know something.
pub(super) const TOKEN: &str = "open-sesame";

/// A server that can be started again.
pub(super) struct Place {
    address: SocketAddr,
    settings: Settings,
    /// Nothing only in between.
    running: Option<Running>,
    /// Bound, but not listening: nobody else is given this port.
    _reserved: OwnedFd,
}

impl Place {
    /// A server for everybody.
    pub(super) fn open() -> Place {
        Place::with(None)
    }

    /// A server for those who know the token.
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

    /// Ends this server and everything it knew, and starts another one in its place.
    pub(super) fn restart(&mut self) {
        if let Some(running) = self.running.take() {
            running.server.stop();
        }
        self.running = Some(Running::with(self.settings.clone()));
    }

    /// A connection of our own.
    pub(super) fn connect(&self) -> resp::Client {
        let mut client = resp::Client::connect(self.address);
        if self.settings.token.is_some() {
            assert_eq!(client.ask(&["AUTH", TOKEN]), resp::Value::Simple("OK".to_owned()));
        }
        client
    }

    /// How many were allowed and denied by this server.
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

/// A port of loopback that the system gives to nobody who does not ask for it by its number.
fn reserve() -> (OwnedFd, SocketAddr) {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket can be had");
    // A server, which says the same of its own socket, may then listen there.
    sockopt::set_socket_reuseaddr(&socket, true).expect("a socket can be told");
    net::bind(&socket, &any).expect("loopback has a free port");
    let address = net::getsockname(&socket).expect("it is bound");
    (socket, address.try_into().expect("it is an address of the internet"))
}
