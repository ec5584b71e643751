//! Settings of a server: values from a file, the environment and flags, and their validation.
//!
//! ```text
//!   file, environment, flags -> SettingValue, each a key, a text and its place -> Settings, or every complaint at once
//! ```
//!
//! A value that is set twice is overridden: a flag before a variable, a variable before the file, the file before
//! the default. Only rules are reloaded while a server runs. Other settings take effect after a restart, and a
//! reload reports which of them changed.
//!
//! ```toml
//! [server]
//! resp = "127.0.0.1:6380"
//! http = "127.0.0.1:8380"
//! token_file = "token"
//!
//! [store]
//! size = "64MiB"
//! file = "zone.tg"
//!
//! [[rule]]
//! name = "api"
//! key = ["ip"]
//! limit = "10/s burst 20"
//! ```

mod address;
mod complaint;
mod file;
mod fits;
mod key;
mod load;
#[cfg(test)]
mod page;
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

use hyper::StatusCode;
use tidegate_rules::Policy;

pub(crate) use complaint::{ComplaintRecord, SettingsError};
pub(crate) use key::{KEYS, SettingKey, TOKEN};
pub(crate) use load::{Loaded, Source, names_store_file, text_of};
pub use shared::{Credentials, Hidden, SharedSettings};
pub use tidegate_support::{Dialect, NoNetwork, TrustedProxies};
pub use token::Token;
pub(crate) use token::TokenSource;
pub(crate) use written::{Place, SettingValue};

/// The settings of a server: addresses, token, store, rules and resource limits.
///
/// The defaults listen on loopback addresses without a token, and keep 64 MiB of state in memory.
///
/// ```
/// use tidegate_server::Settings;
///
/// let settings = Settings { http: None, ..Settings::default() };
/// assert_eq!(settings.resp.map(|address| address.port()), Some(6380));
/// assert!(settings.token.is_none() && settings.store.file.is_none());
/// ```
#[doc(alias = "configuration")]
#[doc(alias = "config")]
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the RESP port; `None` turns RESP off.
    pub resp: Option<SocketAddr>,
    /// The address of the HTTP port; `None` turns HTTP off.
    pub http: Option<SocketAddr>,
    /// The token that callers have to send. Required for an address that is not on the loopback interface.
    pub token: Option<Token>,
    /// The store of limiter states.
    pub store: StoreSettings,
    /// The dialect of rate-limit header fields in HTTP replies.
    pub headers: Dialect,
    /// The replies to reverse proxies, which ask at `/v1/auth`.
    pub auth: AuthSettings,
    /// The file that keeps overrides across restarts; `None` keeps them in memory. With a shared store they are kept
    /// there, and the file is not used.
    pub overrides_file: Option<PathBuf>,
    /// The audit log of changes by HTTP; `None` turns it off.
    pub audit_log: Option<PathBuf>,
    /// The number of worker threads.
    pub threads: NonZeroUsize,
    /// Resource limits.
    pub bounds: Bounds,
    /// The rules in force at the start. A reload can replace them.
    pub policy: Policy,
}

/// The replies to reverse proxies, which ask at `/v1/auth`.
#[doc(alias = "forward auth")]
#[doc(alias = "auth_request")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// The proxies in front of the one that asks. They may append to `X-Forwarded-For`.
    pub trusted_proxies: TrustedProxies,
    /// The status code of a denial by a limit: 429, or 403 for a proxy that knows only 401 and 403.
    pub denial_status: StatusCode,
}

/// The store of limiter states.
///
/// States are in memory, in a memory-mapped file, or in a shared store: `file` and `shared` exclude each other.
#[doc(alias = "storage")]
#[doc(alias = "persistence")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The bytes of the zone. With a shared store, the bytes of the fallback zone.
    pub size: usize,
    /// The file that keeps states across restarts, if any. Not allowed with a shared store.
    pub file: Option<PathBuf>,
    /// The remote store that several servers share, if any.
    pub shared: Option<SharedSettings>,
}

/// Resource limits of connections and requests. Each has a test at the limit and one beyond it.
///
/// The defaults serve 10,000 connections. A timeout bounds each state of a connection, so that a client that stops
/// cannot hold memory for ever.
#[doc(alias = "timeout")]
#[doc(alias = "resource limits")]
#[doc(alias = "backpressure")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of connections, of all fronts together.
    pub max_connections: usize,
    /// The maximum bytes of unfinished requests of all connections together. The first 16 KiB of a connection do not
    /// count.
    pub max_unfinished: usize,
    /// Timeout of a connection that is silent between two requests.
    pub idle_timeout: Duration,
    /// Timeout of a request that has begun to arrive: for its head, and again for its body.
    pub request_timeout: Duration,
    /// Timeout of a reply that the client does not read.
    pub write_timeout: Duration,
    /// Timeout of a connection above `max_connections`, which may send one health check.
    pub health: Duration,
    /// Timeout of requests in flight at shutdown.
    pub shutdown_timeout: Duration,
}

/// The longest key that a front accepts, in bytes.
///
/// A longer key is an error. Clients hash such keys.
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// The maximum number of attributes of a request that a front accepts.
///
/// More attributes are an error. Names and values together have at most [`MAX_KEY_BYTES`] bytes.
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
            auth: AuthSettings::default(),
            overrides_file: None,
            audit_log: None,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            bounds: Bounds::default(),
            policy: Policy::default(),
        }
    }
}

impl Settings {
    /// Returns the names of settings, as in the file, that differ from `other`. Rules are not compared.
    ///
    /// Credentials and certificates of the shared store are not compared.
    pub(crate) fn different_from(&self, other: &Settings) -> Vec<&'static str> {
        let is_same = [
            ("server.resp", self.resp == other.resp),
            ("server.http", self.http == other.http),
            ("server.token_file", self.token == other.token),
            ("server.headers", self.headers == other.headers),
            ("server.trusted_proxies", self.auth.trusted_proxies == other.auth.trusted_proxies),
            ("server.auth_denial_status", self.auth.denial_status == other.auth.denial_status),
            ("server.overrides_file", self.overrides_file == other.overrides_file),
            ("server.audit_log", self.audit_log == other.audit_log),
            ("server.threads", self.threads == other.threads),
            ("server.max_connections", self.bounds.max_connections == other.bounds.max_connections),
            ("server.max_unfinished", self.bounds.max_unfinished == other.bounds.max_unfinished),
            ("server.idle_timeout", self.bounds.idle_timeout == other.bounds.idle_timeout),
            ("server.request_timeout", self.bounds.request_timeout == other.bounds.request_timeout),
            ("server.write_timeout", self.bounds.write_timeout == other.bounds.write_timeout),
            ("server.shutdown_timeout", self.bounds.shutdown_timeout == other.bounds.shutdown_timeout),
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
            ("store.denial_cache", own.denial_cache == others.denial_cache),
            ("store.on_store_failure", own.on_store_failure == others.on_store_failure),
        ];
        let is_same = is_same.into_iter().chain(is_shared_alike);
        is_same.filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect()
    }

    /// Returns the settings of the shared store, or their defaults.
    fn shared(&self) -> SharedSettings {
        self.store.shared.clone().unwrap_or_default()
    }
}

impl Default for AuthSettings {
    fn default() -> AuthSettings {
        AuthSettings {
            trusted_proxies: TrustedProxies::default(),
            denial_status: StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            max_connections: 10_000,
            max_unfinished: 256 << 20,
            idle_timeout: Duration::from_secs(3600),
            request_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            health: Duration::from_secs(1),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}
