//! Tests of `max_connections`.

use std::net::TcpStream;

use tidegate_server::settings::Bounds;

use super::{PATIENT, ask, is_served};
use crate::resp::raw::{address, connect, rest_of};
use crate::wire::Running;

const TOO_MANY: &str = "-ERR max number of clients reached\r\n";

fn for_three() -> Running {
    Running::bounded(Bounds { max_connections: 3, ..PATIENT })
}

fn served(running: &Running) -> TcpStream {
    let stream = connect(address(running));
    ask(&stream, b"PING\r\n", b"+PONG\r\n");
    stream
}

#[test]
fn max_connections_are_served_and_the_next_gets_an_error_and_is_closed() {
    let running = for_three();
    let three = [served(&running), served(&running), served(&running)];
    for _ in 0..3 {
        assert_eq!(String::from_utf8_lossy(&rest_of(&connect(address(&running)))), TOO_MANY);
    }
    for stream in &three {
        ask(stream, b"PING\r\n", b"+PONG\r\n");
    }
}

#[test]
fn a_connection_slot_is_free_again_however_the_client_left() {
    let running = for_three();
    let leave: [&dyn Fn(TcpStream); 4] = [
        &drop,
        &|stream| ask(&stream, b"QUIT\r\n", b"+OK\r\n"),
        &|stream| {
            ask(&stream, b"*x\r\n", b"-ERR Protocol error: invalid multibulk length\r\n");
            assert_eq!(rest_of(&stream), b"");
        },
        &|stream| stream.shutdown(std::net::Shutdown::Both).expect("it is connected"),
    ];
    let _two = [served(&running), served(&running)];
    for leave in leave {
        leave(served(&running));
        // The server may not have noticed yet.
        assert!((0..100_000).any(|_| is_served(&running)));
        assert!((0..100_000).any(|_| is_taken_in(&running)), "the place is free again");
    }
}

/// Returns true if a silent connection is accepted: the server sends nothing.
fn is_taken_in(running: &Running) -> bool {
    let mut client = running.resp();
    client.finish();
    client.read_to_end() == Ok(Vec::new())
}
