//! Tests of shutdown: every request that was read is answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use tidegate_server::settings::Bounds;

use super::{PATIENT, SOON, ask};
use crate::resp::raw::{address, connect, rest_of};
use crate::wire::{NEVER, Running};

/// A command with a long reply, and bytes that occur once in each reply.
const ASK: &[u8] = b"COMMAND DOCS\r\n";
const FIRST: &[u8] = b"$11\r\ncl.throttle\r\n";

#[test]
fn at_shutdown_idle_connections_are_closed_and_new_ones_are_denied() {
    let running = Running::bounded(Bounds { shutdown_timeout: NEVER, ..PATIENT });
    let (silent, halfway) = (connect(address(&running)), connect(address(&running)));
    ask(&silent, b"PING\r\n", b"+PONG\r\n");
    ask(&halfway, b"PING\r\n*1\r\n$4\r\nPI", b"+PONG\r\n");
    let address = address(&running);
    running.server.stop();
    assert_eq!((rest_of(&silent), rest_of(&halfway)), (Vec::new(), Vec::new()));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn requests_that_were_read_are_answered_at_shutdown() {
    let running = Running::bounded(Bounds { shutdown_timeout: NEVER, ..PATIENT });
    let stream = connect(address(&running));
    // The requests fit in one read of the server. The replies exceed its own buffer and those of the sockets.
    let asks = 60_000 / ASK.len();
    (&stream).write_all(&ASK.repeat(asks)).expect("the server reads");
    let mut first = [0; 1];
    (&stream).read_exact(&mut first).expect("an answer");
    thread::scope(|scope| {
        scope.spawn(|| running.server.stop());
        let replies = rest_of(&stream);
        assert_eq!(replies.windows(FIRST.len()).filter(|part| *part == FIRST).count(), asks);
        assert!(replies.ends_with(b"$10\r\nconnection\r\n"));
    });
}

#[test]
fn a_client_that_does_not_read_does_not_delay_shutdown() {
    let running = Running::bounded(Bounds { shutdown_timeout: SOON, ..PATIENT });
    let stream = connect(address(&running));
    stream.set_write_timeout(Some(SOON)).expect("a socket option can be set");
    while (&stream).write_all(&ASK.repeat(10_000)).is_ok() {}
    running.server.stop();
}
