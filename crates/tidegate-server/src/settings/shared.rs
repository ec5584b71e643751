//! Settings of the shared store in Redis: its URL, its credentials, and the policy while it is unavailable.
//!
//! Secrets are read from files or the environment, never from the settings file or the command line. They are kept
//! in [`Hidden`], so that no log contains them.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate::OnStoreFailure;
use tidegate_redis::{OpenError, Options, RedisStore, Url, UrlError};
use tidegate_support::positive;

use super::token::secret_in;
use super::url::has_secret;
use super::written::{Place, SettingValue};

/// The default URL.
const DEFAULT_URL: &str = "redis://127.0.0.1:6379";
/// The longest accepted deadline of a store request. The caller waits for that long, too.
const MAX_DEADLINE: Duration = Duration::from_secs(5);
/// The longest accepted prefix of names in Redis, in bytes.
const MAX_PREFIX_BYTES: usize = 64;

/// The marker that every PEM file contains.
const PEM: &[u8] = b"-----BEGIN ";

/// The shared store of several servers.
///
/// ```
/// use tidegate_server::settings::SharedSettings;
///
/// let shared = SharedSettings::default();
/// assert_eq!((shared.nodes.get(), &*shared.prefix), (1, "tg:"));
/// ```
#[doc(alias = "Redis")]
#[doc(alias = "Valkey")]
#[doc(alias = "Sentinel")]
#[doc(alias = "Redis Cluster")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSettings {
    /// The URL of the Redis or Valkey server.
    pub url: Url,
    /// Credentials and certificates that are not in the URL.
    pub credentials: Credentials,
    /// The number of servers that share the store. While Redis is down, each server decides about its part of every
    /// limit.
    pub nodes: NonZeroUsize,
    /// The deadline of a store request.
    pub deadline: Duration,
    /// The prefix of all names in Redis.
    pub prefix: String,
    /// The switch of the denial cache, which stores a denial until its retry time so that Redis is not asked before.
    pub denial_cache: bool,
    /// The policy for limits that come with a request while Redis is down. Rules have their own `on_store_failure`.
    pub on_store_failure: OnStoreFailure,
}

impl Default for SharedSettings {
    fn default() -> SharedSettings {
        SharedSettings {
            url: DEFAULT_URL.parse().expect("it is one"),
            credentials: Credentials::default(),
            nodes: NonZeroUsize::MIN,
            deadline: Options::DEADLINE,
            prefix: Options::PREFIX.to_owned(),
            denial_cache: true,
            on_store_failure: OnStoreFailure::Local,
        }
    }
}

impl SharedSettings {
    /// Opens the store. No connection is made before the first request.
    ///
    /// Returns an error for invalid settings, such as a certificate that cannot be parsed.
    pub(crate) fn open(&self) -> Result<RedisStore, OpenError> {
        RedisStore::open(self.options())
    }

    /// Returns the options that open the store.
    pub(crate) fn options(&self) -> Options {
        let Credentials { sentinel_password, authority, certificate } = self.credentials.clone();
        let text = |Hidden(password): Hidden| String::from_utf8_lossy(&password).into_owned();
        let mut options = Options::new(self.url.clone())
            .deadline(self.deadline)
            .prefix(&*self.prefix)
            .caches_denials(self.denial_cache)
            .sentinel_credentials(None, sentinel_password.map(text));
        options.root_certificate = authority.map(|Hidden(bytes)| bytes);
        options.client_certificate = certificate.map(|(Hidden(certificate), Hidden(key))| (certificate, key));
        options
    }
}

/// The kind of store.
///
/// If it is not set, a URL implies Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Counts are in the memory of this server, or in its file.
    Memory,
    /// Counts are in Redis or Valkey.
    Redis,
}

/// A secret from a file. Its `Debug` output is `***`.
///
/// The bytes are a password or the text of a PEM file.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub(crate) Vec<u8>);

impl fmt::Debug for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Credentials and certificates that are not in the URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The password of the Sentinels.
    pub(crate) sentinel_password: Option<Hidden>,
    /// The root certificate that signed the certificate of the server, in PEM.
    pub(crate) authority: Option<Hidden>,
    /// The client certificate and its key, in PEM.
    pub(crate) certificate: Option<(Hidden, Hidden)>,
}

/// The settings of a shared store while they are read.
#[derive(Default)]
pub(super) struct SharedDraft {
    /// The kind, if it is set.
    pub(super) kind: Option<Kind>,
    /// True if a URL is set, even an invalid one.
    pub(super) is_url_said: bool,
    /// Paths of files with secrets and certificates, by setting name.
    pub(super) files: HashMap<&'static str, PathBuf>,
    /// The settings so far. They take effect only if [`SharedDraft::is_meant`].
    pub(super) settings: SharedSettings,
}

