//! The options of a store.

use std::fmt;
use std::time::Duration;

use crate::url::Url;

/// The options for opening a store. Only the URL is required.
#[derive(Clone)]
pub struct Options {
    /// The address of the server.
    pub url: Url,
    /// The deadline of a decision, after which it fails.
    pub deadline: Duration,
    /// The prefix of all key names.
    pub prefix: String,
    /// The maximum number of decisions in flight. Further ones fail immediately.
    pub max_in_flight: usize,
    /// If true, a key that is certain to be denied until a known time is denied without a request to the server.
    pub caches_denials: bool,
    /// The user and password for Sentinels. The credentials in the URL are not sent to Sentinels.
    pub sentinel_credentials: (Option<String>, Option<String>),
    /// The root certificate of the servers' certificates, in PEM. `None` uses those of the system.
    pub root_certificate: Option<Vec<u8>>,
    /// The client certificate and its key, in PEM.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Options {
    /// The default deadline.
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
