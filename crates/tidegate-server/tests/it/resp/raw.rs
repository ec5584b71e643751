//! A RESP client for raw bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

pub(crate) use crate::wire::connect;

use crate::wire::Running;
use crate::wire::resp::request;

/// Sends these bytes, closes the sending side, and returns all replies.
pub(crate) fn answers(running: &Running, input: &[u8]) -> Vec<u8> {
    let stream = connect(address(running));
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

/// Returns all bytes until the connection is closed or reset.
pub(crate) fn rest_of(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => {
            panic!("{error} after {}", bytes.escape_ascii())
        }
        _ => bytes,
    }
}

pub(crate) fn address(running: &Running) -> SocketAddr {
    running.server.resp().expect("it speaks RESP")
}

/// Returns a line of words as an array of bulk strings.
pub(crate) fn array(line: &str) -> Vec<u8> {
    request(&line.split(' ').collect::<Vec<_>>())
}

/// A connection for one request at a time, with replies as text.
#[derive(Debug)]
pub(crate) struct Talk {
    stream: TcpStream,
}

/// The text of the `ECHO` command after each request.
const MARK: &str = "this is the mark";

impl Talk {
    pub(crate) fn new(running: &Running) -> Talk {
        Talk { stream: connect(address(running)) }
    }

    /// Opens a connection in RESP3.
    pub(crate) fn in_version_3(running: &Running) -> Talk {
        let mut talk = Talk::new(running);
        let greeting = talk.say("HELLO 3");
        assert!(greeting.starts_with("%7\r\n$6\r\nserver\r\n"), "{greeting}");
        talk
    }

    /// Sends words, and returns the whole reply.
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.send(&array(line))
    }

    /// Sends words of any bytes, and returns the whole reply.
    pub(crate) fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        self.send(&request(words))
    }

    /// Sends bytes, and returns the whole reply: everything before the reply to an `ECHO` after them.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> String {
        let marked = [bytes, &request(&["ECHO", MARK])].concat();
        self.stream.write_all(&marked).expect("the server reads");
        let end = format!("${}\r\n{MARK}\r\n", MARK.len());
        let mut heard = Vec::new();
        while !heard.ends_with(end.as_bytes()) {
            let mut piece = [0; 4096];
            let bytes = self.stream.read(&mut piece).expect("an answer");
            assert!(bytes > 0, "the connection ended after {}", heard.escape_ascii());
            heard.extend_from_slice(&piece[..bytes]);
        }
        heard.truncate(heard.len() - end.len());
        String::from_utf8(heard).expect("text")
    }
}

impl Running {
    /// Adds a RESP client for raw bytes.
    pub(crate) fn with_raw(self) -> (Running, Talk) {
        let talk = Talk::new(&self);
        (self, talk)
    }
}
