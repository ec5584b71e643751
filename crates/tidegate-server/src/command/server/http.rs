//! One request over HTTP/1.1, and its reply.
//!
//! One connection per request, which the server closes. The request is not retried: after a timeout it may have been
//! executed.

use std::io::{self, Read as _, Write as _};

use serde_json::Value;

use super::connect::{connect, no_answer, wants_token, wrong_token};
use super::token::CallerToken;
use crate::command::failure::Failure;

/// The longest reply, in bytes: a list of all overrides is the longest one.
const MAX_REPLY_BYTES: u64 = 64 << 20;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

/// A reply: a decision, or the result of another request.
#[derive(Debug)]
pub(in crate::command) struct ServerReply {
    /// The text of the body.
    pub(in crate::command) text: String,
    /// The same as JSON.
    pub(in crate::command) json: Value,
}

/// A request to a server.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) struct ServerRequest<'a> {
    /// The method.
    pub(in crate::command) method: Method,
    /// The path, with its query.
    pub(in crate::command) path: &'a str,
    /// The body; `None` for a request without one.
    pub(in crate::command) body: Option<&'a Value>,
    /// True if the change replaces whatever is there: `If-Match: *`.
    pub(in crate::command) replaces: bool,
    /// The author of a change: `X-Tidegate-By`.
    pub(in crate::command) by: Option<&'a str>,
}

impl<'a> ServerRequest<'a> {
    /// Creates a request for a path.
    pub(in crate::command) fn get(path: &'a str) -> ServerRequest<'a> {
        ServerRequest { method: Method::Get, path, body: None, replaces: false, by: None }
    }

    /// Creates a request with a body.
    pub(in crate::command) fn with(method: Method, path: &'a str, body: &'a Value) -> ServerRequest<'a> {
        ServerRequest { method, path, body: Some(body), replaces: false, by: None }
    }

    /// Returns the bytes of the request to this host.
    fn bytes(&self, host: &str, token: Option<&str>) -> Vec<u8> {
        let ServerRequest { method, path, body, replaces, by } = self;
        let method = match method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        };
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        if *replaces {
            text += "if-match: *\r\n";
        }
        if let Some(by) = by {
            text += &format!("x-tidegate-by: {by}\r\n");
        }
        if let Some(token) = token {
            text += &format!("authorization: Bearer {token}\r\n");
        }
        let body = body.map(Value::to_string);
        if let Some(body) = &body {
            text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        (text + "\r\n" + &body.unwrap_or_default()).into_bytes()
    }
}

/// Sends a request, and reads the reply.
///
/// Decisions are replies, also denials. Any other problem is a [`Failure`] with the server's detail.
pub(super) fn call(
    server: &str,
    token: Option<&CallerToken>,
    request: ServerRequest<'_>,
) -> Result<ServerReply, Failure> {
    let mut stream = connect(server, 8380)?;
    let no_answer = |error| no_answer(server, "HTTP", &error);
    stream.write_all(&request.bytes(server, token.map(|token| &*token.secret))).map_err(no_answer)?;
    let mut bytes = Vec::new();
    stream.take(MAX_REPLY_BYTES).read_to_end(&mut bytes).map_err(no_answer)?;
    let (status, text) = read(&bytes).map_err(no_answer)?;
    let json: Value = serde_json::from_str(&text).map_err(|_| no_answer(other_protocol()))?;
    let is_decision = json.get("allowed").is_some();
    match status {
        200..300 => Ok(ServerReply { text, json }),
        403 | 429 if is_decision => Ok(ServerReply { text, json }),
        401 => Err(token.map_or_else(|| wants_token(server), |token| wrong_token(server, &token.origin))),
        412 if request.replaces => Err(Failure::failed(format!(
            "{server} says: there is no override of this key to replace, or it has ended; leave --replace out"
        ))),
        428 => Err(Failure::failed(format!(
            "{server} says: the override of this key would be replaced; `tidegate override` shows it, and --replace \
             replaces it"
        ))),
        _ => {
            let detail = json["detail"].as_str().unwrap_or(&text);
            let message = format!("{server} says: {detail}");
            Err(if matches!(status, 400 | 404) {
                Failure::misused(message)
            } else {
                Failure::failed(message)
            })
        }
    }
}

/// Splits a reply into its status and its body.
fn read(bytes: &[u8]) -> io::Result<(u16, String)> {
    if bytes.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let reply = std::str::from_utf8(bytes).map_err(|_| other_protocol())?;
    let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(other_protocol)?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)?.parse().ok());
    let status = status.ok_or_else(other_protocol)?;
    let length = head.lines().skip(1).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    match length {
        Some(length) if length == body.len() => Ok((status, body.to_owned())),
        Some(length) if length > body.len() => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Err(other_protocol()),
    }
}

/// Returns the error about bytes that are not a reply of this server.
fn other_protocol() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it does not answer as a tidegate server over HTTP does")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_its_length_and_its_token() {
        let body = json!({"rule": "login"});
        let put = ServerRequest {
            replaces: true,
            by: Some("ana"),
            ..ServerRequest::with(Method::Put, "/v1/overrides", &body)
        };
        assert_eq!(
            String::from_utf8(put.bytes("127.0.0.1:1", Some("sesame"))).unwrap(),
            "PUT /v1/overrides HTTP/1.1\r\nhost: 127.0.0.1:1\r\nconnection: close\r\nif-match: *\r\n\
             x-tidegate-by: ana\r\nauthorization: Bearer sesame\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n\
             {\"rule\":\"login\"}"
        );
        let get = ServerRequest::get("/v1/top").bytes("h", None);
        assert_eq!(get, b"GET /v1/top HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    }

    #[test]
    fn a_whole_reply_is_read_and_anything_else_is_an_error() {
        let whole = b"HTTP/1.1 200 OK\r\ndate: x\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(read(whole).unwrap(), (200, "{}".to_owned()));
        let kind = |bytes: &[u8]| read(bytes).unwrap_err().kind();
        assert_eq!(kind(b""), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(&whole[..whole.len() - 1]), io::ErrorKind::UnexpectedEof);
        for other in [
            &b"+PONG\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}",
            b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 abc\r\ncontent-length: 2\r\n\r\n{}",
            b"\xff\xfe",
        ] {
            assert_eq!(kind(other), io::ErrorKind::InvalidData, "{other:?}");
        }
    }
}
