//! Parsing of patterns.
//!
//! The syntax depends on the attribute: `ip` takes networks, `path` takes path patterns, `host` and `method` are
//! normalized, and every other attribute takes text with an optional star at its end.
//!
//! Many mistakes parse as a valid pattern that matches nothing, such as a lower-case method or the wildcard syntax of
//! another router. They are errors here, because such a rule would look right and limit no request.

use std::net::{IpAddr, SocketAddr};

use super::foreign::{of_another_tool, piece_in_braces};
use super::{Network, PathPattern, Pattern};
use crate::normalized::{plain_beginning, plain_host, plain_path};

/// The maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024;

/// Parses the pattern of an attribute. The error contains the fault and its remedy.
///
/// The caller prepends the attribute and the pattern, so that a message reads
/// `path "api": is no path; begin it with a slash, as in "/api"`.
///
/// The pattern is normalized as values are: a path is decoded and resolved, a host is in lower case and without a port.
pub(crate) fn read_pattern(attribute: &str, text: &str) -> Result<Pattern, String> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(format!("has {} bytes; write at most {MAX_PATTERN_BYTES}", text.len()));
    }
    if let Some(what) = of_another_tool(attribute, text) {
        return Err(what);
    }
    match attribute {
        "ip" => Network::read(text).map(Pattern::Network),
        "path" if !text.starts_with('/') && text != "*" => {
            let path = text.trim_start_matches(['=', ' ']);
            let path = path.strip_prefix('/').unwrap_or(path);
            Err(format!("is no path; begin it with a slash, as in \"/{path}\""))
        }
        "path" if text.contains(['?', '#']) => {
            let path = text.split(['?', '#']).next().unwrap_or_default();
            Err(format!("has a query or a fragment, which is no part of a path; write {path:?}"))
        }
        "path" if text.contains(['{', '}']) => PathPattern::read(text).map(Pattern::Path),
        "path" => match plain(text).map_err(|what| piece_in_braces(text).unwrap_or(what))? {
            Pattern::Exact(path) => Ok(Pattern::Exact(plain_path(&path).into())),
            Pattern::Prefix(path) => Ok(Pattern::Prefix(plain_beginning(&path).into())),
            other => Ok(other),
        },
        "host" => match plain(&text.to_ascii_lowercase())? {
            Pattern::Exact(host) => Ok(Pattern::Exact(plain_host(&host).into())),
            Pattern::Prefix(host) if host.contains(&b':') && host.first() != Some(&b'[') => {
                let host = text.split(':').next().unwrap_or_default();
                Err(format!("has a port, which is no part of a host; write {host:?}"))
            }
            other => Ok(other),
        },
        "method" if text.bytes().any(|byte| byte.is_ascii_lowercase()) => {
            Err(format!("never matches, as methods are upper case; write {:?}", text.to_ascii_uppercase()))
        }
        _ => plain(text),
    }
}

