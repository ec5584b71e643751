//! Parsing of a URL.

use tidegate_support::{decoded, is_percent_encoded};

use super::{Address, Deployment, PORT, SENTINEL_PORT, Url, UrlError};

/// The valid schemes, for messages.
const SCHEMES: &str =
    "redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Standalone,
    Sentinel,
    Cluster,
}

pub(super) fn read(text: &str) -> Result<Url, UrlError> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(UrlError::new(format!(
            "the URL has no scheme; write {SCHEMES}, for example redis://127.0.0.1:6379"
        )));
    };
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
    let segments: Vec<_> = path.split('/').skip(1).filter(|segment| !segment.is_empty()).collect();
    let default = if kind == Kind::Sentinel { SENTINEL_PORT } else { PORT };
    let addresses =
        hosts.split(',').map(|host| read_address(host, default)).collect::<Result<Vec<_>, _>>()?;
    let (place, database) = read_place(kind, addresses, &segments)?;
    Ok(Url { place, is_encrypted, user, password, database })
}

fn scheme_of(scheme: &str) -> Result<(Kind, bool), UrlError> {
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

fn read_credentials(text: &str) -> Result<(Option<String>, Option<String>), UrlError> {
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let user = plain(user, "user")?;
    let password = password.map(|password| plain(password, "password")).transpose()?;
    Ok(((!user.is_empty()).then_some(user), password.filter(|password| !password.is_empty())))
}

/// Decodes percent escapes.
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

fn read_address(text: &str, default_port: u16) -> Result<Address, UrlError> {
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
    if host.contains(':') && !text.starts_with('[') {
        return Err(UrlError::new(format!(
            "the address {text:?} is not clear; write an IPv6 address in brackets: [{text}]:{default_port}"
        )));
    }
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
    if database != 0 && kind == Kind::Cluster {
        return Err(UrlError::new(format!(
            "a cluster has no databases but 0; leave /{database} out, and tell users of it apart by their prefix"
        )));
    }
    Ok((place, database))
}
