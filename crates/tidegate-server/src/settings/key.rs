//! Everything that can be set: one list for the file, the environment, the flags and the help.

use std::fmt;

use tidegate_support::{duration, positive, size};

use super::address::address;
use super::choice::dialect;
use super::count::{count, unfinished};
use super::shared::{deadline, kind, on_failure, prefix, url, yes_or_no};
use super::token::TokenSource;
use super::written::{Draft, Said};

/// More threads than any machine has processors.
const MAX_THREADS: usize = 1024;
/// More connections than any machine has ports for.
const MAX_CONNECTIONS: usize = 10_000_000;
/// More servers than anybody has share one store.
const MAX_NODES: usize = 10_000;

/// Something that can be set.
#[derive(Debug)]
pub(crate) struct Key {
    /// The table of the file in which it stands.
    pub(crate) table: Table,
    /// Its name there.
    pub(crate) name: &'static str,
    /// Its flag, without the dashes.
    pub(crate) flag: &'static str,
    /// Its environment variable.
    pub(crate) variable: &'static str,
    /// What stands for its value in the help.
    pub(crate) placeholder: &'static str,
    pub(crate) help: &'static str,
    /// What holds if nobody says anything, as text.
    pub(crate) default: Option<&'static str>,
    /// How it may look in the file.
    pub(super) example: &'static str,
    /// Reads a value, or says what is wrong with it and what would do.
    pub(super) set: fn(&mut Draft, &Said) -> Result<(), String>,
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Server,
    Store,
}

impl Table {
    pub(super) const ALL: [Table; 2] = [Table::Server, Table::Store];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Table::Server => "server",
            Table::Store => "store",
        }
    }

    /// What its flags stand under in the help.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Table::Server => "Server",
            Table::Store => "Store",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "[{}]", self.name())
    }
}

/// The secret itself: only in the environment, so that it stands in no file of settings and no list of processes.
pub(crate) static TOKEN: Key = Key {
    table: Table::Server,
    name: "token",
    flag: "",
    variable: "TIDEGATE_TOKEN",
    placeholder: "SECRET",
    help: "The token itself",
    default: None,
    example: "",
    set: |draft, said| {
        draft.token = Some(TokenSource::Secret(said.text.clone()));
        Ok(())
    },
};

