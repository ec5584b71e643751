//! A RESP client for tests: it parses every reply, and detects the end of the connection.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::connect;

/// A whole reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// Creates a bulk string.
    pub(crate) fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    /// Creates an array of integers, such as the reply to `CL.THROTTLE`.
    pub(crate) fn integers(numbers: &[i64]) -> Value {
        Value::Array(numbers.iter().map(|number| Value::Integer(*number)).collect())
    }

    /// Returns the text of an error.
    pub(crate) fn error(&self) -> &str {
        match self {
            Value::Error(text) => text,
            other => panic!("expected an error, got {other:?}"),
        }
    }

    /// Returns the value of a name, in a map or in an array of alternating names and values.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        let name = Value::bulk(name);
        match self {
            Value::Map(pairs) => pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value),
            Value::Array(values) => values.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| &pair[1]),
            other => panic!("expected fields, got {other:?}"),
        }
    }

    /// Returns the text of a name.
    pub(crate) fn text(&self, name: &str) -> String {
        match self.field(name) {
            Some(Value::Bulk(text)) => String::from_utf8(text.clone()).expect("it is text"),
            other => panic!("expected a text as {name}, got {other:?} in {self:?}"),
        }
    }

    /// Returns the number of a name.
    pub(crate) fn number(&self, name: &str) -> i64 {
        match self.field(name) {
            Some(Value::Integer(number)) => *number,
            other => panic!("expected a number as {name}, got {other:?} in {self:?}"),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        Client { stream: BufReader::new(connect(address)) }
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the server reads");
    }

    /// Sends bytes. Returns false if the server has closed the connection.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Returns the same connection, for another thread to write to.
    pub(crate) fn writer(&self) -> TcpStream {
        self.stream.get_ref().try_clone().expect("a socket can be shared")
    }

    /// Closes the sending side.
    pub(crate) fn finish(&mut self) {
        self.stream.get_ref().shutdown(Shutdown::Write).expect("it is connected");
    }

    /// Sends one command, and returns its reply.
    pub(crate) fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        self.send(&request(words));
        self.read()
    }

    /// Sends one command of words separated by spaces, and returns its reply.
    pub(crate) fn say(&mut self, words: &str) -> Value {
        self.ask(&words.split(' ').collect::<Vec<_>>())
    }

    /// Reads the next reply.
    pub(crate) fn read(&mut self) -> Value {
        self.try_read().expect("a whole reply").expect("a reply before the end")
    }

    /// Reads the next reply. Returns `None` if the server has closed the connection, or an error if it is not a reply.
    pub(crate) fn try_read(&mut self) -> Result<Option<Value>, String> {
        let mut line = Vec::new();
        match self.stream.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
        let shown = || line.escape_ascii().to_string();
        let text = line.strip_suffix(b"\r\n").ok_or_else(|| format!("no line end: {}", shown()))?;
        let (kind, text) = text.split_first().ok_or_else(|| "an empty line".to_owned())?;
        if text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return Err(format!("a line within a line: {}", shown()));
        }
        let text = String::from_utf8(text.to_vec()).map_err(|_| format!("no text: {}", shown()))?;
        let number = || text.parse::<i64>().map_err(|_| format!("no number: {}", shown()));
        Ok(Some(match kind {
            b'+' => Value::Simple(text),
            b'-' => Value::Error(text),
            b':' => Value::Integer(number()?),
            b'_' => Value::Null,
            b'$' if text == "-1" => Value::Null,
            b'$' => Value::Bulk(self.bulk(number()?)?),
            b'*' => Value::Array(self.several(number()?)?),
            b'%' => {
                let flat = self.several(2 * number()?)?;
                let mut flat = flat.into_iter();
                let mut pairs = Vec::new();
                while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
                    pairs.push((name, value));
                }
                Value::Map(pairs)
            }
            _ => return Err(format!("no reply: {}", shown())),
        }))
    }

    fn bulk(&mut self, length: i64) -> Result<Vec<u8>, String> {
        let length = usize::try_from(length).map_err(|_| format!("a bulk of {length} bytes"))?;
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.split_off(length) == b"\r\n" { Ok(bytes) } else { Err("a bulk without an end".to_owned()) }
    }

    fn several(&mut self, count: i64) -> Result<Vec<Value>, String> {
        (0..count).map(|_| self.try_read()?.ok_or_else(|| "an array without an end".to_owned())).collect()
    }

    /// Reads all replies until the server closes the connection.
    pub(crate) fn read_to_end(&mut self) -> Result<Vec<Value>, String> {
        let mut values = Vec::new();
        while let Some(value) = self.try_read()? {
            values.push(value);
        }
        Ok(values)
    }
}

/// Returns the words as an array of bulk strings.
pub(crate) fn request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
