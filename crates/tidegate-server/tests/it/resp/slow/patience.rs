//! How long a client may be silent, and how long a request may take to arrive.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_server::settings::Bounds;

use super::{PATIENT, SOON, ask, running};
use crate::resp::raw::{address, connect, rest_of};
use crate::wire::Running;

/// Does something again and again until three have been cut off, one after the other, who sent only this.
fn until_three_are_cut_off(running: &Running, start: &[u8], mut again: impl FnMut()) {
    let are_cut_off = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                let stream = connect(address(running));
                (&stream).write_all(start).expect("the server reads");
                assert_eq!(rest_of(&stream), b"");
            }
            are_cut_off.store(true, Ordering::Relaxed);
        });
        while !are_cut_off.load(Ordering::Relaxed) {
            again();
        }
    });
}

#[test]
fn whoever_is_silent_is_cut_off_and_whoever_asks_is_not() {
    let running = running(Bounds { idle: SOON, ..PATIENT });
    let busy = connect(address(&running));
    until_three_are_cut_off(&running, b"", || ask(&busy, b"PING\r\n", b"+PONG\r\n"));
    ask(&busy, b"PING\r\n", b"+PONG\r\n");
    assert_eq!(rest_of(&busy), b"", "now it is silent, too");
}

#[test]
fn a_request_that_does_not_arrive_is_cut_off_wherever_it_stops() {
    let running = running(Bounds { arrival: SOON, ..PATIENT });
    let starts: [&[u8]; 6] =
        [b"*", b"*2\r\n", b"*2\r\n$4\r\nEC", b"*2\r\n$4\r\nECHO\r\n$200000\r\nab", b"PI", b"\"PING"];
    let streams = starts.map(|start| {
        let stream = connect(address(&running));
        ask(&stream, &[b"PING\r\n", start].concat(), b"+PONG\r\n");
        stream
    });
    for stream in streams {
        assert_eq!(rest_of(&stream), b"");
    }
}

#[test]
fn a_request_that_drips_is_cut_off_although_there_is_always_more_of_it() {
    let running = running(Bounds { arrival: SOON, ..PATIENT });
    let stream = connect(address(&running));
    stream.set_read_timeout(Some(SOON / 20)).expect("a socket can be told");
    let drops = (0..10_000).take_while(|_| {
        (&stream).write_all(b"x").is_ok()
            && (&stream).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
    assert!(drops.count() < 10_000);
}

#[test]
fn a_stream_of_requests_that_never_pauses_between_two_goes_on() {
    let running = running(Bounds { arrival: SOON, ..PATIENT });
    let stream = connect(address(&running));
    ask(&stream, b"PING\r\n*1\r\n$4\r\nPI", b"+PONG\r\n");
    // Each piece ends within a request, and no request takes long.
    until_three_are_cut_off(&running, b"*1\r\n", || ask(&stream, b"NG\r\n*1\r\n$4\r\nPI", b"+PONG\r\n"));
    ask(&stream, b"NG\r\n", b"+PONG\r\n");
}

#[test]
fn whoever_is_between_two_requests_has_the_longer_time() {
    let running = running(Bounds { arrival: SOON, ..PATIENT });
    let stream = connect(address(&running));
    ask(&stream, b"*1\r\n$4\r\nPI", b"");
    ask(&stream, b"NG\r\n", b"+PONG\r\n");
    until_three_are_cut_off(&running, b"*1\r\n", || {});
    ask(&stream, b"PING\r\n", b"+PONG\r\n");
}
