//! Tests of the idle timeout and the request timeout.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_server::settings::Bounds;

use super::{PATIENT, SOON, ask, try_ask};
use crate::resp::raw::{address, connect, rest_of};
use crate::wire::Running;
use crate::wire::in_time::{HeldUp, Since, in_time};

/// Repeats a step until three connections, one after the other, that sent only `start` have been closed.
fn until_three_are_cut_off(
    running: &Running,
    start: &[u8],
    mut again: impl FnMut() -> Result<(), HeldUp>,
) -> Result<(), HeldUp> {
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
            again()?;
        }
        Ok(())
    })
}

/// A client that sends each request within a timeout of the one before.
struct Punctual {
    stream: TcpStream,
    bound: Duration,
    asked: Since,
}

impl Punctual {
    /// Opens a connection, and sends a first request.
    fn new(running: &Running, bound: Duration, input: &[u8], answer: &[u8]) -> Punctual {
        let (asked, stream) = (Since::now(), connect(address(running)));
        ask(&stream, input, answer);
        Punctual { stream, bound, asked }
    }

    fn ask(&mut self, input: &[u8], answer: &[u8]) -> Result<(), HeldUp> {
        let now = Since::now();
        let reply = try_ask(&self.stream, input, answer.len());
        self.asked.within(self.bound)?;
        assert_eq!(reply.expect("a client that asks in time is answered"), answer);
        self.asked = now;
        Ok(())
    }
}

#[test]
fn a_silent_client_is_disconnected_and_a_busy_one_is_not() {
    in_time(|idle| {
        let running = Running::bounded(Bounds { idle_timeout: idle, ..PATIENT });
        let mut busy = Punctual::new(&running, idle, b"", b"");
        until_three_are_cut_off(&running, b"", || busy.ask(b"PING\r\n", b"+PONG\r\n"))?;
        busy.ask(b"PING\r\n", b"+PONG\r\n")?;
        assert_eq!(rest_of(&busy.stream), b"", "now it is silent, too");
        Ok(())
    });
}

#[test]
fn a_request_that_does_not_arrive_is_cut_off_wherever_it_stops() {
    let running = Running::bounded(Bounds { request_timeout: SOON, ..PATIENT });
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
    let running = Running::bounded(Bounds { request_timeout: SOON, ..PATIENT });
    let stream = connect(address(&running));
    stream.set_read_timeout(Some(SOON / 20)).expect("a socket option can be set");
    let drops = (0..10_000).take_while(|_| {
        (&stream).write_all(b"x").is_ok()
            && (&stream).read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
    assert!(drops.count() < 10_000);
}

#[test]
fn a_stream_of_requests_that_never_pauses_between_two_goes_on() {
    in_time(|arrival| {
        let running = Running::bounded(Bounds { request_timeout: arrival, ..PATIENT });
        let mut busy = Punctual::new(&running, arrival, b"PING\r\n*1\r\n$4\r\nPI", b"+PONG\r\n");
        // Each piece ends within a request, and no request takes long.
        let more = b"NG\r\n*1\r\n$4\r\nPI";
        until_three_are_cut_off(&running, b"*1\r\n", || busy.ask(more, b"+PONG\r\n"))?;
        busy.ask(b"NG\r\n", b"+PONG\r\n")
    });
}

#[test]
fn between_two_requests_only_the_idle_timeout_runs() {
    in_time(|arrival| {
        let running = Running::bounded(Bounds { request_timeout: arrival, ..PATIENT });
        let mut silent = Punctual::new(&running, arrival, b"*1\r\n$4\r\nPI", b"");
        silent.ask(b"NG\r\n", b"+PONG\r\n")?;
        until_three_are_cut_off(&running, b"*1\r\n", || Ok(()))?;
        ask(&silent.stream, b"PING\r\n", b"+PONG\r\n");
        Ok(())
    });
}
