//! One connection to a server, one question at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Begins, Reply, encode, reply};

/// How long a server may take to answer us.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection of our own, to look at servers and to set them up.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    /// Connects with ten seconds of max wait for everything.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        Connection::with_timeout(address, TIMEOUT)
    }

    /// Connects, and waits no longer than this for it and for each reply.
    pub fn with_timeout(address: SocketAddr, timeout: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        let connection = Connection { stream, read: Vec::new() };
        connection.set_timeout(timeout)?;
        Ok(connection)
    }

    /// From now on waits no longer than this for each reply.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(timeout))?;
        self.stream.set_write_timeout(Some(timeout))
    }

    /// Asks, and waits for the reply; a refusal is a reply.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Reply> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        self.call_bytes(&words)
    }

    /// Asks with any bytes.
    pub fn call_bytes(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        self.send(words)?;
        self.receive()
    }

    /// Asks without waiting.
    pub fn send(&mut self, words: &[&[u8]]) -> io::Result<()> {
        self.stream.write_all(&encode(words))
    }

    /// Waits for the next reply.
    pub fn receive(&mut self) -> io::Result<Reply> {
        loop {
            match reply(&self.read) {
                Begins::Whole(reply, length) => {
                    self.read.drain(..length);
                    return Ok(reply);
                }
                Begins::Foreign => return Err(ErrorKind::InvalidData.into()),
                Begins::Part => {}
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.read.extend_from_slice(&bytes[..count]),
            }
        }
    }
}