impl Key {
    /// All of them, in the order of the help.
    pub(crate) const ALL: &[Key] = &[
        Key {
            table: Table::Server,
            name: "resp",
            flag: "resp",
            variable: "TIDEGATE_RESP",
            placeholder: "ADDRESS",
            help: "Where to speak RESP, the protocol of Redis; port 0 picks a free one, \"off\" speaks none",
            default: Some("127.0.0.1:6380"),
            example: "\"127.0.0.1:6380\"",
            set: |draft, said| address(&said.text, 6380).map(|value| draft.settings.resp = value),
        },
        Key {
            table: Table::Server,
            name: "http",
            flag: "http",
            variable: "TIDEGATE_HTTP",
            placeholder: "ADDRESS",
            help: "Where to speak HTTP; port 0 picks a free one, \"off\" speaks none",
            default: Some("127.0.0.1:8380"),
            example: "\"127.0.0.1:8380\"",
            set: |draft, said| address(&said.text, 8380).map(|value| draft.settings.http = value),
        },
        Key {
            table: Table::Server,
            name: "token_file",
            flag: "token-file",
            variable: "TIDEGATE_TOKEN_FILE",
            placeholder: "FILE",
            help: "The file with the token that callers need; TIDEGATE_TOKEN may hold the token itself",
            default: None,
            example: "\"token\"",
            set: |draft, said| said.path().map(|path| draft.token = Some(TokenSource::File(path))),
        },
        Key {
            table: Table::Server,
            name: "headers",
            flag: "headers",
            variable: "TIDEGATE_HEADERS",
            placeholder: "DIALECT",
            help: "How answers over HTTP say what is left: ietf, draft07, draft03, x-ratelimit or none",
            default: Some("ietf"),
            example: "\"ietf\"",
            set: |draft, said| dialect(&said.text).map(|value| draft.settings.headers = value),
        },
        Key {
            table: Table::Server,
            name: "threads",
            flag: "threads",
            variable: "TIDEGATE_THREADS",
            placeholder: "N",
            help: "How many threads decide; one per processor unless told otherwise",
            default: None,
            example: "4",
            set: |draft, said| count(&said.text, MAX_THREADS).map(|value| draft.settings.threads = value),
        },
        Key {
            table: Table::Server,
            name: "max_connections",
            flag: "max-connections",
            variable: "TIDEGATE_MAX_CONNECTIONS",
            placeholder: "N",
            help: "Connections at a time, of RESP and HTTP together; more are turned away",
            default: Some("10000"),
            example: "10000",
            set: |draft, said| {
                count(&said.text, MAX_CONNECTIONS)
                    .map(|value| draft.settings.bounds.max_connections = value.get())
            },
        },
        Key {
            table: Table::Server,
            name: "max_unfinished",
            flag: "max-unfinished",
            variable: "TIDEGATE_MAX_UNFINISHED",
            placeholder: "SIZE",
            help: "Memory for requests that have not arrived whole, of all connections together; the connection that wants \
                   more is closed",
            default: Some("256MiB"),
            example: "\"256MiB\"",
            set: |draft, said| {
                unfinished(&said.text).map(|value| draft.settings.bounds.max_unfinished = value)
            },
        },
        Key {
            table: Table::Server,
            name: "idle",
            flag: "idle",
            variable: "TIDEGATE_IDLE",
            placeholder: "TIME",
            help: "Timeout of a connection that is silent between two requests",
            default: Some("1h"),
            example: "\"1h\"",
            set: |draft, said| positive(&said.text).map(|value| draft.settings.bounds.idle = value),
        },
        Key {
            table: Table::Server,
            name: "arrival",
            flag: "arrival",
            variable: "TIDEGATE_ARRIVAL",
            placeholder: "TIME",
            help: "Timeout of a request that has begun to arrive: for its head, and again for its body",
            default: Some("10s"),
            example: "\"10s\"",
            set: |draft, said| positive(&said.text).map(|value| draft.settings.bounds.arrival = value),
        },
        Key {
            table: Table::Server,
            name: "unread",
            flag: "unread",
            variable: "TIDEGATE_UNREAD",
            placeholder: "TIME",
            help: "Timeout of an answer that the client does not read",
            default: Some("10s"),
            example: "\"10s\"",
            set: |draft, said| positive(&said.text).map(|value| draft.settings.bounds.unread = value),
        },
        Key {
            table: Table::Server,
            name: "grace",
            flag: "grace",
            variable: "TIDEGATE_GRACE",
            placeholder: "TIME",
            help: "How long requests that have begun may go on when the server is told to stop",
            default: Some("5s"),
            example: "\"5s\"",
            set: |draft, said| duration(&said.text).map(|value| draft.settings.bounds.grace = value),
        },
        Key {
            table: Table::Store,
            name: "kind",
            flag: "store-kind",
            variable: "TIDEGATE_STORE_KIND",
            placeholder: "KIND",
            help: "Where counts are held: memory, or redis to share them with other servers; redis if there is a URL",
            default: Some("memory"),
            example: "\"memory\"",
            set: |draft, said| kind(&said.text).map(|value| draft.shared.kind = Some(value)),
        },
        Key {
            table: Table::Store,
            name: "url",
            flag: "store-url",
            variable: "TIDEGATE_STORE_URL",
            placeholder: "URL",
            help: "The Redis or Valkey that holds counts: redis://, rediss://, redis+sentinel:// or redis+cluster://; \
                   redis://127.0.0.1:6379 unless told otherwise",
            default: None,
            example: "\"redis://127.0.0.1:6379\"",
            set: |draft, said| {
                draft.shared.is_url_said = true;
                url(said).map(|value| draft.shared.settings.url = value)
            },
        },
        Key {
            table: Table::Store,
            name: "password_file",
            flag: "store-password-file",
            variable: "TIDEGATE_STORE_PASSWORD_FILE",
            placeholder: "FILE",
            help: "The file with the password for Redis; a URL in TIDEGATE_STORE_URL may hold it, too",
            default: None,
            example: "\"redis.password\"",
            set: |draft, said| said.path().map(|path| draft.shared.files.password = Some(path)),
        },
        Key {
            table: Table::Store,
            name: "sentinel_password_file",
            flag: "store-sentinel-password-file",
            variable: "TIDEGATE_STORE_SENTINEL_PASSWORD_FILE",
            placeholder: "FILE",
            help: "The file with the password for the Sentinels, if they want one",
            default: None,
            example: "\"sentinel.password\"",
            set: |draft, said| said.path().map(|path| draft.shared.files.sentinel_password = Some(path)),
        },
        Key {
            table: Table::Store,
            name: "ca_file",
            flag: "store-ca-file",
            variable: "TIDEGATE_STORE_CA_FILE",
            placeholder: "FILE",
            help: "The certificate, in PEM, of who signed that of Redis, for rediss://; those of the system if there is none",
            default: None,
            example: "\"ca.pem\"",
            set: |draft, said| said.path().map(|path| draft.shared.files.authority = Some(path)),
        },
        Key {
            table: Table::Store,
            name: "certificate_file",
            flag: "store-certificate-file",
            variable: "TIDEGATE_STORE_CERTIFICATE_FILE",
            placeholder: "FILE",
            help: "The certificate, in PEM, that is shown to Redis, if it wants one; its key is in key_file",
            default: None,
            example: "\"tidegate.pem\"",
            set: |draft, said| said.path().map(|path| draft.shared.files.certificate = Some(path)),
        },
        Key {
            table: Table::Store,
            name: "key_file",
            flag: "store-key-file",
            variable: "TIDEGATE_STORE_KEY_FILE",
            placeholder: "FILE",
            help: "The key, in PEM, of certificate_file",
            default: None,
            example: "\"tidegate.key\"",
            set: |draft, said| said.path().map(|path| draft.shared.files.key = Some(path)),
        },
        Key {
            table: Table::Store,
            name: "nodes",
            flag: "store-nodes",
            variable: "TIDEGATE_STORE_NODES",
            placeholder: "N",
            help: "How many servers share the counts in Redis: each decides about its part while Redis is away",
            default: Some("1"),
            example: "4",
            set: |draft, said| count(&said.text, MAX_NODES).map(|value| draft.shared.settings.nodes = value),
        },
        Key {
            table: Table::Store,
            name: "deadline",
            flag: "store-deadline",
            variable: "TIDEGATE_STORE_DEADLINE",
            placeholder: "TIME",
            help: "How long a decision waits for Redis before it is made without it",
            default: Some("20ms"),
            example: "\"20ms\"",
            set: |draft, said| deadline(&said.text).map(|value| draft.shared.settings.deadline = value),
        },
        Key {
            table: Table::Store,
            name: "prefix",
            flag: "store-prefix",
            variable: "TIDEGATE_STORE_PREFIX",
            placeholder: "TEXT",
            help: "What all names in Redis begin with; servers share counts under the same prefix only",
            default: Some("tg:"),
            example: "\"tg:\"",
            set: |draft, said| prefix(&said.text).map(|value| draft.shared.settings.prefix = value),
        },
        Key {
            table: Table::Store,
            name: "refusal_cache",
            flag: "store-refusal-cache",
            variable: "TIDEGATE_STORE_REFUSAL_CACHE",
            placeholder: "BOOL",
            help: "Whether a refusal by Redis is remembered until it is over, and not asked for again: true or false",
            default: Some("true"),
            example: "true",
            set: |draft, said| yes_or_no(&said.text).map(|value| draft.shared.settings.refusal_cache = value),
        },
        Key {
            table: Table::Store,
            name: "on_failure",
            flag: "store-on-failure",
            variable: "TIDEGATE_STORE_ON_FAILURE",
            placeholder: "POLICY",
            help: "What holds for limits that come with a request while Redis is away: local, open or closed",
            default: Some("local"),
            example: "\"local\"",
            set: |draft, said| on_failure(&said.text).map(|value| draft.shared.settings.on_failure = value),
        },
        Key {
            table: Table::Store,
            name: "size",
            flag: "store-size",
            variable: "TIDEGATE_STORE_SIZE",
            placeholder: "SIZE",
            help: "The memory that counts may take, as in 64MiB or 1GiB: 24 bytes for a key under a token bucket, leaky bucket or fixed window, and what `tidegate explain` says under others; beside Redis, what is decided without it",
            default: Some("64MiB"),
            example: "\"64MiB\"",
            set: |draft, said| size(&said.text).map(|value| draft.settings.store.size = value),
        },
        Key {
            table: Table::Store,
            name: "file",
            flag: "store-file",
            variable: "TIDEGATE_STORE_FILE",
            placeholder: "FILE",
            help: "A file in which the counts of every algorithm survive restarts and kill -9; it is made if there is none, with a second one beside it (FILE.states) and two for each zone with a name",
            default: None,
            example: "\"zone.tg\"",
            set: |draft, said| said.path().map(|path| draft.settings.store.file = Some(path)),
        },
    ];

