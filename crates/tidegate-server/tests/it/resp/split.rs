//! Tests that the replies to a session do not depend on how it is split on the way.

use std::io::Write;
use std::net::{Shutdown, TcpStream};

use conformance::random::Random;

use super::raw::{address, answers, connect, rest_of};
use crate::wire::Running;
use crate::wire::resp::{Client, request};

/// The number of random pairs of cuts, in addition to every single cut.
const PAIRS: u64 = 1000;

/// Returns a session of valid and invalid commands, as arrays and lines. It resets its keys first, so it can be
/// repeated.
fn session() -> Vec<u8> {
    let mut bytes = request(&["DEL", "a", "b", "c", "d", "e"]);
    bytes.extend(request(&["CL.THROTTLE", "a", "2", "1", "60"]));
    bytes.extend_from_slice(b"CL.THROTTLE a 2 1 60\r\ncl.throttle \"a\" 2 1 60 2\n");
    bytes.extend(request(&["TG.TAKE", "b", "LIMIT", "10/60s burst 12", "COST", "5"]));
    bytes.extend(request(&["TG.TAKE", "b", "LIMIT", "10/60s burst 12", "COST", "50"]));
    bytes.extend_from_slice(b"*0\r\n\r\n*-1\r\nPING\r\n");
    bytes.extend(request(&[&b"ECHO"[..], b"a\r\n+OK\r\n\0\xff"]));
    bytes.extend(request(&["TG.ADMIT", "COST", "2", "user", "ana", "path", "/x"]));
    bytes.extend(request(&["TG.TAKEALL", "2", "e", "LIMIT", "9/60s", "c", "LIMIT", "1/60s"]));
    bytes.extend(request(&["TG.ADJUST", "b", "LIMIT", "10/60s burst 12", "-2"]));
    bytes.extend_from_slice(b"NOTHING 'of this' \"\\x41\\r\\n\"\r\nTG.PEEK d LIMIT 1/s COST x\r\n");
    bytes.extend(request(&["TG.TAKE", "d", "LIMIT", "3/60s fixed-window"]));
    bytes.extend(request(&["CLIENT", "SETNAME", "me"]));
    bytes.extend(request(&["HELLO", "5"]));
    bytes.extend(request(&["TG.PEEK", "d", "LIMIT", "3/60s fixed-window"]));
    bytes.extend_from_slice(
        b"CONFIG GET save\r\nRESET\r\nDEL a nothing\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPINGx\r\nPING\r\n",
    );
    bytes
}

/// Returns the replies to a session sent at once, after its keys have been used.
fn at_once(running: &Running, session: &[u8]) -> String {
    answers(running, session);
    shown(&answers(running, session))
}

/// Sends a session in pieces. The reply to a later request of another client proves that a piece was read.
fn in_pieces(running: &Running, witness: &mut Client, pieces: &[&[u8]]) -> Vec<u8> {
    let stream = connect(address(running));
    for piece in pieces {
        // The write fails if the server closes the connection early.
        if (&stream).write_all(piece).is_err() {
            break;
        }
        witness.say("PING");
    }
    finish(&stream);
    rest_of(&stream)
}

fn finish(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[test]
fn a_session_that_is_cut_anywhere_is_answered_as_if_it_came_at_once() {
    let running = Running::start();
    let (session, mut witness) = (session(), running.resp());
    let whole = at_once(&running, &session);
    assert!(whole.ends_with(r"-ERR Protocol error: expected CRLF after a bulk string\r\n"), "{whole}");
    for cut in 0..=session.len() {
        let (first, rest) = session.split_at(cut);
        assert_eq!(shown(&in_pieces(&running, &mut witness, &[first, rest])), whole, "cut at {cut}");
    }
}

#[test]
fn a_session_that_is_cut_twice_is_answered_as_if_it_came_at_once() {
    let running = Running::start();
    let (session, mut witness) = (session(), running.resp());
    let whole = at_once(&running, &session);
    let seed = Random::seed_from_environment();
    println!("TIDEGATE_SEED={seed}");
    let mut random = Random::new(seed);
    for _ in 0..PAIRS {
        let first = random.between(0, session.len() as u64) as usize;
        let second = random.between(first as u64, session.len() as u64) as usize;
        let pieces = [&session[..first], &session[first..second], &session[second..]];
        let replies = in_pieces(&running, &mut witness, &pieces);
        assert_eq!(shown(&replies), whole, "cut at {first} and {second}, TIDEGATE_SEED={seed}");
    }
}

#[test]
fn a_session_that_comes_byte_by_byte_is_answered_as_if_it_came_at_once() {
    let running = Running::start();
    let (session, mut witness) = (session(), running.resp());
    let whole = at_once(&running, &session);
    let bytes: Vec<&[u8]> = session.chunks(1).collect();
    assert_eq!(shown(&in_pieces(&running, &mut witness, &bytes)), whole);
}
