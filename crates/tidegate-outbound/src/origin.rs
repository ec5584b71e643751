//! The origin of a call: its scheme, host and port.
//!
//! Two spellings of one server must not have two paces, so the origin is written in one form: lower case, with the port
//! of the scheme, without user information and without a trailing dot.

use http::uri::Authority;
use tidegate_tower::Head;
use tidegate_tower::key::Part;

/// Returns the origin of a request. Another port or another scheme is another server.
///
/// A request without a host has no origin: it shares a queue with all such requests.
pub(super) fn origin(head: Head<'_>) -> Part<'_> {
    let of_field = || Authority::try_from(head.header(http::header::HOST)?.as_bytes()).ok();
    let authority = head.uri().authority().cloned().or_else(of_field);
    authority.map(|authority| written(head.uri().scheme_str().unwrap_or("http"), &authority)).into()
}

/// Writes an origin in its one form, such as `https://example.com:443`.
fn written(scheme: &str, authority: &Authority) -> String {
    let host = authority.host();
    let host = host.strip_suffix('.').unwrap_or(host);
    let port = authority.port_u16().unwrap_or(match scheme {
        "https" => 443,
        _ => 80,
    });
    let mut origin = format!("{scheme}://{host}:{port}");
    origin.make_ascii_lowercase();
    origin
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of(uri: &str, host: &str) -> Option<String> {
        let request = Request::get(uri).header("host", host).body(()).unwrap();
        match origin(Head::of(&request)) {
            Part::Bytes(bytes) => Some(String::from_utf8(bytes.into_owned()).unwrap()),
            _ => None,
        }
    }

    #[test]
    fn the_same_server_is_the_same_however_it_is_written() {
        for uri in ["http://example.com/", "http://EXAMPLE.com:80/a?b", "http://me:secret@example.com./"] {
            assert_eq!(of(uri, "other").as_deref(), Some("http://example.com:80"), "{uri}");
        }
        assert_eq!(of("/", "Example.com").as_deref(), Some("http://example.com:80"));
        assert_eq!(of("http://[::1]:8080/", "").as_deref(), Some("http://[::1]:8080"));
        assert_eq!(of("/", ""), None);
    }

    #[test]
    fn another_port_or_scheme_is_another_server() {
        assert_ne!(of("http://example.com/", ""), of("http://example.com:8080/", ""));
        assert_ne!(of("http://example.com/", ""), of("https://example.com/", ""));
        assert_eq!(of("https://example.com/", ""), of("https://example.com:443/", ""));
    }
}
