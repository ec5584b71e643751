//! The check of `Host` for a server without a token, against DNS rebinding.
//!
//! A browser sends the host name of the page's request in `Host`. A malicious page can let its own name resolve to this
//! machine and read the responses. It cannot make the browser send an address or `localhost` instead of that name.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::header;
use hyper::http::request::Parts;

/// Returns true if a request names only an address or `localhost`. A request without `Host` does not come from a
/// browser.
///
/// Checks the authority of an absolute URI as well, and every `Host` field if there are several.
#[inline]
pub(super) fn is_of_this_machine(head: &Parts) -> bool {
    let authority = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut named = head.headers.get_all(header::HOST).into_iter().map(|host| host.as_bytes());
    authority.is_none_or(is_plain) && named.all(is_plain)
}

/// Returns true for an address, `localhost` or an empty host, with any port.
fn is_plain(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (is_known, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address.parse::<Ipv6Addr>().is_ok(), port),
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            let is_local = name.eq_ignore_ascii_case("localhost");
            (is_local || name.parse::<Ipv4Addr>().is_ok() || host.is_empty(), port)
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    is_known && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_localhost_are_known_and_names_are_not() {
        for host in [
            "",
            "localhost",
            "LocalHost:8380",
            "127.0.0.1",
            "127.0.0.1:8380",
            "192.0.2.7:80",
            "[::1]",
            "[::1]:8380",
        ] {
            assert!(is_plain(host.as_bytes()), "{host}");
        }
        for host in [
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "127.0.0.1@example.com",
            "127.0.0.1:x.example.com",
            "[::1].example.com",
            "[example.com]",
            "notlocalhost",
            "1.2.3",
            ":80",
            "\u{e9}",
        ] {
            assert!(!is_plain(host.as_bytes()), "{host}");
        }
        assert!(!is_plain(b"\xff"));
    }
}
