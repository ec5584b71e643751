//! All settings in one list, which the file, the environment, the flags and the help text share.
//!
//! A setting is added here and in [`Settings`](super::Settings), and nowhere else: its key in the file, its flag
//! `--store-nodes`, its variable `TIDEGATE_STORE_NODES`, its help line and its parser come from one entry.

use std::fmt;
use std::sync::LazyLock;

use tidegate_support::{duration, positive, size};

use super::address::address;
use super::shared::{deadline, prefix, url};
use super::token::TokenSource;
use super::value::{
    count, denial_status, dialect, kind, on_store_failure, trusted_proxies, unfinished, yes_or_no,
};
use super::written::{Draft, SettingValue};

/// The largest accepted number of threads: more than any machine has processors.
const MAX_THREADS: usize = 1024;
/// The largest accepted number of connections: more than any machine has ports.
const MAX_CONNECTIONS: usize = 10_000_000;
/// The largest accepted number of servers that share one store: more than any deployment has.
const MAX_NODES: usize = 10_000;

/// One setting.
#[derive(Debug)]
pub(crate) struct SettingKey {
    /// The table of the file that contains it.
    pub(crate) table: SettingTable,
    /// Its name in that table.
    pub(crate) name: &'static str,
    /// Its flag, without the dashes.
    pub(crate) flag: &'static str,
    /// Its environment variable.
    pub(crate) variable: &'static str,
    /// The placeholder of its value in the help text.
    pub(crate) placeholder: &'static str,
    /// The help line, without a full stop. The default value is appended to it.
    pub(crate) help: &'static str,
    /// The default value, as text.
    pub(crate) default: Option<&'static str>,
    /// A valid value, for error messages.
    example: &'static str,
    /// The function that parses and applies a value. Its error states the fault and a remedy.
    pub(super) set: Set,
}

/// A table of the settings file.
///
/// The tables `rule` and `zone` are not settings: the policy reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingTable {
    /// `[server]`: listeners, clients and resource limits.
    Server,
    /// `[store]`: memory, file or Redis.
    Store,
}

impl SettingTable {
    /// All tables, in the order of the help text.
    pub(super) const ALL: [SettingTable; 2] = [SettingTable::Server, SettingTable::Store];

    /// Returns the name of the table in the file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            SettingTable::Server => "server",
            SettingTable::Store => "store",
        }
    }

    /// Returns the heading of its flags in the help text.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            SettingTable::Server => "Server",
            SettingTable::Store => "Store",
        }
    }
}

impl fmt::Display for SettingTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "[{}]", self.name())
    }
}

/// The token itself. It is accepted only from the environment, so that it is in no settings file and no process list.
///
/// It has no flag: every user of a machine can read the command lines of its processes.
pub(crate) static TOKEN: LazyLock<SettingKey> = LazyLock::new(|| {
    server("token", "SECRET").help("The token itself").set(|draft, said| {
        draft.token = Some(TokenSource::Secret(said.text.clone()));
        Ok(())
    })
});

