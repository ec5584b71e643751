//! Counts that several servers share in Redis: where they are, and what holds while nobody answers there.

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
use super::written::{Place, Said};

/// Where a Redis is if nobody says anything.
const DEFAULT_URL: &str = "redis://127.0.0.1:6379";
/// The longest that a decision may wait for Redis: whoever asks waits, too.
const MAX_DEADLINE: Duration = Duration::from_secs(5);
/// The longest beginning of the names in Redis, in bytes.
const MAX_PREFIX_BYTES: usize = 64;

/// What every file in PEM has.
const PEM: &[u8] = b"-----BEGIN ";

/// Where counts are that several servers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedSettings {
    /// The Redis or Valkey that holds them.
    pub url: Url,
    /// What is shown to servers and asked of them, beside the URL.
    pub credentials: Credentials,
    /// How many servers share them: each decides about its part while Redis does not answer.
    pub nodes: NonZeroUsize,
    /// How long a decision waits for an answer.
    pub deadline: Duration,
    /// What all names in Redis begin with.
    pub prefix: String,
    /// Whether a refusal is remembered here until it is over, so that Redis is not asked again.
    pub refusal_cache: bool,
    /// What is said about limits that come with a request while Redis does not answer; rules say it themselves.
    pub on_failure: OnStoreFailure,
}

impl Default for SharedSettings {
    fn default() -> SharedSettings {
        SharedSettings {
            url: DEFAULT_URL.parse().expect("it is one"),
            credentials: Credentials::default(),
            nodes: NonZeroUsize::MIN,
            deadline: Options::DEADLINE,
            prefix: Options::PREFIX.to_owned(),
            refusal_cache: true,
            on_failure: OnStoreFailure::Local,
        }
    }
}

impl SharedSettings {
    /// The store that these are about. Nobody is reached before it is asked something.
    pub(crate) fn open(&self) -> Result<RedisStore, OpenError> {
        RedisStore::open(self.options())
    }

    /// How that is opened.
    pub(crate) fn options(&self) -> Options {
        let Credentials { sentinel_password, authority, certificate } = self.credentials.clone();
        let text = |Hidden(password): Hidden| String::from_utf8_lossy(&password).into_owned();
        Options {
            deadline: self.deadline,
            sentinel_credentials: (None, sentinel_password.map(text)),
            root_certificate: authority.map(|Hidden(bytes)| bytes),
            client_certificate: certificate.map(|(Hidden(certificate), Hidden(key))| (certificate, key)),
            prefix: self.prefix.clone(),
            caches_refusals: self.refusal_cache,
            ..Options::new(self.url.clone())
        }
    }
}

/// Where counts are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    Redis,
}

/// What was in a file; it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub(crate) Vec<u8>);

impl fmt::Debug for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// What is shown to servers, and asked of them, beside the URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// What the Sentinels want to know.
    pub(crate) sentinel_password: Option<Hidden>,
    /// The certificate of who signed that of the servers.
    pub(crate) authority: Option<Hidden>,
    /// Our own certificate and its key.
    pub(crate) certificate: Option<(Hidden, Hidden)>,
}

/// All that was said about a store that is shared.
#[derive(Default)]
pub(super) struct SharedDraft {
    pub(super) kind: Option<Kind>,
    pub(super) is_url_said: bool,
    /// Files that hold what does not belong among settings, by their keys.
    pub(super) files: HashMap<&'static str, PathBuf>,
    pub(super) settings: SharedSettings,
}

impl SharedDraft {
    /// Whoever says where a Redis is means it.
    pub(super) fn is_meant(&self) -> bool {
        self.kind.map_or(self.is_url_said, |kind| kind == Kind::Redis)
    }

    /// Reads all files that were named. If one cannot be used: which, and why.
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

fn password_in(path: &Path) -> Result<Vec<u8>, String> {
    match secret_in(path, "password")? {
        empty if empty.is_empty() => Err("the file is empty; write the password into it".to_owned()),
        password => Ok(password.into_bytes()),
    }
}

fn pem_in(path: &Path) -> Result<Vec<u8>, String> {
    let bytes =
        std::fs::read(path).map_err(|error| format!("cannot be read: {error}; name a file in PEM"))?;
    let is_pem = bytes.windows(PEM.len()).any(|window| window == PEM);
    if is_pem { Ok(bytes) } else { Err("is not in PEM; name a file with -----BEGIN lines".to_owned()) }
}

/// A URL, with a password only where nobody else reads it.
pub(super) fn url(said: &Said) -> Result<Url, String> {
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

/// How long a decision waits.
pub(super) fn deadline(text: &str) -> Result<Duration, String> {
    match positive(text)? {
        long if long > MAX_DEADLINE => Err("whoever asks waits as long; write at most \"5s\"".to_owned()),
        short if short < Duration::from_millis(1) => {
            Err("too short for any network; write at least \"1ms\"".to_owned())
        }
        deadline => Ok(deadline),
    }
}

/// What names in Redis begin with. Braces would decide which node of a cluster has all of them.
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
    fn a_deadline_is_one_that_whoever_asks_can_bear() {
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
