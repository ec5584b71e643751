//! What a server does: what was written in a file, the environment and flags, and what of it is valid.
//!
//! ```text
//!   file, environment, flags -> Said, each a key, a text and its place -> Settings, or every complaint at once
//! ```

mod address;
mod complaint;
mod file;
mod fits;
mod key;
mod load;
mod shared;
mod token;
mod url;
mod value;
mod written;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tidegate_rules::Policy;

pub(crate) use complaint::{Finding, SettingsError};
pub(crate) use key::{KEYS, Key, TOKEN};
pub(crate) use load::{Loaded, Source, names_store_file, text_of};
pub use shared::{Credentials, Hidden, SharedSettings};
pub use tidegate_support::Dialect;
pub use token::Token;
pub(crate) use token::TokenSource;
pub(crate) use written::{Place, Said};

/// Where it listens, what it holds, and what anybody may use up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where RESP is spoken, if anywhere.
    pub resp: Option<SocketAddr>,
    /// Where HTTP is spoken, if anywhere.
    pub http: Option<SocketAddr>,
    /// What callers have to know.
    pub token: Option<Token>,
    /// Where states are held.
    pub store: StoreSettings,
    /// How answers over HTTP say what is left.
    pub headers: Dialect,
    /// How many threads decide.
    pub threads: NonZeroUsize,
    /// What anybody may use up.
    pub bounds: Bounds,
    /// What is limited for whom, until another policy replaces it.
    pub policy: Policy,
}

/// Where states are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The bytes of the zone; beside a store that is shared, of the one for what is decided without it.
    pub size: usize,
    /// The file in which it survives, if it shall.
    pub file: Option<PathBuf>,
    /// Where they are shared with other servers, if they are.
    pub shared: Option<SharedSettings>,
}

/// What anybody may use up. Each has a test at the bound and one beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at a time, of all fronts together.
    pub max_connections: usize,
    /// Bytes of unfinished requests that all connections hold together. The first 16 KiB of a connection do not count.
    pub max_unfinished: usize,
    /// How long a connection may be silent between two requests.
    pub idle: Duration,
    /// How long a request may take to arrive: its head, and again its body.
    pub arrival: Duration,
    /// How long a client may refuse to read an answer.
    pub unread: Duration,
    /// How long a connection above `max_connections` has for its one health check.
    pub health: Duration,
    /// How long requests that have begun may go on when the server stops.
    pub grace: Duration,
}

/// The longest key that a front accepts, in bytes.
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// The most attributes of a request that a front accepts.
pub const MAX_ATTRIBUTES: usize = 64;

impl Default for Settings {
    fn default() -> Settings {
        let on_loopback = |port| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        Settings {
            resp: on_loopback(6380),
            http: on_loopback(8380),
            token: None,
            store: StoreSettings { size: 64 << 20, file: None, shared: None },
            headers: Dialect::default(),
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            bounds: Bounds::default(),
            policy: Policy::default(),
        }
    }
}

impl Settings {
    /// What other settings would do differently, but for the rules: names as they stand in a file.
    pub(crate) fn different_from(&self, other: &Settings) -> Vec<&'static str> {
        let is_same = [
            ("server.resp", self.resp == other.resp),
            ("server.http", self.http == other.http),
            ("server.token_file", self.token == other.token),
            ("server.headers", self.headers == other.headers),
            ("server.threads", self.threads == other.threads),
            ("server.max_connections", self.bounds.max_connections == other.bounds.max_connections),
            ("server.max_unfinished", self.bounds.max_unfinished == other.bounds.max_unfinished),
            ("server.idle", self.bounds.idle == other.bounds.idle),
            ("server.arrival", self.bounds.arrival == other.bounds.arrival),
            ("server.unread", self.bounds.unread == other.bounds.unread),
            ("server.grace", self.bounds.grace == other.bounds.grace),
            ("store.size", self.store.size == other.store.size),
            ("store.file", self.store.file == other.store.file),
            ("store.kind", self.store.shared.is_some() == other.store.shared.is_some()),
        ];
        let (own, others) = (self.shared(), other.shared());
        let is_shared_alike = [
            ("store.url", own.url == others.url),
            ("store.nodes", own.nodes == others.nodes),
            ("store.deadline", own.deadline == others.deadline),
            ("store.prefix", own.prefix == others.prefix),
            ("store.refusal_cache", own.refusal_cache == others.refusal_cache),
            ("store.on_failure", own.on_failure == others.on_failure),
        ];
        let is_same = is_same.into_iter().chain(is_shared_alike);
        is_same.filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect()
    }

    /// How a store is shared, or would be.
    fn shared(&self) -> SharedSettings {
        self.store.shared.clone().unwrap_or_default()
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            max_connections: 10_000,
            max_unfinished: 256 << 20,
            idle: Duration::from_secs(3600),
            arrival: Duration::from_secs(10),
            unread: Duration::from_secs(10),
            health: Duration::from_secs(1),
            grace: Duration::from_secs(5),
        }
    }
}