/// All settings, in the order of the help text.
///
/// The flag of a key derives from its name. A key under `[store]` has the prefix `store`, unless its name has the word.
pub(crate) static KEYS: LazyLock<Vec<SettingKey>> = LazyLock::new(|| {
    vec![
        server("resp", "ADDRESS")
            .help("Listen address for RESP, the protocol of Redis; port 0 picks a free port, \"off\" disables it")
            .default("127.0.0.1:6380")
            .set(|draft, said| address(&said.text, 6380).map(|value| draft.settings.resp = value)),
        server("http", "ADDRESS")
            .help("Listen address for HTTP; port 0 picks a free port, \"off\" disables it")
            .default("127.0.0.1:8380")
            .set(|draft, said| address(&said.text, 8380).map(|value| draft.settings.http = value)),
        server("token_file", "FILE")
            .help("File with the token that clients must send; TIDEGATE_TOKEN may contain the token itself")
            .example("token")
            .set(|draft, said| said.path().map(|path| draft.token = Some(TokenSource::File(path)))),
        server("headers", "DIALECT")
            .help("Dialect of the rate-limit header fields over HTTP: ietf, draft07, draft03, x-ratelimit or none")
            .default("ietf")
            .set(|draft, said| dialect(&said.text).map(|value| draft.settings.headers = value)),
        server("trusted_proxies", "NETWORKS")
            .help("Proxies in front of the one that asks at /v1/auth, as in 10.0.0.0/8,192.0.2.7: their items of X-Forwarded-For are not the client")
            .example("10.0.0.0/8,192.0.2.7")
            .set(|draft, said| {
                trusted_proxies(&said.text).map(|value| draft.settings.auth.trusted_proxies = value)
            }),
        server("auth_denial_status", "STATUS")
            .help("Status code of a denial at /v1/auth: 429, or 403 for nginx, which turns 429 into 500")
            .default("429")
            .set(|draft, said| denial_status(&said.text).map(|value| draft.settings.auth.denial_status = value)),
        server("overrides_file", "FILE")
            .help("File that keeps overrides across restarts, \"off\" keeps them in memory; by default FILE.overrides beside the settings file. With Redis they are kept there")
            .example("tidegate.overrides")
            .set(|draft, said| {
                let file = if said.text == "off" { None } else { Some(said.path()?) };
                draft.overrides_file = Some(file);
                Ok(())
            }),
        server("audit_log", "FILE")
            .help("File to which each change of rules, overrides or keys of rules is appended, as a line of JSON with its author and time")
            .example("audit.log")
            .set(|draft, said| said.path().map(|path| draft.settings.audit_log = Some(path))),
        server("threads", "N")
            .help("Number of worker threads; by default one per processor")
            .example("4")
            .set(|draft, said| count(&said.text, MAX_THREADS).map(|value| draft.settings.threads = value)),
        server("max_connections", "N")
            .help("Maximum number of connections, of RESP and HTTP together; further ones are rejected")
            .default("10000")
            .set(|draft, said| {
                count(&said.text, MAX_CONNECTIONS)
                    .map(|value| draft.settings.bounds.max_connections = value.get())
            }),
        server("max_unfinished", "SIZE")
            .help("Memory for unfinished requests of all connections together; a connection that needs more is closed")
            .default("256MiB")
            .set(|draft, said| {
                unfinished(&said.text).map(|value| draft.settings.bounds.max_unfinished = value)
            }),
        server("idle_timeout", "TIME")
            .help("Timeout of a connection that is idle between two requests")
            .default("1h")
            .set(|draft, said| positive(&said.text).map(|value| draft.settings.bounds.idle_timeout = value)),
        server("request_timeout", "TIME")
            .help("Timeout of a request that has begun to arrive: for its head, and again for its body")
            .default("10s")
            .set(|draft, said| positive(&said.text).map(|value| draft.settings.bounds.request_timeout = value)),
        server("write_timeout", "TIME")
            .help("Timeout of a reply that the client does not read")
            .default("10s")
            .set(|draft, said| positive(&said.text).map(|value| draft.settings.bounds.write_timeout = value)),
        server("shutdown_timeout", "TIME")
            .help("Timeout of requests in flight at shutdown")
            .default("5s")
            .set(|draft, said| duration(&said.text).map(|value| draft.settings.bounds.shutdown_timeout = value)),
        store("kind", "KIND")
            .help("Store of counts: memory, or redis to share them with other servers; redis if there is a URL")
            .default("memory")
            .set(|draft, said| kind(&said.text).map(|value| draft.shared.kind = Some(value))),
        store("url", "URL")
            .help("URL of the Redis or Valkey that stores counts: redis://, rediss://, redis+sentinel:// or redis+cluster://; \
                   by default redis://127.0.0.1:6379")
            .example("redis://127.0.0.1:6379")
            .set(|draft, said| {
                draft.shared.is_url_said = true;
                url(said).map(|value| draft.shared.settings.url = value)
            }),
        store("password_file", "FILE")
            .help("File with the password for Redis; a URL in TIDEGATE_STORE_URL may also contain it")
            .example("redis.password")
            .set(shared_file),
        store("sentinel_password_file", "FILE")
            .help("File with the password for the Sentinels, if they require one")
            .example("sentinel.password")
            .set(shared_file),
        store("ca_file", "FILE")
            .help("CA certificate for rediss://, in PEM; by default those of the system")
            .example("ca.pem")
            .set(shared_file),
        store("certificate_file", "FILE")
            .help("Client certificate for Redis, in PEM, if Redis requires one; its key is in key_file")
            .example("tidegate.pem")
            .set(shared_file),
        store("key_file", "FILE")
            .help("Private key of certificate_file, in PEM")
            .example("tidegate.key")
            .set(shared_file),
        store("nodes", "N")
            .help("Number of servers that share the counts in Redis: each decides by its part of a limit while Redis is down")
            .default("1")
            .example("4")
            .set(|draft, said| count(&said.text, MAX_NODES).map(|value| draft.shared.settings.nodes = value)),
        store("deadline", "TIME")
            .help("Deadline of a request to Redis; after it the server decides without Redis")
            .default("20ms")
            .set(|draft, said| deadline(&said.text).map(|value| draft.shared.settings.deadline = value)),
        store("prefix", "TEXT")
            .help("Prefix of all names in Redis; only servers with the same prefix share counts")
            .default("tg:")
            .set(|draft, said| prefix(&said.text).map(|value| draft.shared.settings.prefix = value)),
        store("denial_cache", "BOOL")
            .help("Cache of denials by Redis until their retry time, so that Redis is not asked again: true or false")
            .default("true")
            .set(|draft, said| yes_or_no(&said.text).map(|value| draft.shared.settings.denial_cache = value)),
        store("on_store_failure", "POLICY")
            .help("Policy for limits that come with a request while Redis is down: local, open or closed")
            .default("local")
            .set(|draft, said| on_store_failure(&said.text).map(|value| draft.shared.settings.on_store_failure = value)),
        store("size", "SIZE")
            .help("Memory for counts, as in 64MiB or 1GiB: 24 bytes for a key under a token bucket, leaky bucket or fixed window; `tidegate explain` reports it for other algorithms. With Redis, the memory of the fallback")
            .default("64MiB")
            .set(|draft, said| size(&said.text).map(|value| draft.settings.store.size = value)),
        store("file", "FILE")
            .help("File in which the counts of every algorithm survive restarts and kill -9; it is created if missing, with a second one beside it (FILE.states) and two for each named zone")
            .example("zone.tg")
            .set(|draft, said| said.path().map(|path| draft.settings.store.file = Some(path))),
    ]
});