impl SharedDraft {
    /// Returns true if the shared store is in use: `kind` is `redis`, or `kind` is not set and a URL is.
    pub(super) fn is_meant(&self) -> bool {
        self.kind.map_or(self.is_url_said, |kind| kind == Kind::Redis)
    }

    /// Reads all named files. On error, returns the name of the setting and the fault.
    pub(super) fn read_files(&mut self) -> Result<(), (&'static str, String)> {
        let named = |name| move |what| (name, what);
        let read = |name, read: fn(&Path) -> Result<Vec<u8>, String>| {
            self.files.get(name).map(|path| read(path).map_err(named(name))).transpose()
        };
        let password = read("password_file", password_in)?;
        let sentinel_password = read("sentinel_password_file", password_in)?.map(Hidden);
        let authority = read("ca_file", pem_in)?.map(Hidden);
        let no_use = |name, what: &str| Err((name, format!("is of no use without its {what}")));
        match (self.files.contains_key("certificate_file"), self.files.contains_key("key_file")) {
            (true, false) => return no_use("certificate_file", "key; name that in key_file"),
            (false, true) => return no_use("key_file", "certificate; name that in certificate_file"),
            _ => {}
        }
        let certificate = read("certificate_file", pem_in)?.zip(read("key_file", pem_in)?);
        let certificate = certificate.map(|(certificate, key)| (Hidden(certificate), Hidden(key)));
        if let Some(password) = password {
            let password = String::from_utf8_lossy(&password);
            self.settings.url = self.settings.url.clone().with_password(&password);
        }
        self.settings.credentials = Credentials { sentinel_password, authority, certificate };
        Ok(())
    }
}

/// Reads a password from a file. An empty file is an error.
fn password_in(path: &Path) -> Result<Vec<u8>, String> {
    match secret_in(path, "password")? {
        empty if empty.is_empty() => Err("the file is empty; write the password into it".to_owned()),
        password => Ok(password.into_bytes()),
    }
}

/// Reads a file in PEM. Certificates are parsed later, when the store is opened.
fn pem_in(path: &Path) -> Result<Vec<u8>, String> {
    let bytes =
        std::fs::read(path).map_err(|error| format!("cannot be read: {error}; name a file in PEM"))?;
    let is_pem = bytes.windows(PEM.len()).any(|window| window == PEM);
    if is_pem { Ok(bytes) } else { Err("is not in PEM; name a file with -----BEGIN lines".to_owned()) }
}

/// Parses a URL. A password in it is accepted only from the environment.
///
/// A password on the command line is an error, since all users of the machine can read it.
pub(super) fn url(said: &SettingValue) -> Result<Url, String> {
    let url = said.text.parse().map_err(|error: UrlError| error.to_string());
    let remedy = "write it to a file and name that";
    match said.place {
        Place::File { .. } if has_secret(&said.text) => Err(format!(
            "a password does not belong here; {remedy}: password_file = \"redis.password\", or set TIDEGATE_STORE_URL"
        )),
        Place::Flag if has_secret(&said.text) => Err(format!(
            "a password does not belong here, as everybody on this machine can see it; {remedy}: \
             --store-password-file redis.password, or set TIDEGATE_STORE_URL"
        )),
        _ => url,
    }
}

/// Parses the deadline of a store request, from 1 ms to 5 s.
pub(super) fn deadline(text: &str) -> Result<Duration, String> {
    match positive(text)? {
        long if long > MAX_DEADLINE => Err("a caller waits as long; write at most \"5s\"".to_owned()),
        short if short < Duration::from_millis(1) => {
            Err("too short for any network; write at least \"1ms\"".to_owned())
        }
        deadline => Ok(deadline),
    }
}

/// Parses the prefix of names in Redis. Braces are rejected: a hash tag would place all names on one cluster node.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}".contains(&byte));
    match text.len() {
        1..=MAX_PREFIX_BYTES if is_plain => Ok(text.to_owned()),
        _ => Err(format!(
            "write 1 to {MAX_PREFIX_BYTES} letters, digits and signs other than braces, as in \"tg:\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_at_most_what_a_caller_may_wait() {
        assert_eq!(deadline("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!((deadline("1ms").is_ok(), deadline("999us").is_ok()), (true, false));
        assert_eq!(
            (deadline("5s").is_ok(), deadline("5s1ms").is_ok(), deadline("0s").is_ok()),
            (true, false, false)
        );
    }

    #[test]
    fn a_prefix_does_not_gather_all_names_on_one_node() {
        assert_eq!(prefix("tg:"), Ok("tg:".to_owned()));
        for bad in ["", "{tg}:", "tg:}", "a b", "é", &"x".repeat(MAX_PREFIX_BYTES + 1)] {
            assert!(prefix(bad).is_err(), "{bad}");
        }
        assert!(prefix(&"x".repeat(MAX_PREFIX_BYTES)).is_ok());
    }
}
