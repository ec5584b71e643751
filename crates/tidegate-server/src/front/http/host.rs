//! By which name a server without a token is asked.
//!
//! A browser asks whom a page names, and says so in `Host`. A page can have its own name lead to this machine and then
//! reads what we answer; it cannot have the browser say an address or `localhost` instead of that name.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::header;
use hyper::http::request::Parts;

/// Whether a request names no other host than an address or `localhost`. Whoever names none is no browser.
#[inline]
pub(super) fn is_of_this_machine(head: &Parts) -> bool {
    let authority = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut named = head.headers.get_all(header::HOST).into_iter().map(|host| host.as_bytes());
    authority.is_none_or(is_plain) && named.all(is_plain)
}

/// Whether it is an address or `localhost`, with any port.
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
