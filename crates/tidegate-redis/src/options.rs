//! How a store is opened.

use std::fmt;
use std::time::Duration;

use crate::url::Url;

/// How a store is opened; only the URL has to be given.
#[derive(Clone)]
pub struct Options {
    /// Where the server is.
    pub url: Url,
    /// How long a decision may take before it counts as failed.
    pub deadline: Duration,
    /// With what the names of all keys begin.
    pub prefix: String,
    /// How many decisions may be under way at once; more fail at once.
    pub max_in_flight: usize,
    /// Whether a key that is certain to be refused until a known time is refused without asking the server.
    pub caches_refusals: bool,
    /// The user and the password that Sentinels want; they have none of those in the URL.
    pub sentinel_credentials: (Option<String>, Option<String>),
    /// The certificate, in PEM, of who signed the servers' certificates; those of the system if there is none.
    pub root_certificate: Option<Vec<u8>>,
    /// A certificate and its key, in PEM, to show to the servers.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Options {
    /// The deadline unless told otherwise.
    pub const DEADLINE: Duration = Duration::from_millis(20);
    /// The prefix unless told otherwise.
    pub const PREFIX: &'static str = "tg:";
    /// The most under way at once unless told otherwise.
    pub const MAX_IN_FLIGHT: usize = 4096;

    /// The usual ones for a server there.
    pub fn new(url: Url) -> Options {
        Options {
            url,
            deadline: Options::DEADLINE,
            prefix: Options::PREFIX.to_owned(),
            max_in_flight: Options::MAX_IN_FLIGHT,
            caches_refusals: true,
            sentinel_credentials: (None, None),
            root_certificate: None,
            client_certificate: None,
        }
    }
}

/// Without what is secret in them.
impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Options")
            .field("url", &self.url)
            .field("deadline", &self.deadline)
            .field("prefix", &self.prefix)
            .field("max_in_flight", &self.max_in_flight)
            .field("caches_refusals", &self.caches_refusals)
            .finish_non_exhaustive()
    }
}
