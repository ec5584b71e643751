//! Tests of slow clients, of greedy clients, and of clients that speak another protocol.

mod places;
mod stop;
mod timeouts;
mod turns;
mod unread;
mod wrong_door;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_server::settings::Bounds;

use super::raw::{address, connect};
use crate::wire::Running;

/// A timeout that a test waits for.
const SOON: Duration = Duration::from_millis(200);

/// No timeouts, except at shutdown.
const PATIENT: Bounds = Bounds { shutdown_timeout: SOON, ..crate::wire::PATIENT };

/// Sends bytes, and asserts the reply.
fn ask(stream: &TcpStream, input: &[u8], answer: &[u8]) {
    let reply = try_ask(stream, input, answer.len()).expect("the server answers");
    assert_eq!(reply.escape_ascii().to_string(), answer.escape_ascii().to_string());
}

/// Sends bytes, and returns a reply of this length, or an error if the connection is closed.
fn try_ask(mut stream: &TcpStream, input: &[u8], bytes: usize) -> io::Result<Vec<u8>> {
    stream.write_all(input)?;
    let mut reply = vec![0; bytes];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// Returns true if a new connection is served.
fn is_served(running: &Running) -> bool {
    let stream = connect(address(running));
    let mut reply = [0; 7];
    (&stream).write_all(b"PING\r\n").is_ok()
        && (&stream).read_exact(&mut reply).is_ok()
        && reply == *b"+PONG\r\n"
}
