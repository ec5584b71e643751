//! Bytes in, bytes out: what a client sends, and all that comes back.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

pub(crate) use crate::wire::connect;

use crate::wire::Running;
use crate::wire::resp::request;

/// All that the server answers to these bytes, which are all that it gets.
pub(crate) fn answers(running: &Running, input: &[u8]) -> Vec<u8> {
    let stream = connect(address(running));
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

/// All that comes until the connection ends, in whichever way.
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

/// A line of words, as an array of bulk strings.
pub(crate) fn array(line: &str) -> Vec<u8> {
    request(&line.split(' ').collect::<Vec<_>>())
}

/// What a server answers to one line of words after the other, as text: each is asked when the last was answered.
#[derive(Debug)]
pub(crate) struct Talk {
    stream: TcpStream,
}

/// What ends the answer to `ECHO` with this.
const MARK: &str = "this is the mark";

impl Talk {
    pub(crate) fn new(running: &Running) -> Talk {
        Talk { stream: connect(address(running)) }
    }

    /// In the third version of the protocol.
    pub(crate) fn in_version_3(running: &Running) -> Talk {
        let mut talk = Talk::new(running);
        let greeting = talk.say("HELLO 3");
        assert!(greeting.starts_with("%7\r\n$6\r\nserver\r\n"), "{greeting}");
        talk
    }

    /// Says words, and hears the whole answer.
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.send(&array(line))
    }

    /// The same with words of any bytes.
    pub(crate) fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        self.send(&request(words))
    }

    /// Sends bytes, and hears the whole answer: what comes before the answer to a question that has only one.
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
    /// And a client of RESP that hears every byte.
    pub(crate) fn with_raw(self) -> (Running, Talk) {
        let talk = Talk::new(&self);
        (self, talk)
    }
}
