//! Tests of connections: many requests on one, their maximum number, and their end.

use std::net::TcpStream;
use std::thread;

use tidegate_server::Settings;
use tidegate_server::settings::Bounds;

use crate::wire::http::{Talk, get, post};
use crate::wire::{PATIENT, Running, settings};

const TAKE: &str = r#"{"key":"ana","limit":"1000/h"}"#;

#[test]
fn a_connection_serves_one_request_after_another() {
    let (_running, mut talk) = Running::start().with_http();
    for left in (990..1000).rev() {
        assert_eq!(talk.post("/v1/take", TAKE).json()["remaining"], left);
        assert_eq!(talk.get("/livez").status, 200);
        assert_eq!(talk.get("/nowhere").status, 404);
    }
}

#[test]
fn requests_may_be_sent_without_waiting_and_are_answered_in_order() {
    let (_running, mut talk) = Running::start().with_http();
    talk.send(post("/v1/take", TAKE).repeat(300) + &get("/nowhere") + &post("/v1/peek", TAKE));
    for left in (700..1000).rev() {
        assert_eq!(talk.answer().json()["remaining"], left);
    }
    assert_eq!(talk.answer().status, 404);
    assert_eq!(talk.answer().json()["remaining"], 700);
}

#[test]
fn a_request_may_come_in_any_pieces() {
    let (_running, mut talk) = Running::start().with_http();
    let message = post("/v1/take", TAKE);
    for piece in message.as_bytes().chunks(1) {
        talk.send(piece);
    }
    assert_eq!(talk.answer().json()["remaining"], 999);
    let (first, second) = message.split_at(message.len() - 7);
    talk.send(format!("{message}{first}"));
    assert_eq!(talk.answer().json()["remaining"], 998);
    assert_eq!(talk.ask(second).json()["remaining"], 997);
}

#[test]
fn requests_before_an_invalid_one_are_answered() {
    let (_running, mut talk) = Running::start().with_http();
    talk.send(post("/v1/take", TAKE).repeat(2) + "garbage\r\n\r\n");
    assert_eq!(talk.answer().json()["remaining"], 999);
    assert_eq!(talk.answer().json()["remaining"], 998);
    let answer = talk.answer();
    assert_eq!((answer.status, answer.field("connection")), (400, Some("close")));
    talk.is_over();
}

#[test]
fn an_unused_body_is_skipped_and_the_connection_stays_open() {
    let (_running, mut talk) = Running::start().with_http();
    let long = " ".repeat(100_000);
    let chunked = "GET /livez HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n";
    for (message, status) in [
        (post("/nowhere", &long), 404),
        (post("/livez", &long), 405),
        (post("/v1/take", &long).replace("application/json", "text/plain"), 415),
        (post("/livez", &long).replace("POST", "GET"), 200),
        (chunked.to_owned(), 200),
    ] {
        let (most, last) = message.split_at(message.len() - 1);
        talk.send(most);
        let answer = talk.ask(last);
        assert_eq!((answer.status, answer.field("connection")), (status, None), "{answer:?}");
    }
    let held_back =
        post("/nowhere", "").replace("content-length: 0", "content-length: 5\r\nexpect: 100-continue");
    let answer = talk.ask(held_back);
    assert_eq!((answer.status, answer.field("connection")), (404, Some("close")));
    assert_eq!(talk.rest(), "");
}

#[test]
fn an_unused_body_is_bounded_too() {
    let running = Running::start();
    for message in
        [post("/nowhere", &" ".repeat(200_000)), post("/livez", &" ".repeat(200_000)).replace("POST", "GET")]
    {
        let answer = Talk::to(&running).ask(message);
        assert!(matches!(answer.status, 400 | 404), "{answer:?}");
        assert_eq!(answer.field("connection"), Some("close"));
    }
}

#[test]
fn connection_close_closes_the_connection_after_the_reply() {
    let running = Running::start();
    let closing = get("/livez").replace("host: localhost", "host: localhost\r\nconnection: close");
    for message in [&closing, "GET /livez HTTP/1.0\r\n\r\n"] {
        let said = Talk::to(&running).send(message).rest();
        assert!(said.ends_with("\r\n\r\n{\"live\":true}"), "{said}");
    }
}

#[test]
fn a_client_that_shuts_down_its_write_side_gets_all_replies() {
    let (_running, mut talk) = Running::start().with_http();
    talk.send(post("/v1/take", TAKE).repeat(50));
    talk.hang_up();
    for left in (950..1000).rev() {
        assert_eq!(talk.answer().json()["remaining"], left);
    }
    assert_eq!(talk.rest(), "");
}

#[test]
fn a_client_that_hangs_up_within_a_request_changes_nothing() {
    let running = Running::start();
    let message = post("/v1/take", TAKE);
    for cut in 1..message.len() {
        let mut talk = Talk::to(&running);
        talk.send(&message[..cut]);
        talk.hang_up();
        talk.rest();
    }
    assert_eq!(Talk::to(&running).post("/v1/peek", TAKE).json()["remaining"], 1000);
}

#[test]
fn max_connections_are_served_and_the_next_is_denied() {
    let running = Running::bounded(Bounds { max_connections: 2, ..PATIENT });
    let mut served = [Talk::to(&running), Talk::to(&running)];
    assert!(served.iter_mut().all(|talk| talk.get("/livez").status == 200));

    let mut refused = Talk::to(&running);
    let answer = refused.post("/v1/take", TAKE);
    assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")));
    assert!(answer.detail().contains("too many connections"));
    refused.is_over();

    let [mut leaves, mut stays] = served;
    leaves.hang_up();
    leaves.rest();
    // The slot is free a moment after the client sees its connection end.
    while !Talk::to(&running).is_served() {}
    assert_eq!(stays.get("/livez").status, 200);
}

#[test]
fn requests_in_flight_at_shutdown_are_finished() {
    let running = Running::with(Settings { resp: None, ..settings() });
    let address = running.server.http().unwrap();
    let mut idle = Talk::to(&running);
    let mut in_body = Talk::to(&running);
    let message =
        post("/v1/take", TAKE).replace("host: localhost", "host: localhost\r\nexpect: 100-continue");
    let (head, body) = message.split_at(message.len() - TAKE.len());
    assert_eq!(in_body.ask(head).status, 100);
    let mut in_head = Talk::to(&running);
    assert_eq!(in_head.get("/readyz").body, r#"{"ready":true,"rules":"ok"}"#);
    in_head.send("GET /rea");
    // The server has one thread: when it answers this request, it has read the other two.
    assert_eq!(idle.get("/readyz").status, 200);

    let Running { server, .. } = running;
    let stopping = thread::spawn(move || server.stop());
    assert_eq!(idle.rest(), "");
    while TcpStream::connect(address).is_ok() {}

    let answer = in_body.ask(body);
    assert_eq!((answer.status, answer.field("connection")), (200, Some("close")));
    let answer = in_head.ask("dyz HTTP/1.1\r\n\r\n");
    assert_eq!((answer.status, answer.field("connection")), (503, Some("close")));
    assert!(answer.detail().contains("stopping"));
    stopping.join().unwrap();
}
