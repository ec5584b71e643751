//! Tests of timeouts: a slow client is disconnected, and no other.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tidegate_server::settings::Bounds;

use crate::wire::http::{Answer, Talk, get, post};
use crate::wire::in_time::{HeldUp, Since, in_time};
use crate::wire::{PATIENT, Running};

const TAKE: &str = r#"{"key":"ana","limit":"1000/s"}"#;

/// A timeout that a test waits for.
pub(super) const SHORT: Duration = Duration::from_millis(250);

/// The maximum number of further bytes of a head.
const DROPS: usize = 8 << 10;

/// Starts a server with this request timeout and no other.
fn hasty(arrival: Duration) -> Running {
    Running::bounded(Bounds { request_timeout: arrival, ..PATIENT })
}

/// Returns a connection that has sent a message within the timeout.
fn sent(running: &Running, arrival: Duration, message: &str) -> Result<Talk, HeldUp> {
    let begin = Since::now();
    let mut talk = Talk::to(running);
    let is_sent = talk.try_send(message);
    begin.within(arrival)?;
    is_sent.expect("the server reads what comes in time");
    Ok(talk)
}

/// Returns a connection that was answered within the timeout, and the reply.
fn answered(running: &Running, arrival: Duration, message: &str) -> Result<(Talk, Answer), HeldUp> {
    let begin = Since::now();
    let mut talk = Talk::to(running);
    let answer = talk.ask_if_open(message);
    begin.within(arrival)?;
    Ok((talk, answer.expect("what comes in time is answered")))
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let running = hasty(SHORT);
    assert_eq!(Talk::to(&running).rest(), "");
}

#[test]
fn half_a_head_is_answered_when_its_time_is_over_and_cut_off() {
    in_time(|arrival| {
        let running = hasty(arrival);
        let mut talk = sent(&running, arrival, "POST /v1/take HTTP/1.1\r\nho")?;
        let answer = talk.answer();
        assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
        assert!(answer.detail().contains("took too long to arrive"));
        talk.is_over();
        Ok(())
    });
}

#[test]
fn half_a_head_after_a_request_is_cut_off_as_well() {
    in_time(|arrival| {
        let running = hasty(arrival);
        let (mut talk, answer) = answered(&running, arrival, &get("/livez"))?;
        assert_eq!(answer.status, 200);
        assert_eq!(talk.ask("GET /livez HTTP/1.1\r\nho").status, 408);
        Ok(())
    });
}

#[test]
fn a_head_that_comes_byte_by_byte_gets_no_more_time_by_it() {
    in_time(|arrival| {
        let running = hasty(arrival);
        let mut talk = sent(&running, arrival, "GET /livez HTTP/1.1\r\nx: ")?;
        let (mut sender, is_answered) = (talk.writer(), AtomicBool::new(false));
        thread::scope(|threads| {
            threads.spawn(|| {
                let mut other = running.resp();
                for _ in 0..DROPS {
                    if is_answered.load(Ordering::Relaxed) || sender.write_all(b"x").is_err() {
                        break;
                    }
                    // The request of another client separates two bytes in time.
                    other.say("PING");
                }
            });
            assert_eq!(talk.answer().status, 408);
            is_answered.store(true, Ordering::Relaxed);
        });
        Ok(())
    });
}

#[test]
fn half_a_body_is_answered_when_its_time_is_over_and_cut_off() {
    let whole = post("/v1/take", TAKE);
    for message in [
        &whole[..whole.len() - 1],
        &whole.replace("content-length: 30", "transfer-encoding: chunked").replace(TAKE, "5\r\n{\"ke"),
        &whole.replace(TAKE, "").replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n"),
    ] {
        in_time(|arrival| {
            let running = hasty(arrival);
            let mut talk = sent(&running, arrival, message)?;
            let mut answer = talk.answer();
            if answer.status == 100 {
                answer = talk.answer();
            }
            assert_eq!((answer.status, answer.field("connection")), (408, Some("close")), "{message}");
            assert!(answer.detail().contains("the body took too long"));
            talk.is_over();
            Ok(())
        });
    }
}

#[test]
fn a_connection_that_was_served_may_be_silent_for_longer_than_a_request_may_take() {
    in_time(|arrival| {
        let running = hasty(arrival);
        let (mut silent, answer) = answered(&running, arrival, &post("/v1/take", TAKE))?;
        assert_eq!(answer.status, 200);
        // When a connection that was opened later has been closed, the timeout has passed.
        for _ in 0..3 {
            assert_eq!(Talk::to(&running).rest(), "");
            assert_eq!(silent.post("/v1/take", TAKE).status, 200);
        }
        Ok(())
    });
}

#[test]
fn a_connection_that_is_silent_for_too_long_is_closed() {
    in_time(|idle| {
        let (_running, mut talk) = Running::bounded(Bounds { idle_timeout: idle, ..PATIENT }).with_http();
        let mut last = Since::now();
        for _ in 0..3 {
            let (now, answer) = (Since::now(), talk.ask_if_open(post("/v1/take", TAKE)));
            last.within(idle)?;
            assert_eq!(answer.expect("what comes in time is answered").status, 200);
            last = now;
        }
        assert_eq!(talk.rest(), "");
        Ok(())
    });
}

#[test]
fn a_client_that_does_not_read_its_answers_is_cut_off() {
    let (running, mut talk) = Running::bounded(Bounds { write_timeout: SHORT, ..PATIENT }).with_http();
    let many = get("/openapi.json").repeat(100);
    // Eventually both buffers are full, and the server closes the connection.
    while talk.try_send(&many).is_ok() {}
    assert_eq!(Talk::to(&running).get("/livez").status, 200);
}
