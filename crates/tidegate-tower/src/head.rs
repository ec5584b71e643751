//! The heads of requests and responses: everything but the body.
//!
//! Functions that a program passes to a layer receive heads only, so they do not depend on a body type.
//!
//! Both types are small and `Copy`. They borrow from the request, so an extractor can return a part of a key without
//! copying it.

use std::fmt;
use std::time::Duration;

use http::header::{self, AsHeaderName, HeaderName};
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};

const GRPC: &[u8] = b"application/grpc";
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// The maximum number of digits of a `grpc-timeout`.
const MAX_TIMEOUT_DIGITS: usize = 8;

/// The head of a request: method, URI, header fields and extensions.
///
/// ```
/// use http::Request;
/// use tidegate::tower::Head;
///
/// let request = Request::get("http://example.com/a?b=1").header("x-user", "ana").body(())?;
/// let head = Head::of(&request);
/// assert_eq!((head.path(), head.host()), ("/a", Some(&b"example.com"[..])));
/// assert_eq!(head.header("x-user").map(|value| value.as_bytes()), Some(&b"ana"[..]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Head<'r> {
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    extensions: &'r Extensions,
}

impl<'r> Head<'r> {
    /// Returns the head of a request.
    #[inline]
    pub fn of<B>(request: &'r Request<B>) -> Head<'r> {
        Head {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// Returns the method.
    #[inline]
    pub fn method(self) -> &'r Method {
        self.method
    }

    /// Returns the URI.
    #[inline]
    pub fn uri(self) -> &'r Uri {
        self.uri
    }

    /// Returns the path, without the query.
    ///
    /// It is not decoded: `/a%20b` stays as it was written. In a nested router of axum it lacks the prefix of the outer
    /// router.
    pub fn path(self) -> &'r str {
        self.uri.path()
    }

    /// Returns the query of the URI, as it was written.
    pub(crate) fn query(self) -> Option<&'r [u8]> {
        self.uri.query().map(str::as_bytes)
    }

    /// Returns all header fields.
    #[inline]
    pub fn headers(self) -> &'r HeaderMap {
        self.headers
    }

    /// Returns the first value of a header field.
    ///
    /// The value may be any bytes that HTTP allows, not only UTF-8. A client can send several lines of one field; those
    /// after the first are in [`headers`](Self::headers).
    pub fn header(self, name: impl AsHeaderName) -> Option<&'r HeaderValue> {
        self.headers.get(name)
    }

    /// Returns the extensions, which the server and outer layers have added to the request.
    #[inline]
    pub fn extensions(self) -> &'r Extensions {
        self.extensions
    }

    /// Returns the extension of this type.
    #[inline]
    pub fn extension<T: Clone + Send + Sync + 'static>(self) -> Option<&'r T> {
        self.extensions.get()
    }

    /// Returns the host as it was written: the authority of the URI, or else the `Host` header field.
    ///
    /// It may contain a port and any mixture of cases: [`key::host`](crate::key::host) returns it in one form.
    pub fn host(self) -> Option<&'r [u8]> {
        let written = self.uri.authority().map(|authority| authority.as_str().as_bytes());
        // The user information (`name:password@`) does not identify the host.
        let of_uri = written.map(|all| all.rsplit(|byte| *byte == b'@').next().unwrap_or(all));
        of_uri.or_else(|| self.header(header::HOST).map(HeaderValue::as_bytes))
    }

    /// Returns true if this is a gRPC call: a `POST` with a gRPC content type. gRPC calls have their own form of
    /// denials.
    pub fn is_grpc(self) -> bool {
        // gRPC has no other method. A cache might store the 200 that replies to a `GET`, even if it is a denial.
        self.method == Method::POST && is_grpc(self.headers)
    }

    /// Returns the timeout of a gRPC call, read from `grpc-timeout`; `None` if the field is absent or invalid.
    ///
    /// It is the time from the start of the call, as the client has set it. It has at most eight digits, as gRPC
    /// specifies.
    pub fn timeout(self) -> Option<Duration> {
        timeout(self.header(GRPC_TIMEOUT)?.as_bytes())
    }
}

impl<'r> From<&'r http::request::Parts> for Head<'r> {
    fn from(parts: &'r http::request::Parts) -> Head<'r> {
        Head {
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
        }
    }
}

/// Omits header fields, which may contain secrets.
impl fmt::Debug for Head<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Head").field("method", self.method).field("uri", self.uri).finish_non_exhaustive()
    }
}

/// The head of a response: status, header fields and extensions.
///
/// It is the argument of functions that classify responses, such as
/// [`RateLimitLayer::after`](crate::RateLimitLayer::after) and
/// [`ConcurrencyLimitLayer::outcome`](crate::ConcurrencyLimitLayer::outcome). The body has not been polled yet.
#[derive(Clone, Copy)]
pub struct ResponseHead<'r> {
    status: StatusCode,
    headers: &'r HeaderMap,
    extensions: &'r Extensions,
}

