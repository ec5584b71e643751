//! One connection of the load: a socket that does not wait, and what is not yet answered on it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Scanner, Tally};
use crate::stopwatch::instant;

const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How long a server may take no bytes.
const SEND_WITHIN: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) stream: TcpStream,
    scanner: Scanner,
    /// Requests of the closed loop that are not yet answered.
    pub(super) in_flight: u64,
    /// When these were sent.
    pub(super) sent_at: Instant,
    /// Requests of the open loop that were answered.
    pub(super) answered: u64,
}

impl Connection {
    pub(super) fn open(address: SocketAddr, scanner: Scanner) -> Result<Connection, String> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN);
        let stream = stream.and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| format!("no connection to {address}: {error}"))?;
        Ok(Connection { stream, scanner, in_flight: 0, sent_at: instant(), answered: 0 })
    }

    /// Sends all of it; what is prepared is far less than a socket holds, so this hardly ever waits.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => return Err(format!("not sent: {error}")),
            }
        }
        Ok(())
    }

    /// Reads what is there, once; how many replies became complete.
    pub(super) fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<u64, String> {
        let before = tally.replies;
        match self.stream.read(buffer) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => self.scanner.scan(&buffer[..count], tally)?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(format!("not received: {error}")),
        }
        Ok(tally.replies - before)
    }

    fn wait_for_room(&self) -> Result<(), String> {
        let mut sockets = [PollFd::new(&self.stream, PollFlags::OUT)];
        match poll(&mut sockets, Some(&SEND_WITHIN)) {
            Ok(0) => Err("the server takes no more requests".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