/// Parses text with an optional star at its end for any suffix. A backslash makes the punctuation character after it an
/// ordinary one.
///
/// # Errors
/// A star before the end, and a backslash that escapes nothing.
fn plain(text: &str) -> Result<Pattern, String> {
    let (mut bytes, mut letters) = (Vec::new(), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '*' if letters.as_str().is_empty() => return Ok(Pattern::Prefix(bytes.into())),
            '*' if bytes.is_empty() => {
                return Err("has a star at its beginning, and only beginnings can be matched; write a list of the values"
                    .to_owned());
            }
            '*' => {
                let before = String::from_utf8_lossy(&bytes).into_owned();
                return Err(format!(
                    "has a star that is not at its end; write {:?} for all that begin so, or \"\\\\*\" for a star itself",
                    format!("{before}*")
                ));
            }
            '\\' => match letters.next() {
                Some(plain) if plain.is_ascii_punctuation() => bytes.push(plain as u8),
                _ => return Err("has a lonely backslash; write two for one".to_owned()),
            },
            letter => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Ok(Pattern::Exact(bytes.into()))
}

impl Network {
    /// Parses an address, or a network such as `10.0.0.0/8`.
    ///
    /// An address in a network, such as `10.0.0.1/8`, is an error: it may be meant as the address or as the network.
    ///
    /// # Errors
    /// The fault and its remedy: a star, a port, a prefix length out of range, or host bits that are not zero.
    fn read(text: &str) -> Result<Network, String> {
        let example = "write an address such as \"192.0.2.7\", or a network such as \"10.0.0.0/8\"";
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Network::of(ip));
        }
        if text.contains('*') {
            return Err(format!("is no network, as networks have no stars; {example}"));
        }
        if let Ok(with_port) = text.parse::<SocketAddr>() {
            return Err(format!("has a port; write \"{}\"", with_port.ip()));
        }
        let ip = text.split_once('/').and_then(|(ip, _)| ip.parse::<IpAddr>().ok());
        let net: ipnet::IpNet = text.parse().map_err(|_| match ip {
            Some(ip) => {
                let most = if ip.is_ipv4() { 32 } else { 128 };
                format!(
                    "the length behind the slash is from 0 to {most}; write something like \"{ip}/{most}\""
                )
            }
            None => format!("is neither an address nor a network; {example}"),
        })?;
        if net != net.trunc() {
            return Err(format!(
                "is an address within a network; write \"{}\" for the network, or \"{}\" for the address",
                net.trunc(),
                net.addr()
            ));
        }
        Network::new(net).ok_or_else(|| {
            "would hold all of IPv4, too; write \"0.0.0.0/0\" for all of IPv4, or \"::/0\" for everybody"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(attribute: &str, text: &str) -> String {
        match read_pattern(attribute, text) {
            Ok(pattern) => pattern.shown(attribute).to_string(),
            Err(what) => what,
        }
    }

    #[test]
    fn a_pattern_is_shown_as_it_is_written() {
        for (attribute, text) in [
            ("user", "ana"),
            ("user", ""),
            ("user", "*"),
            ("user", "an*"),
            ("ip", "10.0.0.0/8"),
            ("ip", "192.0.2.7"),
            ("ip", "2001:db8::/32"),
            ("path", "/api/{*rest}"),
            ("path", "/users/{id}/posts"),
            ("path", "/api/*"),
            ("path", "/login"),
        ] {
            assert_eq!(shown(attribute, text), format!("{text:?}"));
        }
        assert_eq!(shown("x", r"a\*\\"), r#""a\\*\\\\""#);
        assert_eq!(shown("x", r"\!a!"), r#""\\!a!""#);
        assert_eq!(shown("x", r"\!*"), r#""\\!*""#);
        assert_eq!(read_pattern("x", r"a\*"), Ok(Pattern::Exact(b"a*"[..].into())));
        assert_eq!(shown("path", "/a//b/../c"), "\"/a/c\"");
        assert_eq!(shown("host", "Example.COM:8080"), "\"example.com\"");
    }

    #[test]
    fn an_invalid_pattern_is_rejected_with_a_remedy() {
        for (attribute, text, said) in [
            ("user", "a*b", "has a star that is not at its end; write \"a*\""),
            ("user", r"a\z", "has a lonely backslash; write two for one"),
            ("ip", "10.0.0.1/8", "write \"10.0.0.0/8\" for the network, or \"10.0.0.1\" for the address"),
            ("ip", "10.0.0.*", "networks have no stars"),
            ("ip", "office", "is neither an address nor a network"),
            ("ip", "10.0.0.0/33", "from 0 to 32; write something like \"10.0.0.0/32\""),
            ("ip", "192.0.2.7:80", "has a port; write \"192.0.2.7\""),
            ("path", "/users/*/edit", "write \"/users/{name}/edit\""),
            ("path", "api", "begin it with a slash, as in \"/api\""),
            ("method", "get", "write \"GET\""),
            ("path", "= /login", "begin it with a slash, as in \"/login\""),
            ("host", "*.example.com", "only beginnings can be matched; write a list of the values"),
            ("path", "/users/:id", "write \"/users/{id}\" for any piece there, or \"%3Aid\" for this text"),
            ("path", "/:a/x/:b_1(\\d+)/*", "write \"/{a}/x/{b_1}/{*rest}\""),
            ("path", "/users/:id/{x}", "write \"/users/{id}/{x}\""),
            ("path", "/users/<int:id>", "write \"/users/{id}\" for any piece there, or \"%3Cint:id>\""),
            ("path", "/users/:-", "write \"/users/{name}\""),
            ("path", "/api/**", "write \"/api/{*rest}\" for all below"),
            ("path", "/api/**/x", "write \"/api/{*rest}\" for all below"),
            ("path", "/ap**", "write \"/{*rest}\" for all below"),
            ("path", "/users/{id}/*", "write {*rest} for all below, or %2A for a star itself"),
            ("path", "/{id}/a*", "write {*rest} for all below, or %2A for a star itself"),
        ] {
            let shown_as = shown(attribute, text);
            assert!(shown_as.contains(said), "{attribute} = {text}: {shown_as}");
        }
        for (text, pattern) in
            [("/users/%3Aid", "/users/:id"), ("/a:b", "/a:b"), ("/:", "/:"), ("/<a", "/<a")]
        {
            assert_eq!(read_pattern("path", text), Ok(Pattern::Exact(pattern.as_bytes().into())));
        }
        assert_eq!(read_pattern("path", r"/\*\*"), Ok(Pattern::Exact(b"/**"[..].into())));
        assert!(shown("user", &"x".repeat(1025)).contains("1025 bytes; write at most 1024"));
    }
}