impl<'r> ResponseHead<'r> {
    /// Returns the head of a response.
    #[inline]
    pub fn of<B>(response: &'r Response<B>) -> ResponseHead<'r> {
        ResponseHead {
            status: response.status(),
            headers: response.headers(),
            extensions: response.extensions(),
        }
    }

    /// Returns the HTTP status.
    pub fn status(self) -> StatusCode {
        self.status
    }

    /// Returns all header fields.
    pub fn headers(self) -> &'r HeaderMap {
        self.headers
    }

    /// Returns the first value of a header field.
    pub fn header(self, name: impl AsHeaderName) -> Option<&'r HeaderValue> {
        self.headers.get(name)
    }

    /// Returns the extensions, which the service and inner layers have added to the response.
    pub fn extensions(self) -> &'r Extensions {
        self.extensions
    }

    /// Returns the extension of this type.
    pub fn extension<T: Clone + Send + Sync + 'static>(self) -> Option<&'r T> {
        self.extensions.get()
    }

    /// Returns true if this is a reply to a gRPC call.
    pub fn is_grpc(self) -> bool {
        is_grpc(self.headers)
    }

    /// Returns the gRPC status if the head contains it. Only a reply without messages (trailers-only) does.
    ///
    /// The status of a reply with messages is in its trailers, which come after the body.
    pub fn grpc_status(self) -> Option<u32> {
        let digits = self.header("grpc-status")?.to_str().ok()?;
        digits.parse().ok()
    }
}

impl fmt::Debug for ResponseHead<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ResponseHead").field("status", &self.status).finish_non_exhaustive()
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return false };
    let Some((kind, rest)) = kind.as_bytes().split_at_checked(GRPC.len()) else { return false };
    // Browsers send `application/grpc-web`. They also read a denial from the header fields.
    kind.eq_ignore_ascii_case(GRPC) && matches!(rest, [] | [b'+' | b';' | b'-' | b' ', ..])
}

/// Parses a `grpc-timeout`: `250m` is 250 milliseconds.
fn timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > MAX_TIMEOUT_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let amount = digits.iter().fold(0_u64, |amount, digit| amount * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(amount * 3600),
        b'M' => Duration::from_secs(amount * 60),
        b'S' => Duration::from_secs(amount),
        b'm' => Duration::from_millis(amount),
        b'u' => Duration::from_micros(amount),
        b'n' => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_up_to_eight_digits_and_a_unit() {
        for (text, seconds, nanoseconds) in [
            ("1H", 3600, 0),
            ("2M", 120, 0),
            ("3S", 3, 0),
            ("250m", 0, 250_000_000),
            ("7u", 0, 7_000),
            ("9n", 0, 9),
            ("99999999H", 99_999_999 * 3600, 0),
            ("0S", 0, 0),
        ] {
            assert_eq!(timeout(text.as_bytes()), Some(Duration::new(seconds, nanoseconds)), "{text}");
        }
        for text in ["", "S", "1", "1s", "123456789S", "-1S", "+1S", "1 S", " 1S", "1.5S", "1SS", "1h"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_grpc_call_is_recognized_by_its_method_and_its_content_type() {
        let is = |kind: &'static str| {
            let request = Request::post("/").header("content-type", kind).body(()).unwrap();
            Head::of(&request).is_grpc()
        };
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "Application/GRPC;x=y",
            "application/grpc-web+proto",
        ] {
            assert!(is(kind), "{kind}");
        }
        for kind in ["", "application/json", "application/grp", "application/grpcx", "text/plain"] {
            assert!(!is(kind), "{kind}");
        }
        assert!(!Head::of(&Request::post("/").body(()).unwrap()).is_grpc());
        for method in [Method::GET, Method::HEAD, Method::PUT, Method::OPTIONS] {
            let request = Request::builder().method(&method).header("content-type", "application/grpc");
            assert!(!Head::of(&request.body(()).unwrap()).is_grpc(), "{method}");
        }
    }

    #[test]
    fn the_host_is_that_of_the_uri_or_else_of_the_field() {
        let host = |uri: &str, field: Option<&str>| {
            let mut request = Request::builder().uri(uri).body(()).unwrap();
            if let Some(field) = field {
                request.headers_mut().insert(header::HOST, field.parse().unwrap());
            }
            Head::of(&request).host().map(|host| String::from_utf8(host.to_vec()).unwrap())
        };
        assert_eq!(host("http://a:b@example.com:80/x", Some("other")).as_deref(), Some("example.com:80"));
        assert_eq!(host("/x", Some("example.com")).as_deref(), Some("example.com"));
        assert_eq!(host("/x", None), None);
    }
}
