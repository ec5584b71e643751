//! Validation of options before a server is contacted.

use std::error::Error;
use std::fmt;

use crate::dial::Dialer;
use crate::options::Options;
use crate::url::Deployment;

/// The maximum length of the key prefix.
const LONGEST_PREFIX: usize = 64;

/// An error: the options are invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    what: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl Error for OpenError {}

pub(crate) fn check(options: &Options) -> Result<(), OpenError> {
    let wrong = |what: String| Err(OpenError { what });
    let prefix = &options.prefix;
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
        return wrong("deadline 0: nobody answers in no time; write 20ms, for example".to_owned());
    }
    if options.max_in_flight == 0 {
        return wrong("max_in_flight 0: nothing could ever be asked; write 4096, for example".to_owned());
    }
    let has_certificates = options.root_certificate.is_some() || options.client_certificate.is_some();
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
