//! Parses replies of a server in RESP2.
//!
//! The parser accepts what a server of this project sends, and rejects everything else as another protocol.
//! Announced lengths are bounded before memory is allocated.

use std::io::{self, BufRead, Read as _};

/// The longest text in a reply, in bytes.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// The maximum number of entries of a list.
const MAX_ENTRIES: u64 = 1024;

/// One reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RespReply {
    /// A simple string or a bulk string.
    Text(String),
    /// An integer.
    Number(i64),
    /// A null bulk string.
    Nothing,
    /// An array without nested arrays.
    List(Vec<RespReply>),
    /// An error reply, with its code word.
    Error(String),
}

impl RespReply {
    /// Reads one reply. A nested list is an error.
    pub(super) fn read(stream: &mut impl BufRead) -> io::Result<RespReply> {
        let (kind, line) = head(stream)?;
        if kind != b'*' {
            return simple(kind, line, stream);
        }
        let entries = length(&line, MAX_ENTRIES)?.unwrap_or(0);
        let entries = (0..entries).map(|_| {
            let (kind, line) = head(stream)?;
            simple(kind, line, stream)
        });
        Ok(RespReply::List(entries.collect::<io::Result<_>>()?))
    }
}

/// Reads a line, and splits off its first byte, the type of the reply.
fn head(stream: &mut impl BufRead) -> io::Result<(u8, String)> {
    let mut line = Vec::new();
    stream.take(MAX_TEXT_BYTES).read_until(b'\n', &mut line)?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        return Err(if line.is_empty() { io::ErrorKind::UnexpectedEof.into() } else { other_protocol() });
    };
    let (kind, rest) = line.split_first().ok_or_else(other_protocol)?;
    Ok((*kind, String::from_utf8_lossy(rest).into_owned()))
}

/// Reads the rest of a reply that is not an array.
fn simple(kind: u8, line: String, stream: &mut impl BufRead) -> io::Result<RespReply> {
    match kind {
        b'+' => Ok(RespReply::Text(line)),
        b'-' => Ok(RespReply::Error(line)),
        b':' => line.parse().map(RespReply::Number).map_err(|_| other_protocol()),
        b'$' => match length(&line, MAX_TEXT_BYTES)? {
            Some(bytes) => text(bytes, stream),
            None => Ok(RespReply::Nothing),
        },
        _ => Err(other_protocol()),
    }
}

/// Reads a bulk string of this length, and its line end.
fn text(bytes: u64, stream: &mut impl BufRead) -> io::Result<RespReply> {
    let mut text = Vec::new();
    stream.take(bytes + 2).read_to_end(&mut text)?;
    if text.len() as u64 != bytes + 2 || !text.ends_with(b"\r\n") {
        return Err(other_protocol());
    }
    text.truncate(text.len() - 2);
    Ok(RespReply::Text(String::from_utf8_lossy(&text).into_owned()))
}

/// Parses a length; -1 is `None`.
fn length(line: &str, most: u64) -> io::Result<Option<u64>> {
    match line.parse() {
        Ok(-1) => Ok(None),
        Ok(length) => {
            u64::try_from(length).ok().filter(|length| *length <= most).map(Some).ok_or_else(other_protocol)
        }
        Err(_) => Err(other_protocol()),
    }
}

/// Returns the error about bytes that are not RESP.
fn other_protocol() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it does not speak RESP")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<RespReply> {
        RespReply::read(&mut io::Cursor::new(bytes))
    }

    #[test]
    fn every_kind_of_answer_is_read() {
        let text = |text: &str| RespReply::Text(text.to_owned());
        for (bytes, expected) in [
            ("+OK\r\n", text("OK")),
            ("-ERR no\r\n", RespReply::Error("ERR no".to_owned())),
            (":-1\r\n", RespReply::Number(-1)),
            ("$2\r\na\n\r\n", text("a\n")),
            ("$-1\r\n", RespReply::Nothing),
            ("*-1\r\n", RespReply::List(vec![])),
            ("*2\r\n$1\r\na\r\n:7\r\n", RespReply::List(vec![text("a"), RespReply::Number(7)])),
        ] {
            assert_eq!(read(bytes.as_bytes()).unwrap(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn anything_else_is_another_protocol() {
        for bytes in [
            "HTTP/1.1 400 Bad Request\r\n",
            "\r\n",
            "+OK\n",
            ":x\r\n",
            "$1\r\nab\r\n",
            "$9\r\na\r\n",
            "$-2\r\n",
            "$1048577\r\n",
            "*1025\r\n",
            "*1\r\n*1\r\n:1\r\n",
            "*x\r\n",
        ] {
            assert_eq!(read(bytes.as_bytes()).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }

    #[test]
    fn an_end_before_the_answer_is_an_end() {
        for bytes in ["", "*1\r\n"] {
            assert_eq!(read(bytes.as_bytes()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{bytes:?}");
        }
    }
}
