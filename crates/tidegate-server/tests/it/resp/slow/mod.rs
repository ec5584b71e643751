//! Clients that take their time, take more than theirs, or have the wrong door.

mod patience;
mod places;
mod stop;
mod turns;
mod unread;
mod wrong_door;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_server::Settings;
use tidegate_server::settings::Bounds;

use super::raw::{address, connect};
use crate::wire::{Running, settings};

/// A bound that a test waits for.
const SOON: Duration = Duration::from_millis(200);
/// One that no test waits for.
const NEVER: Duration = Duration::from_secs(3600);

/// Nobody is cut off.
const PATIENT: Bounds = Bounds {
    max_connections: 10_000,
    max_unfinished: 256 << 20,
    idle: NEVER,
    arrival: NEVER,
    unread: NEVER,
    health: NEVER,
    grace: SOON,
};

fn running(bounds: Bounds) -> Running {
    Running::with(Settings { bounds, ..settings() })
}

/// Sends this, and reads an answer of this length.
fn ask(mut stream: &TcpStream, input: &[u8], answer: &[u8]) {
    stream.write_all(input).expect("the server reads");
    let mut told = vec![0; answer.len()];
    stream.read_exact(&mut told).expect("an answer");
    assert_eq!(told.escape_ascii().to_string(), answer.escape_ascii().to_string());
}

/// Whether somebody new is served.
fn is_served(running: &Running) -> bool {
    let stream = connect(address(running));
    let mut told = [0; 7];
    (&stream).write_all(b"PING\r\n").is_ok()
        && (&stream).read_exact(&mut told).is_ok()
        && told == *b"+PONG\r\n"
}
