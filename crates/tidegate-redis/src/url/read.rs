//! Parsing of a URL.
//!
//! The parser is lenient about passwords: a password may contain `/`, `:` and `@` unescaped, because users paste them.
//! It is strict about everything after the hosts, so that a misspelled option is an error and not ignored.
//!
//! Messages never repeat the credentials, and messages about other parts may be logged.

use tidegate_support::{decoded, is_percent_encoded};

use super::{Address, Deployment, PORT, SENTINEL_PORT, Url, UrlError};

/// The valid schemes, for messages.
///
/// The list of messages names `redis` only; the synonyms of Valkey are accepted too.
const SCHEMES: &str =
    "redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://";

/// The kind of deployment that a scheme selects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Standalone,
    Sentinel,
    Cluster,
}

/// Parses a URL in this order: scheme, credentials, hosts, then the path with service and database.
///
/// Fails at the first fault. A query or a fragment is a fault: all options are settings of their own.
pub(super) fn read(text: &str) -> Result<Url, UrlError> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(UrlError::new(format!(
            "the URL has no scheme; write {SCHEMES}, for example redis://127.0.0.1:6379"
        )));
    };
    // The scheme decides about the default port and the meaning of the path.
    let (kind, is_encrypted) = scheme_of(scheme)?;
    // A password may contain any character, so the last @ before the path ends the credentials.
    let authority_end = rest.rfind('@').map_or(0, |at| at + 1);
    let path_at = rest[authority_end..].find(['/', '?', '#']).map_or(rest.len(), |at| authority_end + at);
    let (credentials, hosts, path) =
        (&rest[..authority_end.saturating_sub(1)], &rest[authority_end..path_at], &rest[path_at..]);
    if let Some(extra) = path.find(['?', '#']) {
        let extra = &path[extra..=extra];
        return Err(UrlError::new(format!(
            "what follows {extra:?} in the URL says nothing here; options are settings of their own, and a password \
             writes such characters as %3F and %23"
        )));
    }
    let (user, password) = if authority_end == 0 { (None, None) } else { read_credentials(credentials)? };
    // Empty segments are ignored, so a trailing slash is allowed.
    let segments: Vec<_> = path.split('/').skip(1).filter(|segment| !segment.is_empty()).collect();
    // Sentinels listen on another port than servers.
    let default = if kind == Kind::Sentinel { SENTINEL_PORT } else { PORT };
    // Each host may have a port of its own.
    let addresses =
        hosts.split(',').map(|host| read_address(host, default)).collect::<Result<Vec<_>, _>>()?;
    let (place, database) = read_place(kind, addresses, &segments)?;
    Ok(Url { place, is_encrypted, user, password, database })
}

/// Returns the kind of deployment and the use of TLS. Letter case is ignored.
fn scheme_of(scheme: &str) -> Result<(Kind, bool), UrlError> {
    // The schemes of Valkey are synonyms.
    Ok(match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => (Kind::Standalone, false),
        "rediss" | "valkeys" => (Kind::Standalone, true),
        "redis+sentinel" | "valkey+sentinel" => (Kind::Sentinel, false),
        "rediss+sentinel" | "valkeys+sentinel" => (Kind::Sentinel, true),
        "redis+cluster" | "valkey+cluster" => (Kind::Cluster, false),
        "rediss+cluster" | "valkeys+cluster" => (Kind::Cluster, true),
        _ => {
            return Err(UrlError::new(format!("the scheme {scheme:?} is not known; write {SCHEMES}")));
        }
    })
}

/// Splits `user:password` at the first colon. Each part is `None` if it is empty; a text without a colon is a user.
fn read_credentials(text: &str) -> Result<(Option<String>, Option<String>), UrlError> {
    // Only the first colon separates, so a password may contain colons.
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let user = plain(user, "user")?;
    let password = password.map(|password| plain(password, "password")).transpose()?;
    // An empty user, as in `:password@host`, is the default user.
    Ok(((!user.is_empty()).then_some(user), password.filter(|password| !password.is_empty())))
}

/// Decodes percent escapes.
///
/// An escape that is incomplete, or that yields invalid UTF-8, is an error. `what` names the part in the message.
fn plain(text: &str, what: &str) -> Result<String, UrlError> {
    let wrong = || {
        UrlError::new(format!(
            "the {what} in the URL has a % that begins no byte; write a % itself as %25, or give the password by \
             itself"
        ))
    };
    if !is_percent_encoded(text.as_bytes()) {
        return Err(wrong());
    }
    String::from_utf8(decoded(text.as_bytes()).into_owned()).map_err(|_| wrong())
}

/// Parses `host`, `host:port` or `[ipv6]:port`. An IPv6 address without brackets is ambiguous and therefore an error.
fn read_address(text: &str, default_port: u16) -> Result<Address, UrlError> {
    // Brackets enclose an IPv6 address, whose colons are no separators.
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(UrlError::new("the URL names no host; write one, for example redis://127.0.0.1:6379"));
    }
    // The last group of an IPv6 address would be mistaken for a port.
    if host.contains(':') && !text.starts_with('[') {
        return Err(UrlError::new(format!(
            "the address {text:?} is not clear; write an IPv6 address in brackets: [{text}]:{default_port}"
        )));
    }
    // An empty port, as in `host:`, selects the default one.
    let port = match port {
        None | Some("") => default_port,
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
            UrlError::new(format!(
                "the port of {host} is no number from 1 to 65535; write one, {host}:{default_port}, or user:password@ before it"
            ))
        })?,
    };
    Ok(Address { host: host.to_owned(), port })
}

/// Combines the addresses with the segments of the path: `/service/database` for Sentinels, `/database` otherwise.
///
/// A database other than zero is invalid for a cluster, and so are several hosts for a single server.
fn read_place(
    kind: Kind,
    mut addresses: Vec<Address>,
    segments: &[&str],
) -> Result<(Deployment, u32), UrlError> {
    let (place, rest) = match kind {
        Kind::Standalone if addresses.len() > 1 => {
            return Err(UrlError::new(
                "several hosts; write redis+cluster:// if they are nodes of a cluster, redis+sentinel:// if they are \
                 Sentinels, or one host",
            ));
        }
        Kind::Standalone => (Deployment::Standalone(addresses.remove(0)), segments),
        // The first segment is the service, as in the configuration of Sentinel (`sentinel monitor mymaster`).
        Kind::Sentinel => match segments.split_first() {
            Some((service, rest)) => {
                (Deployment::Sentinel { sentinels: addresses, service: plain(service, "service")? }, rest)
            }
            None => {
                return Err(UrlError::new(
                    "the URL does not say which service the Sentinels watch; write its name behind the hosts: \
                     redis+sentinel://host:26379/mymaster",
                ));
            }
        },
        Kind::Cluster => (Deployment::Cluster(addresses), segments),
    };
    let database = match rest {
        [] => 0,
        [number] => number.parse().map_err(|_| {
            UrlError::new(format!("the database {number:?} is no number; write one, for example /0"))
        })?,
        _ => return Err(UrlError::new("the URL goes on behind the database; end it there")),
    };
    // A node of a cluster rejects `SELECT` of another database.
    if database != 0 && kind == Kind::Cluster {
        return Err(UrlError::new(format!(
            "a cluster has no databases but 0; leave /{database} out, and tell users of it apart by their prefix"
        )));
    }
    Ok((place, database))
}
