//! Tests of clients that send requests and do not read replies.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::thread;

use tidegate_server::settings::Bounds;

use super::{PATIENT, SOON, ask};
use crate::resp::raw::{address, connect};
use crate::wire::Running;
use crate::wire::resp::request;

/// More bytes than all buffers on the path hold.
const FLOOD_BYTES: usize = 256 << 20;

/// Repeats a request without reading. Returns the number of bytes that were sent before the server closed the
/// connection.
fn flood(mut stream: &TcpStream, ask: &[u8]) -> usize {
    let batch = ask.repeat((1 << 20) / ask.len());
    let mut sent = 0;
    loop {
        match stream.write(&batch) {
            Ok(bytes) => sent += bytes,
            Err(error) => {
                let is_cut_off = matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
                assert!(is_cut_off, "{error} after {sent} bytes");
                return sent;
            }
        }
        assert!(sent < FLOOD_BYTES, "nothing holds it up");
    }
}

#[test]
fn a_client_that_does_not_read_is_blocked_and_disconnected_and_others_are_served() {
    let running = Running::bounded(Bounds { write_timeout: SOON, ..PATIENT });
    let asks = [
        b"PING\r\n".to_vec(),
        b"INFO\r\n".to_vec(),
        b"COMMAND DOCS\r\n".to_vec(),
        request(&["ECHO", &"x".repeat(100_000)]),
    ];
    let other = connect(address(&running));
    thread::scope(|scope| {
        let floods = asks.map(|ask| {
            let stream = connect(address(&running));
            scope.spawn(move || flood(&stream, &ask))
        });
        while floods.iter().any(|flood| !flood.is_finished()) {
            ask(&other, b"PING\r\n", b"+PONG\r\n");
        }
    });
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_either() {
    let running = Running::bounded(PATIENT);
    let stream = connect(address(&running));
    stream.set_write_timeout(Some(SOON)).expect("a socket option can be set");
    let batch = b"COMMAND DOCS\r\n".repeat(100_000);
    let mut sent = 0;
    while let Ok(bytes) = (&stream).write(&batch) {
        sent += bytes;
        assert!(sent < FLOOD_BYTES, "nothing holds it up");
    }
    ask(&connect(address(&running)), b"PING\r\n", b"+PONG\r\n");
}

#[test]
fn a_client_that_reads_late_gets_every_reply_in_order() {
    let running = Running::bounded(PATIENT);
    let stream = connect(address(&running));
    let count = 100_000;
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..count {
                (&stream).write_all(format!("ECHO {number}\r\n").as_bytes()).expect("the server reads");
            }
        });
        for number in 0..count {
            let number = number.to_string();
            ask(&stream, b"", format!("${}\r\n{number}\r\n", number.len()).as_bytes());
        }
    });
}
