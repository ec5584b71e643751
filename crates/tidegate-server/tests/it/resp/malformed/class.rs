//! Classifies the reaction of a server to an input, from the replies with and without a command after it.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::thread;

use crate::resp::raw::{connect, rest_of};
use crate::wire::resp::{Client, Value, request};

/// The text of the `ECHO` command after an input.
const MARK: &str = "the mark";

/// The reaction of a server to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// An error reply, then a closed connection.
    CutOff,
    /// A closed connection without a reply.
    Silent,
    /// An error reply to the last command; the connection stays open.
    Refused,
    /// A reply; the connection stays open.
    Open,
    /// No reply; the connection stays open.
    Ignored,
    /// The input is incomplete, and the server waits for more.
    Waiting,
}

/// The class and the replies.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) class: Class,
    pub(super) replies: Vec<Value>,
}

/// A probe that sends inputs to a server and parses its replies.
pub(super) struct Hearing {
    server: SocketAddr,
    echo: TcpListener,
    is_text: bool,
}

impl Hearing {
    /// Creates a probe of a server whose errors are text.
    pub(super) fn of(server: SocketAddr) -> Hearing {
        let echo = TcpListener::bind("127.0.0.1:0").expect("a free port can be had");
        Hearing { server, echo, is_text: true }
    }

    /// Creates a probe of a server whose errors may contain any bytes.
    pub(super) fn of_bytes(server: SocketAddr) -> Hearing {
        Hearing { is_text: false, ..Hearing::of(server) }
    }

    /// Returns the replies to an input, and its class.
    pub(super) fn hear(&self, input: &[u8]) -> Heard {
        let alone = self.answers(input);
        let replies = self.frames(&alone).unwrap_or_else(|what| panic!("{what}: {}", shown(&alone)));
        let mark = request(&["ECHO", MARK]);
        let marked = self.answers(&[input, &mark].concat());
        let echoed = format!("${}\r\n{MARK}\r\n", MARK.len());
        let is_marked = marked.ends_with(echoed.as_bytes());
        if is_marked {
            // Numbers can differ the second time, but the number of replies cannot.
            let again = self.frames(&marked).unwrap_or_else(|what| panic!("{what}: {}", shown(&marked)));
            assert_eq!(again.len(), replies.len() + 1, "{} and {}", shown(&alone), shown(&marked));
        }
        let class = match (is_marked, replies.last()) {
            (true, None) => Class::Ignored,
            (true, Some(Value::Error(_))) => Class::Refused,
            (true, Some(_)) => Class::Open,
            (false, Some(Value::Error(_))) => Class::CutOff,
            (false, _) if marked == alone && self.is_closed_by(input) => Class::Silent,
            (false, _) => Class::Waiting,
        };
        Heard { class, replies }
    }

    /// Returns true if the server closes the connection although the client keeps it open.
    fn is_closed_by(&self, input: &[u8]) -> bool {
        let mut client = Client::connect(self.server);
        input.first() == Some(&0x16) && client.try_send(input) && client.read_to_end() == Ok(Vec::new())
    }

    fn answers(&self, input: &[u8]) -> Vec<u8> {
        let stream = connect(self.server);
        thread::scope(|scope| {
            scope.spawn(|| {
                // The write fails if the server closes the connection early.
                if (&stream).write_all(input).is_ok() {
                    let _ = stream.shutdown(Shutdown::Write);
                }
            });
            rest_of(&stream)
        })
    }

    /// Parses these bytes as replies.
    fn frames(&self, bytes: &[u8]) -> Result<Vec<Value>, String> {
        // Redis repeats non-text bytes in its errors.
        let plain: Vec<u8> =
            bytes.iter().map(|byte| if self.is_text || byte.is_ascii() { *byte } else { b'?' }).collect();
        let address = self.echo.local_addr().expect("it listens");
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = self.echo.accept().expect("a client comes");
                stream.write_all(&plain).expect("it reads");
            });
            Client::connect(address).read_to_end()
        })
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(400)].escape_ascii().to_string()
}
