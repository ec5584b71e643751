//! How a server takes something: told by what comes back, with and without a question behind it.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::thread;

use crate::resp::raw::{connect, rest_of};
use crate::wire::resp::{Client, Value, request};

/// A question behind an input, and the only answer to it.
const MARK: &str = "the mark";

/// How a server takes an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Says what is wrong, and ends the connection.
    CutOff,
    /// Ends the connection without a word.
    Silent,
    /// Says what is wrong with the last, and goes on.
    Refused,
    /// Answers, and goes on.
    Open,
    /// Says nothing, and goes on.
    Ignored,
    /// Takes it for the beginning of something.
    Waiting,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) class: Class,
    pub(super) replies: Vec<Value>,
}

/// Sends inputs to a server, and takes apart what comes back.
pub(super) struct Hearing {
    server: SocketAddr,
    echo: TcpListener,
    is_text: bool,
}

impl Hearing {
    /// Of a server whose errors are text.
    pub(super) fn of(server: SocketAddr) -> Hearing {
        let echo = TcpListener::bind("127.0.0.1:0").expect("a free port can be had");
        Hearing { server, echo, is_text: true }
    }

    /// Of one whose errors may be anything.
    pub(super) fn of_bytes(server: SocketAddr) -> Hearing {
        Hearing { is_text: false, ..Hearing::of(server) }
    }

    /// What comes back if this is all, and whether the connection would go on.
    pub(super) fn hear(&self, input: &[u8]) -> Heard {
        let alone = self.answers(input);
        let replies = self.frames(&alone).unwrap_or_else(|what| panic!("{what}: {}", shown(&alone)));
        let mark = request(&["ECHO", MARK]);
        let marked = self.answers(&[input, &mark].concat());
        let told = format!("${}\r\n{MARK}\r\n", MARK.len());
        let is_marked = marked.ends_with(told.as_bytes());
        if is_marked {
            // Figures may be others the second time, but there are as many answers.
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

    /// Whether the server ends the connection by itself. It waits for a client that does not end it either.
    fn is_closed_by(&self, input: &[u8]) -> bool {
        let mut client = Client::connect(self.server);
        input.first() == Some(&0x16) && client.try_send(input) && client.read_to_end() == Ok(Vec::new())
    }

    fn answers(&self, input: &[u8]) -> Vec<u8> {
        let stream = connect(self.server);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Whoever is cut off in the middle gets no further.
                if (&stream).write_all(input).is_ok() {
                    let _ = stream.shutdown(Shutdown::Write);
                }
            });
            rest_of(&stream)
        })
    }

    /// The replies that these bytes are.
    fn frames(&self, bytes: &[u8]) -> Result<Vec<Value>, String> {
        // Redis repeats bytes in its errors that are no text.
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
