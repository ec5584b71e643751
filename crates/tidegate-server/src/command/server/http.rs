//! One request over HTTP/1.1, and its reply.
//!
//! One connection per request, which the server closes. The request is not retried: after a timeout it may have been
//! executed.

use std::io::{self, Read as _, Write as _};

use serde_json::Value;

use super::connect::{connect, no_answer, wants_token};
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

/// Returns the bytes of a request to a path of this host.
pub(super) fn request(
    method: Method,
    (path, host): (&str, &str),
    body: Option<&Value>,
    replaces: bool,
) -> impl Fn(Option<&str>) -> Vec<u8> {
    let method = match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
    };
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    if replaces {
        head += "if-match: *\r\n";
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    if !body.is_empty() {
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    move |token| {
        let token = token.map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
        format!("{head}{token}\r\n{body}").into_bytes()
    }
}

/// Sends a request, and reads the reply.
///
/// Decisions are replies, also denials. Any other problem is a [`Failure`] with the server's detail.
pub(super) fn call(
    server: &str,
    token: Option<&str>,
    request: &impl Fn(Option<&str>) -> Vec<u8>,
) -> Result<ServerReply, Failure> {
    let mut stream = connect(server, 8380)?;
    let no_answer = |error| no_answer(server, "HTTP", &error);
    stream.write_all(&request(token)).map_err(no_answer)?;
    let mut bytes = Vec::new();
    stream.take(MAX_REPLY_BYTES).read_to_end(&mut bytes).map_err(no_answer)?;
    let (status, text) = read(&bytes).map_err(no_answer)?;
    let json: Value = serde_json::from_str(&text).map_err(|_| no_answer(other_protocol()))?;
    let is_decision = json.get("allowed").is_some();
    match status {
        200..300 => Ok(ServerReply { text, json }),
        403 | 429 if is_decision => Ok(ServerReply { text, json }),
        401 if token.is_none() => Err(wants_token(server)),
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
        let put = request(Method::Put, ("/v1/overrides", "127.0.0.1:1"), Some(&body), true);
        assert_eq!(
            String::from_utf8(put(Some("sesame"))).unwrap(),
            "PUT /v1/overrides HTTP/1.1\r\nhost: 127.0.0.1:1\r\nconnection: close\r\nif-match: *\r\n\
             content-type: application/json\r\ncontent-length: 16\r\nauthorization: Bearer sesame\r\n\r\n\
             {\"rule\":\"login\"}"
        );
        let get = request(Method::Get, ("/v1/top", "h"), None, false);
        assert_eq!(get(None), b"GET /v1/top HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
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
