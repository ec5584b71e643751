//! The URL of a server.
//!
//! ```text
//!   redis://[[user]:password@]host[:port][/database]
//!   redis+sentinel://[[user]:password@]host[:port],host[:port],…/service[/database]
//!   redis+cluster://[[user]:password@]host[:port],host[:port],…
//! ```
//!
//! `rediss` in place of `redis` selects TLS. Secrets in the URL are never displayed.

mod problem;
mod read;

use std::fmt;
use std::str::FromStr;

pub use problem::UrlError;

/// The default port of a server.
const PORT: u16 = 6379;
/// The default port of a Sentinel.
const SENTINEL_PORT: u16 = 26379;

/// The URL of a server. A URL is parsed with [`str::parse`], and its `Display` and `Debug` output hides the password.
///
/// # Examples
///
/// ```
/// use tidegate::redis::Url;
///
/// let url: Url = "redis+sentinel://ana:secret@a,b,c/mymaster".parse().unwrap();
/// assert_eq!(url.to_string(), "redis+sentinel://ana:***@a:26379,b:26379,c:26379/mymaster");
/// assert!("redis://".parse::<Url>().is_err(), "a host is required");
/// ```
#[doc(alias = "connection string")]
#[doc(alias = "address")]
#[doc(alias = "sentinel")]
#[doc(alias = "cluster")]
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// The servers, and the kind of deployment.
    pub(crate) place: Deployment,
    /// True for a scheme with `rediss` or `valkeys`.
    pub(crate) is_encrypted: bool,
    /// The user of the ACL; `None` for the default user.
    pub(crate) user: Option<String>,
    /// The password, decoded. It is never displayed.
    pub(crate) password: Option<String>,
    /// The number of the database, zero by default and on clusters.
    pub(crate) database: u32,
}

/// The kind of deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// A single server.
    Standalone(Address),
    /// The Sentinels that report the primary of a service.
    Sentinel { sentinels: Vec<Address>, service: String },
    /// Some of the nodes of a cluster.
    Cluster(Vec<Address>),
}

/// A host name or address, and a port.
///
/// An IPv6 address is stored without its brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Url {
    /// Replaces the password.
    ///
    /// The password is used as it is: percent escapes are not decoded. Use it for a password from a file or a secret
    /// manager.
    #[doc(alias = "credentials")]
    #[doc(alias = "secret")]
    #[doc(alias = "AUTH")]
    #[must_use]
    pub fn with_password(self, password: &str) -> Url {
        Url { password: Some(password.to_owned()), ..self }
    }

    /// Returns the canonical scheme. A URL with `valkey` is displayed with `redis`.
    fn scheme(&self) -> &'static str {
        match (&self.place, self.is_encrypted) {
            (Deployment::Standalone(_), false) => "redis",
            (Deployment::Standalone(_), true) => "rediss",
            (Deployment::Sentinel { .. }, false) => "redis+sentinel",
            (Deployment::Sentinel { .. }, true) => "rediss+sentinel",
            (Deployment::Cluster(_), false) => "redis+cluster",
            (Deployment::Cluster(_), true) => "rediss+cluster",
        }
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        read::read(text)
    }
}

/// Formats the URL without secrets.
impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", self.scheme())?;
        match (&self.user, &self.password) {
            (Some(user), Some(_)) => write!(out, "{user}:***@")?,
            (Some(user), None) => write!(out, "{user}@")?,
            (None, Some(_)) => out.write_str(":***@")?,
            (None, None) => {}
        }
        match &self.place {
            Deployment::Standalone(address) => write!(out, "{address}")?,
            Deployment::Sentinel { sentinels, service } => {
                list(out, sentinels)?;
                write!(out, "/{service}")?;
            }
            Deployment::Cluster(nodes) => list(out, nodes)?,
        }
        if self.database == 0 { Ok(()) } else { write!(out, "/{}", self.database) }
    }
}

/// Formats addresses, separated by commas.
fn list(out: &mut fmt::Formatter<'_>, addresses: &[Address]) -> fmt::Result {
    addresses.iter().enumerate().try_for_each(|(nth, address)| {
        let comma = if nth == 0 { "" } else { "," };
        write!(out, "{comma}{address}")
    })
}

impl fmt::Debug for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Url({self})")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

impl Address {
    /// Parses the address of a redirection: a host, the last colon, a port.
    pub(crate) fn of_redirection(text: &str) -> Option<Address> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Address { host: host.to_owned(), port: port.parse().ok()? })
    }
}

#[cfg(test)]
mod tests;
