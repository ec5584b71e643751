//! Clients that take their time, take more than theirs, or have the wrong door.

mod patience;
mod places;
mod stop;
mod turns;
mod unread;
mod wrong_door;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_server::settings::Bounds;

use super::raw::{address, connect};
use crate::wire::Running;

/// A bound that a test waits for.
const SOON: Duration = Duration::from_millis(200);

/// Nobody is cut off until the server stops.
const PATIENT: Bounds = Bounds { grace: SOON, ..crate::wire::PATIENT };

/// Sends this, and reads an answer of this length.
fn ask(stream: &TcpStream, input: &[u8], answer: &[u8]) {
    let told = try_ask(stream, input, answer.len()).expect("the server answers");
    assert_eq!(told.escape_ascii().to_string(), answer.escape_ascii().to_string());
}

/// The same, if the connection lasts for so long.
fn try_ask(mut stream: &TcpStream, input: &[u8], bytes: usize) -> io::Result<Vec<u8>> {
    stream.write_all(input)?;
    let mut told = vec![0; bytes];
    stream.read_exact(&mut told)?;
    Ok(told)
}

/// Whether somebody new is served.
fn is_served(running: &Running) -> bool {
    let stream = connect(address(running));
    let mut told = [0; 7];
    (&stream).write_all(b"PING\r\n").is_ok()
        && (&stream).read_exact(&mut told).is_ok()
        && told == *b"+PONG\r\n"
}