    /// Whether it is true or false.
    pub(super) fn is_yes_or_no(&self) -> bool {
        self.example == "true"
    }

    /// The key of this name in a table.
    pub(super) fn find(table: Table, name: &str) -> Option<&'static Key> {
        Key::ALL.iter().find(|key| key.table == table && key.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::Place;
    use super::*;

    #[test]
    fn a_flag_and_a_variable_are_called_like_their_key() {
        for key in Key::ALL {
            let prefix = if key.table == Table::Store { "store_" } else { "" };
            let name = format!("{prefix}{}", key.name);
            assert_eq!(key.flag, name.replace('_', "-"));
            assert_eq!(key.variable, format!("TIDEGATE_{}", name.to_uppercase()));
        }
    }

    #[test]
    fn the_help_tells_the_true_defaults() {
        let defaults = Key::ALL.iter().filter_map(|key| Some((key, key.default?)));
        let said =
            |(key, text): (&'static Key, &str)| Said { key, text: text.to_owned(), place: Place::Flag };
        let other = ["127.0.0.1:1", "127.0.0.1:2", "none", "7", "17MiB", "7s", "7s", "7s", "7s", "7KiB"];
        let names = [
            "resp",
            "http",
            "headers",
            "max_connections",
            "max_unfinished",
            "idle",
            "arrival",
            "unread",
            "grace",
            "size",
        ];
        let keys = names.map(|name| Key::ALL.iter().find(|key| key.name == name).unwrap());
        let changed = keys.into_iter().zip(other).map(said);
        let written: Vec<_> = changed.chain(defaults.map(said)).collect();
        let draft = Draft::read(&written).unwrap_or_else(|complaints| panic!("{complaints:?}"));
        assert_eq!(format!("{:?}", draft.settings), format!("{:?}", crate::Settings::default()));
    }

    #[test]
    fn examples_are_what_a_file_may_say() {
        for key in Key::ALL.iter().filter(|key| key.name == "file" || !key.name.ends_with("_file")) {
            let text = format!("{}\n{} = {}\n", key.table, key.name, key.example);
            let (said, complaints) = super::super::file::read(&text, std::path::Path::new(""));
            assert!(complaints.is_empty() && Draft::read(&said).is_ok(), "{text}");
        }
    }
}
