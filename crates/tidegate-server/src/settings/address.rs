//! Parses the listen address of a front.
//!
//! An address is an IP address and a port. Host names are rejected, except `localhost`: a name could resolve to an
//! address that other machines reach.

use std::net::{IpAddr, SocketAddr};

/// The word that turns a front off.
const OFF: &str = "off";

/// Parses a listen address. Returns `None` if the front is turned off. If the port is missing, the error suggests
/// `port`.
///
/// Port 0 is accepted: the system picks a free port.
pub(super) fn address(text: &str, port: u16) -> Result<Option<SocketAddr>, String> {
    if text == OFF {
        return Ok(None);
    }
    let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    match local.as_deref().unwrap_or(text).parse() {
        Ok(address) => Ok(Some(address)),
        Err(_) => Err(what_is_wrong(text, port)),
    }
}

/// Returns the fault and a remedy for the most common mistakes: no port, no host, a name, a port above 65535.
fn what_is_wrong(text: &str, port: u16) -> String {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return format!("the port is missing; write \"{}\"", SocketAddr::new(ip, port));
    }
    let (host, given) = text.rsplit_once(':').unwrap_or(("", text));
    match given.parse::<u16>() {
        Ok(given) if host.is_empty() => {
            format!(
                "the host is missing; write \"127.0.0.1:{given}\", or \"0.0.0.0:{given}\" for all networks"
            )
        }
        Ok(given) => {
            format!("names are not looked up; write the number of an address, such as \"127.0.0.1:{given}\"")
        }
        Err(_) if !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit()) => {
            "ports go up to 65535; write 0 to get a free one".to_owned()
        }
        Err(_) => format!("not an address; write something like \"127.0.0.1:{port}\", or \"{OFF}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_number_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("[::1]:6380", Some("[::1]:6380")),
            ("localhost:6380", Some("127.0.0.1:6380")),
            ("off", None),
        ] {
            assert_eq!(address(text, 6380).unwrap().map(|address| address.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn any_other_text_is_an_error_with_a_remedy() {
        for (text, expected) in [
            ("127.0.0.1", "the port is missing; write \"127.0.0.1:6380\""),
            ("::1", "the port is missing; write \"[::1]:6380\""),
            ("6390", "the host is missing; write \"127.0.0.1:6390\", or \"0.0.0.0:6390\" for all networks"),
            (":6390", "the host is missing; write \"127.0.0.1:6390\", or \"0.0.0.0:6390\" for all networks"),
            (
                "example.com:6390",
                "names are not looked up; write the number of an address, such as \"127.0.0.1:6390\"",
            ),
            ("127.0.0.1:65536", "ports go up to 65535; write 0 to get a free one"),
            ("", "not an address; write something like \"127.0.0.1:6380\", or \"off\""),
            ("none", "not an address; write something like \"127.0.0.1:6380\", or \"off\""),
            ("127.0.0.1:", "not an address; write something like \"127.0.0.1:6380\", or \"off\""),
        ] {
            assert_eq!(address(text, 6380), Err(expected.to_owned()), "{text}");
        }
    }
}
