//! The options of a store: a server, a deadline, a key prefix, credentials and certificates.
//!
//! Options are plain values. They are validated when a store is opened, so an invalid value is reported once, by
//! [`RedisStore::open`](crate::RedisStore::open), and not by the first decision.

use std::fmt;
use std::time::Duration;

use crate::url::Url;

/// The options for opening a store. Only the URL is required.
///
/// Options start with [`Options::new`] and are changed by methods with the names of the fields. The fields can also be
/// read and assigned.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use tidegate::redis::Options;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = Options::new("redis://127.0.0.1:6379".parse()?)
///     .deadline(Duration::from_millis(50))
///     .prefix("shop:")
///     .max_in_flight(1000);
/// assert!(options.caches_denials, "every other option has its default");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
#[doc(alias = "config")]
#[doc(alias = "configuration")]
#[doc(alias = "builder")]
pub struct Options {
    /// The address of the server, with the credentials in it.
    pub url: Url,
    /// The deadline of a decision, after which it fails. It covers the time in the queue, all calls that one decision
    /// needs, and redirections.
    ///
    /// A request for more than 128 limits is sent in several scripts, each with its own deadline. The deadline is also
    /// the bound on the reply to the first command of a new connection: a slower server is reported as unavailable.
    #[doc(alias = "timeout")]
    pub deadline: Duration,
    /// The prefix of all key names, at most 64 bytes without braces. Stores with the same prefix share their limits.
    #[doc(alias = "key prefix")]
    #[doc(alias = "namespace")]
    pub prefix: String,
    /// The maximum number of decisions in flight. Further ones fail immediately with a retryable error.
    #[doc(alias = "backpressure")]
    #[doc(alias = "load shedding")]
    pub max_in_flight: usize,
    /// If true, a key that is certain to be denied until a known time is denied without a request to the server.
    ///
    /// A denial is cached for at most ten seconds, and for at most one second on a cluster. So a reset or a refund by
    /// another process may be noticed that much later. While the server is down, cached denials [stay in
    /// force](crate::RedisStore#cached-denials).
    #[doc(alias = "denial cache")]
    pub caches_denials: bool,
    /// The user and password for Sentinels. The credentials in the URL are not sent to Sentinels.
    pub sentinel_credentials: (Option<String>, Option<String>),
    /// The root certificate of the servers' certificates, in PEM. `None` uses those of the system.
    #[doc(alias = "TLS")]
    pub root_certificate: Option<Vec<u8>>,
    /// The client certificate and its key, in PEM.
    #[doc(alias = "mTLS")]
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Options {
    /// The default deadline.
    ///
    /// It suits a server in the same data centre. `tidegate doctor` compares it with the measured round trips.
    pub const DEADLINE: Duration = Duration::from_millis(20);
    /// The default prefix.
    pub const PREFIX: &'static str = "tg:";
    /// The default maximum number of decisions in flight.
    pub const MAX_IN_FLIGHT: usize = 4096;

    /// Creates options for this server, with the defaults for everything else.
    pub fn new(url: Url) -> Options {
        Options {
            url,
            deadline: Options::DEADLINE,
            prefix: Options::PREFIX.to_owned(),
            max_in_flight: Options::MAX_IN_FLIGHT,
            caches_denials: true,
            sentinel_credentials: (None, None),
            root_certificate: None,
            client_certificate: None,
        }
    }

    /// Sets the deadline of a decision. Zero is invalid.
    #[must_use]
    #[doc(alias = "timeout")]
    pub fn deadline(self, deadline: Duration) -> Options {
        Options { deadline, ..self }
    }

    /// Sets the prefix of all key names. A prefix with a brace or of more than 64 bytes is invalid.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Options {
        Options { prefix: prefix.into(), ..self }
    }

    /// Sets the maximum number of decisions in flight. Zero is invalid.
    #[must_use]
    pub fn max_in_flight(self, max_in_flight: usize) -> Options {
        Options { max_in_flight, ..self }
    }

    /// Enables or disables the cache of [denials](crate::RedisStore#cached-denials); enabled by default.
    #[must_use]
    pub fn caches_denials(self, caches_denials: bool) -> Options {
        Options { caches_denials, ..self }
    }

    /// Sets the user and the password for Sentinels. Without a user, the password is that of the default user.
    #[must_use]
    pub fn sentinel_credentials(self, user: Option<String>, password: Option<String>) -> Options {
        Options { sentinel_credentials: (user, password), ..self }
    }

    /// Sets the root certificate of the servers' certificates, in PEM. It replaces those of the system, and is invalid
    /// with a URL without TLS.
    #[must_use]
    pub fn root_certificate(self, pem: impl Into<Vec<u8>>) -> Options {
        Options { root_certificate: Some(pem.into()), ..self }
    }

    /// Sets the client certificate and its key, both in PEM. They are invalid with a URL without TLS.
    #[must_use]
    pub fn client_certificate(self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Options {
        Options { client_certificate: Some((certificate.into(), key.into())), ..self }
    }
}

/// Formats the options without secrets.
impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Options")
            .field("url", &self.url)
            .field("deadline", &self.deadline)
            .field("prefix", &self.prefix)
            .field("max_in_flight", &self.max_in_flight)
            .field("caches_denials", &self.caches_denials)
            .finish_non_exhaustive()
    }
}