/// Parses the text of a value and stores it in the draft. The error is the fault with a remedy.
type Set = fn(&mut Draft, &SettingValue) -> Result<(), String>;

/// Stores the path of a file of the shared store under its key.
fn shared_file(draft: &mut Draft, said: &SettingValue) -> Result<(), String> {
    draft.shared.files.insert(said.key.name, said.path()?);
    Ok(())
}

/// Creates a key under `[server]`.
fn server(name: &'static str, placeholder: &'static str) -> SettingKey {
    SettingKey::new(SettingTable::Server, name, placeholder)
}

/// Creates a key under `[store]`.
fn store(name: &'static str, placeholder: &'static str) -> SettingKey {
    SettingKey::new(SettingTable::Store, name, placeholder)
}

impl SettingKey {
    /// Creates a key. The names of its flag and its variable derive from `name`.
    fn new(table: SettingTable, name: &'static str, placeholder: &'static str) -> SettingKey {
        // `on_store_failure` names the store by itself.
        let has_prefix = table == SettingTable::Store && !name.contains("store");
        let prefix = if has_prefix { "store_" } else { "" };
        let whole = format!("{prefix}{name}");
        SettingKey {
            table,
            name,
            flag: whole.replace('_', "-").leak(),
            variable: format!("TIDEGATE_{}", whole.to_uppercase()).leak(),
            placeholder,
            help: "",
            default: None,
            example: "",
            set: |_, _| Ok(()),
        }
    }

    /// Sets the help line.
    fn help(self, help: &'static str) -> SettingKey {
        SettingKey { help, ..self }
    }

    /// Sets the default value, which is also the example.
    fn default(self, text: &'static str) -> SettingKey {
        SettingKey { default: Some(text), example: text, ..self }
    }

    /// Sets the example, for a key without a default value.
    fn example(self, example: &'static str) -> SettingKey {
        SettingKey { example, ..self }
    }

    /// Sets the parser.
    fn set(self, set: Set) -> SettingKey {
        SettingKey { set, ..self }
    }

    /// Returns an example value in TOML syntax.
    pub(super) fn example_in_file(&self) -> String {
        let is_text = self.example.parse::<u64>().is_err() && !self.is_yes_or_no();
        if is_text { format!("{:?}", self.example) } else { self.example.to_owned() }
    }

    /// Returns true if its value is a boolean.
    pub(super) fn is_yes_or_no(&self) -> bool {
        self.example == "true"
    }

    /// Finds a key by table and name.
    ///
    /// `None` for an unknown name, and for a known name in the wrong table.
    pub(super) fn find(table: SettingTable, name: &str) -> Option<&'static SettingKey> {
        KEYS.iter().find(|key| key.table == table && key.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::Place;
    use super::*;

    #[test]
    fn the_defaults_in_the_help_are_the_defaults() {
        let defaults = KEYS.iter().filter_map(|key| Some((key, key.default?)));
        let said = |(key, text): (&'static SettingKey, &str)| SettingValue {
            key,
            text: text.to_owned(),
            place: Place::Flag,
        };
        let other =
            ["127.0.0.1:1", "127.0.0.1:2", "none", "403", "7", "17MiB", "7s", "7s", "7s", "7s", "7KiB"];
        let names = [
            "resp",
            "http",
            "headers",
            "auth_denial_status",
            "max_connections",
            "max_unfinished",
            "idle_timeout",
            "request_timeout",
            "write_timeout",
            "shutdown_timeout",
            "size",
        ];
        let keys = names.map(|name| KEYS.iter().find(|key| key.name == name).unwrap());
        let changed = keys.into_iter().zip(other).map(said);
        let written: Vec<_> = changed.chain(defaults.map(said)).collect();
        let draft = Draft::read(&written).unwrap_or_else(|complaints| panic!("{complaints:?}"));
        assert_eq!(format!("{:?}", draft.settings), format!("{:?}", crate::Settings::default()));
    }

    #[test]
    fn examples_are_what_a_file_may_say() {
        for key in KEYS.iter().filter(|key| key.name == "file" || !key.name.ends_with("_file")) {
            let text = format!("{}\n{} = {}\n", key.table, key.name, key.example_in_file());
            let (said, complaints) = super::super::file::read(&text, std::path::Path::new(""));
            assert!(complaints.is_empty() && Draft::read(&said).is_ok(), "{text}");
        }
    }
}
