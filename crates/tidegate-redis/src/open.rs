//! Validation of options before a server is contacted.
//!
//! A mistake in the configuration is an error of `open`, and never one of a decision. Faults of the server are reported
//! by decisions, and by [`RedisStore::ready`](crate::RedisStore::ready).

use std::error::Error;
use std::fmt;

use crate::dial::Dialer;
use crate::options::Options;
use crate::url::Deployment;

/// The maximum length of the key prefix.
const LONGEST_PREFIX: usize = 64;

/// An error: the options are invalid.
///
/// The message contains the option, its value and the remedy. It is one line, and never contains a password.
///
/// # Examples
///
/// ```
/// use tidegate::redis::{Options, RedisStore};
///
/// let options = Options::new("redis://127.0.0.1:6379".parse().unwrap()).prefix("{shop}:");
/// let error = RedisStore::open(options).unwrap_err();
/// assert!(error.to_string().starts_with("prefix \"{shop}:\""));
/// ```
#[doc(alias = "configuration error")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The message.
    what: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl Error for OpenError {}

/// Checks all options. Certificates are parsed here, so that an unusable PEM file is found before the first connection.
pub(crate) fn check(options: &Options) -> Result<(), OpenError> {
    let wrong = |what: String| Err(OpenError { what });
    let prefix = &options.prefix;
    // A brace would start a hash tag, and the tag of the key would no longer choose its slot.
    if prefix.contains(['{', '}']) {
        return wrong(format!("prefix {prefix:?}: braces choose a slot of a cluster; leave them out"));
    }
    if prefix.len() > LONGEST_PREFIX {
        let length = prefix.len();
        return wrong(format!(
            "prefix {prefix:?}: {length} bytes are too long; take at most {LONGEST_PREFIX}"
        ));
    }
    if options.deadline.is_zero() {
        return wrong("deadline 0: no reply can arrive in time; write 20ms, for example".to_owned());
    }
    if options.max_in_flight == 0 {
        return wrong("max_in_flight 0: nothing could ever be asked; write 4096, for example".to_owned());
    }
    let has_certificates = options.root_certificate.is_some() || options.client_certificate.is_some();
    // Without TLS the certificates would be ignored silently, which may be mistaken for encryption.
    if has_certificates && !options.url.is_encrypted {
        return wrong(format!("certificates are of no use for {}; write rediss in its scheme", options.url));
    }
    let (Deployment::Sentinel { sentinels: addresses, .. } | Deployment::Cluster(addresses)) =
        &options.url.place
    else {
        return Ok(());
    };
    for address in addresses {
        if let Err(error) = Dialer::new(options).check(address) {
            return wrong(format!("the certificates cannot be used: {error}; give PEM files"));
        }
    }
    Ok(())
}
