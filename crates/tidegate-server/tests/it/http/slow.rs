//! Whoever is too slow is cut off, and nobody else.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_server::settings::Bounds;

use super::{LONG, SHORT, with_bounds};
use crate::wire::http::{Talk, post};

const TAKE: &str = r#"{"key":"ana","limit":"1000/s"}"#;

/// Only what has to arrive is short of time.
const ARRIVAL: Bounds = Bounds {
    max_connections: 100,
    max_unfinished: 256 << 20,
    idle: LONG,
    arrival: SHORT,
    unread: LONG,
    health: LONG,
    grace: LONG,
};

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let running = with_bounds(ARRIVAL);
    assert_eq!(Talk::to(&running).rest(), "");
}

#[test]
fn half_a_head_is_answered_when_its_time_is_over_and_cut_off() {
    let running = with_bounds(ARRIVAL);
    let mut talk = Talk::to(&running);
    let answer = talk.ask("POST /v1/take HTTP/1.1\r\nho");
    assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
    assert!(answer.detail().contains("took too long to arrive"));
    talk.hang_up();
    assert_eq!(talk.rest(), "");
}

#[test]
fn half_a_head_after_a_request_is_cut_off_as_well() {
    let running = with_bounds(ARRIVAL);
    let mut talk = Talk::to(&running);
    assert_eq!(talk.get("/livez").status, 200);
    assert_eq!(talk.ask("GET /livez HTTP/1.1\r\nho").status, 408);
}

#[test]
fn a_head_that_comes_byte_by_byte_gets_no_more_time_by_it() {
    let running = with_bounds(ARRIVAL);
    let mut talk = Talk::to(&running);
    talk.send("GET /livez HTTP/1.1\r\nx: ");
    let (mut sender, is_answered) = (talk.writer(), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_answered.load(Ordering::Relaxed) && sender.write_all(b"x").is_ok() {
                // Between two bytes there is time for a request of somebody else.
                assert_eq!(Talk::to(&running).get("/livez").status, 200);
            }
        });
        assert_eq!(talk.answer().status, 408);
        is_answered.store(true, Ordering::Relaxed);
    });
}

#[test]
fn half_a_body_is_answered_when_its_time_is_over_and_cut_off() {
    let running = with_bounds(ARRIVAL);
    let whole = post("/v1/take", TAKE);
    for message in [
        &whole[..whole.len() - 1],
        &whole.replace("content-length: 30", "transfer-encoding: chunked").replace(TAKE, "5\r\n{\"ke"),
        &whole.replace(TAKE, "").replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n"),
    ] {
        let mut talk = Talk::to(&running);
        talk.send(message);
        let mut answer = talk.answer();
        if answer.status == 100 {
            answer = talk.answer();
        }
        assert_eq!((answer.status, answer.field("connection")), (408, Some("close")), "{message}");
        assert!(answer.detail().contains("the body took too long"));
        talk.hang_up();
        assert_eq!(talk.rest(), "");
    }
}

#[test]
fn a_connection_that_was_served_may_be_silent_for_longer_than_a_request_may_take() {
    let running = with_bounds(ARRIVAL);
    let mut silent = Talk::to(&running);
    assert_eq!(silent.post("/v1/take", TAKE).status, 200);
    // By when a connection that began later has been closed, more than that time has passed.
    for _ in 0..3 {
        assert_eq!(Talk::to(&running).rest(), "");
        assert_eq!(silent.post("/v1/take", TAKE).status, 200);
    }
}

#[test]
fn a_connection_that_is_silent_for_too_long_is_closed() {
    let running = with_bounds(Bounds { idle: SHORT, arrival: LONG, ..ARRIVAL });
    let mut talk = Talk::to(&running);
    for _ in 0..3 {
        assert_eq!(talk.post("/v1/take", TAKE).status, 200);
    }
    assert_eq!(talk.rest(), "");
}

#[test]
fn a_client_that_does_not_read_its_answers_is_cut_off() {
    let running = with_bounds(Bounds { unread: SHORT, ..Bounds::default() });
    let mut talk = Talk::to(&running);
    let many = crate::wire::http::get("/openapi.json").repeat(100);
    // Sooner or later neither side takes anything any more, and then the server is gone.
    while talk.try_send(&many).is_ok() {}
    assert_eq!(Talk::to(&running).get("/livez").status, 200);
}
