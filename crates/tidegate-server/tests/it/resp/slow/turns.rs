//! Whoever asks without end gets its turns, and no more than that.

use std::io::{self, Write};
use std::net::Shutdown;
use std::thread;

use super::{PATIENT, ask};
use crate::resp::raw::{Talk, address, connect};
use crate::wire::Running;

const PINGS: u64 = 20;
/// How often the server may show that it takes turns.
const ATTEMPTS: usize = 500;

/// Requests that fit between two of somebody else. Without turns there are thousands, as many as one read holds.
const MOST_BETWEEN: u64 = 200;

/// How many commands the server has answered, this one included.
fn answered(talk: &mut Talk) -> u64 {
    let told = talk.say("INFO");
    let count = told.split("total_commands_processed:").nth(1).and_then(|rest| rest.split("\r\n").next());
    count.and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
fn what_takes_long_is_not_done_without_end_while_others_wait() {
    let running = Running::bounded(PATIENT);
    let (greedy, other) = (connect(address(&running)), connect(address(&running)));
    let mut witness = Talk::new(&running);
    thread::scope(|scope| {
        scope.spawn(|| while (&greedy).write_all(&b"INFO\r\n".repeat(10_000)).is_ok() {});
        scope.spawn(|| io::copy(&mut &greedy, &mut io::sink()));
        while answered(&mut witness) < 1000 {}
        let mut between = || {
            let before = answered(&mut witness);
            for _ in 0..PINGS {
                ask(&other, b"PING\r\n", b"+PONG\r\n");
            }
            answered(&mut witness) - before
        };
        // While this thread is held up between two requests, the server goes on: what counts is the attempt in which
        // that was least. A server without turns has none in which twenty requests waited for so few.
        let is_fair = (0..ATTEMPTS).any(|_| between() < PINGS * MOST_BETWEEN);
        greedy.shutdown(Shutdown::Both).expect("it is connected");
        assert!(is_fair, "{ATTEMPTS} times, {PINGS} requests waited for {MOST_BETWEEN} others each or more");
    });
}
