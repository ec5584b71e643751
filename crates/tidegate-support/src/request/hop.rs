//! One address in a header field that proxies write.
//!
//! Proxies write addresses in many forms: bare, with a port, in brackets, with a zone. An item in any other form is no
//! address. It is never guessed: a wrong guess would let a client choose its own key.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The maximum number of digits of a port.
const MAX_PORT_DIGITS: usize = 5;

/// Parses an address, with or without a port; `None` if the text is `unknown`, an obfuscated name, or not an address.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(rest) = text.strip_prefix('[') {
        let (ip, port) = rest.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return if is_port { ipv6(ip) } else { None };
    }
    match text.split_once(':') {
        None => text.parse().ok().map(IpAddr::V4),
        // In an address with several colons the last one may belong to the address, so such an address has no port.
        Some((_, rest)) if rest.contains(':') => ipv6(text),
        Some((ip, port)) if is_port(port) => ip.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Some(_) => None,
    }
}

/// Parses an IPv6 address without its zone, which follows a `%`.
fn ipv6(text: &str) -> Option<IpAddr> {
    let text = text.split_once('%').map_or(text, |(text, _)| text);
    Some(IpAddr::V6(text.parse::<Ipv6Addr>().ok()?).to_canonical())
}

/// Returns true if the text is a port number or an obfuscated name in its place.
fn is_port(port: &str) -> bool {
    let is_hidden = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        !name.is_empty() && name.bytes().all(is_plain)
    };
    let is_number = !port.is_empty()
        && port.len() <= MAX_PORT_DIGITS
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok();
    is_number || port.strip_prefix('_').is_some_and(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_a_port() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:80", "192.0.2.7"),
            ("192.0.2.7:_hidden", "192.0.2.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:65535", "2001:db8::1"),
            ("[::ffff:192.0.2.7]:1", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("fe80::1%eth0", "fe80::1"),
        ] {
            assert_eq!(address(text.as_bytes()), Some(expected.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            " ",
            "unknown",
            "_hidden",
            "192.0.2",
            "192.0.2.256",
            "192.0.2.7:",
            "192.0.2.7:65536",
            "192.0.2.7:+1",
            "192.0.2.7:80:80",
            "[192.0.2.7]",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]80",
            "[2001:db8::1]:",
            "[]",
            "192.0.2.7 ",
            "192.0.2.7:_",
            "192.0.2.7:_a b",
            "\"192.0.2.7\"",
            "localhost",
        ] {
            assert_eq!(address(text.as_bytes()), None, "{text}");
        }
        assert_eq!(address(&[0xff]), None);
    }
}
