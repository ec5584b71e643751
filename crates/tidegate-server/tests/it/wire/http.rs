//! An HTTP client for tests: a connection on which a test sends any bytes.

use std::fmt::Debug;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use super::{Running, connect};

pub(crate) struct Talk(BufReader<TcpStream>);

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the value of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(of, _)| of == name).map(|(_, value)| &**value)
    }

    /// Returns the names of all header fields that start with this text, sorted.
    pub(crate) fn fields_of(&self, beginning: &str) -> Vec<&str> {
        let mut names: Vec<_> = self.fields.iter().map(|(name, _)| &**name).collect();
        names.retain(|name| name.starts_with(beginning));
        names.sort_unstable();
        names
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Returns the detail of a problem reply. Asserts that it is well-formed and has this status.
    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.field("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        assert!(problem["type"].is_string() && problem["title"].is_string(), "{problem}");
        problem["detail"].as_str().expect("a problem has a detail").to_owned()
    }

    /// Asserts that the reply is a problem of this status whose detail contains this text.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, said: &str) {
        self.is_problem_of("", status, said);
    }

    /// Asserts the same, and names the case in a failure.
    #[track_caller]
    pub(crate) fn is_problem_of(&self, case: impl Debug, status: u16, said: &str) {
        assert_eq!(self.status, status, "{case:?}: {self:?}");
        assert!(self.detail().contains(said), "{case:?} -> {}", self.detail());
    }
}

impl Talk {
    pub(crate) fn to(running: &Running) -> Talk {
        Talk::at(running.server.http().expect("it speaks HTTP"))
    }

    pub(crate) fn at(address: SocketAddr) -> Talk {
        Talk(BufReader::new(connect(address)))
    }

    /// Returns the address of the server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.get_ref().peer_addr().expect("it is connected")
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Talk {
        self.try_send(bytes).expect("the server reads");
        self
    }

    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes.as_ref())
    }

    pub(crate) fn ask(&mut self, message: impl AsRef<[u8]>) -> Answer {
        self.send(message).answer()
    }

    /// Sends a message. Returns the reply, or `None` if the server has closed the connection.
    pub(crate) fn ask_if_open(&mut self, message: impl AsRef<[u8]>) -> Option<Answer> {
        self.try_send(message).ok()?;
        let is_open = self.0.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        is_open.then(|| self.answer())
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Answer {
        self.ask(post(path, body))
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask(get(path))
    }

    /// Reads the next reply, with a body as long as `content-length`.
    pub(crate) fn answer(&mut self) -> Answer {
        let (status, fields) = self.head();
        let length = fields.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().expect("a length is a number"));
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a whole body");
        Answer { status, fields, body: String::from_utf8(body).expect("bodies are text") }
    }

    /// Reads the head of the next reply, which has no body even if it has a length.
    pub(crate) fn answer_to_head(&mut self) -> Answer {
        let (status, fields) = self.head();
        Answer { status, fields, body: String::new() }
    }

    fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let first = self.line();
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = status.and_then(|status| status.parse().ok());
        let fields = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()));
        let fields = fields.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?} is no field"));
            // Gateways write names in upper case.
            (name.to_ascii_lowercase(), value.to_owned())
        });
        (status.unwrap_or_else(|| panic!("{first:?} has no status")), fields.collect())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line.trim_end_matches("\r\n").to_owned()
    }

    /// Returns the same connection, for another thread to write to.
    pub(crate) fn writer(&self) -> TcpStream {
        self.0.get_ref().try_clone().expect("a socket can be shared")
    }

    /// Returns true if this connection is within `max_connections`. A health check would be answered in any case.
    pub(crate) fn is_served(&mut self) -> bool {
        self.is_answered("/openapi.json")
    }

    /// Returns true if a request for this path gets status 200 before the connection is closed.
    pub(crate) fn is_answered(&mut self, path: &str) -> bool {
        let is_sent = self.try_send(get(path)).is_ok();
        is_sent && self.0.fill_buf().is_ok_and(|bytes| bytes.starts_with(b"HTTP/1.1 200"))
    }

    /// Closes the sending side.
    pub(crate) fn hang_up(&mut self) {
        self.0.get_ref().shutdown(Shutdown::Write).expect("a socket can be shut down");
    }

    /// Closes the sending side, and asserts that nothing more comes.
    #[track_caller]
    pub(crate) fn is_over(&mut self) {
        self.hang_up();
        assert_eq!(self.rest(), "");
    }

    /// Returns everything until the server closes the connection.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => {}
            // Closed with unread data.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the connection is still open: {error}"),
        }
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// Returns a POST request with a JSON body.
pub(crate) fn post(path: &str, body: &str) -> String {
    with_json("POST", path, body)
}

/// Returns a request with a JSON body.
pub(crate) fn with_json(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Adds a token to a message.
pub(crate) fn by(token: &str, message: &str) -> String {
    message.replacen("host: localhost", &format!("host: localhost\r\nauthorization: Bearer {token}"), 1)
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}
