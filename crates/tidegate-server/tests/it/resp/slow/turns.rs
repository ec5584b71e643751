//! Tests of fairness: a client that pipelines without end does not starve another.

use std::io::{self, Write};
use std::net::Shutdown;
use std::thread;

use super::{PATIENT, ask};
use crate::resp::raw::{Talk, address, connect};
use crate::wire::Running;

const PINGS: u64 = 20;
/// The maximum number of attempts to observe fairness.
const ATTEMPTS: usize = 500;

/// The maximum number of requests between two of another client. Without fairness one read holds thousands.
const MOST_BETWEEN: u64 = 200;

/// Returns the number of commands that the server has answered, including this one.
fn answered(talk: &mut Talk) -> u64 {
    let info = talk.say("INFO");
    let count = info.split("total_commands_processed:").nth(1).and_then(|rest| rest.split("\r\n").next());
    count.and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
fn long_work_is_interrupted_for_other_connections() {
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
        // While this thread is suspended between two requests, the server goes on. So the best attempt counts. An
        // unfair server has no attempt in which twenty requests waited for so few others.
        let is_fair = (0..ATTEMPTS).any(|_| between() < PINGS * MOST_BETWEEN);
        greedy.shutdown(Shutdown::Both).expect("it is connected");
        assert!(is_fair, "{ATTEMPTS} times, {PINGS} requests waited for {MOST_BETWEEN} others each or more");
    });
}
