//! Tests of the resources that a client can use before it has sent the token.

use tidegate_server::Settings;
use tidegate_server::settings::{Bounds, Token};

use super::slow::SHORT;
use crate::wire::http::{Talk, by, get, post};
use crate::wire::{NEVER, Running, settings};

/// The longest head, which is also the most that the server buffers for an unauthenticated client.
const MAX_UNAUTHENTICATED_BYTES: usize = 16 << 10;

const TAKE: &str = r#"{"key":"ana","limit":"1000/s"}"#;

fn guarded(bounds: Bounds) -> Running {
    Running::with(Settings { token: Token::new("sesame"), bounds, ..settings() })
}

/// Returns a request without the token whose head has this many bytes.
fn head_of(bytes: usize) -> String {
    let empty = "GET /metrics HTTP/1.1\r\nx: \r\n\r\n".len();
    format!("GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(bytes - empty))
}

#[test]
fn the_longest_head_is_looked_at_and_the_next_is_not() {
    let running = guarded(Bounds { request_timeout: NEVER, ..Bounds::default() });
    let answer = Talk::to(&running).ask(head_of(MAX_UNAUTHENTICATED_BYTES));
    assert_eq!((answer.status, answer.field("connection")), (401, Some("close")));
    for message in [head_of(MAX_UNAUTHENTICATED_BYTES + 1), head_of(1 << 20)] {
        let mut talk = Talk::to(&running);
        // The server may reply before the client has sent everything.
        let _ = talk.try_send(message);
        let answer = talk.answer();
        assert_eq!((answer.status, answer.field("connection")), (431, Some("close")), "{answer:?}");
        assert!(answer.detail().contains("more than 16384 bytes"), "{answer:?}");
    }
}

#[test]
fn a_request_without_the_token_is_the_last_and_its_body_is_not_waited_for() {
    let running = guarded(Bounds { request_timeout: NEVER, ..Bounds::default() });
    for (message, status) in [
        (get("/livez"), 200),
        (get("/readyz"), 200),
        (get("/nowhere"), 404),
        (get("/metrics"), 401),
        (post("/v1/take", TAKE), 401),
        (post("/v1/take", TAKE).replace("content-length: 30", "content-length: 100000"), 401),
        (post("/v1/take", TAKE).replace("content-length: 30", "transfer-encoding: chunked"), 401),
        (by("wrong", &post("/v1/take", TAKE)), 401),
    ] {
        let mut talk = Talk::to(&running);
        let answer = talk.ask(&message);
        assert_eq!((answer.status, answer.field("connection")), (status, Some("close")), "{message}");
        talk.is_over();
    }
}

#[test]
fn an_authenticated_client_keeps_its_connection_and_may_send_long_requests() {
    let (running, mut talk) = guarded(Bounds::default()).with_http();
    let long = format!("{TAKE}{}", " ".repeat(100_000));
    for body in [TAKE, &long, TAKE] {
        let answer = talk.ask(by("sesame", &post("/v1/take", body)));
        assert_eq!((answer.status, answer.field("connection")), (200, None), "{answer:?}");
    }
    let answer = talk.get("/metrics");
    assert_eq!((answer.status, answer.field("connection")), (401, None));
    let message = by("sesame", &post("/v1/take", TAKE));
    let mut talk = Talk::to(&running);
    for piece in message.as_bytes().chunks(7) {
        talk.send(piece);
    }
    assert_eq!(talk.answer().status, 200);
    assert_eq!(Talk::to(&running).ask(format!("\r\n\r\n{message}")).status, 200, "empty lines before it");
}

#[test]
fn an_invalid_request_is_an_error_at_once_even_before_the_token() {
    let running = guarded(Bounds { request_timeout: NEVER, ..Bounds::default() });
    for nonsense in ["PING\r\n", "GET / HTTP/2.0\r\n", "*1\r\n$4\r\nPING\r\n", "\x16\x03\x01\x02\x00"] {
        let answer = Talk::to(&running).ask(nonsense);
        assert_eq!((answer.status, answer.field("connection")), (400, Some("close")), "{nonsense:?}");
    }
}

#[test]
fn a_client_that_says_nothing_or_half_of_it_is_cut_off() {
    let running = guarded(Bounds { request_timeout: SHORT, write_timeout: NEVER, ..Bounds::default() });
    assert_eq!(Talk::to(&running).rest(), "");
    let mut talk = Talk::to(&running);
    assert_eq!(talk.ask("GET /metrics HTTP/1.1\r\nho").status, 408);
    talk.is_over();
}

#[test]
fn a_client_that_hangs_up_in_the_middle_is_not_answered() {
    let running = guarded(Bounds { request_timeout: NEVER, ..Bounds::default() });
    for beginning in ["", "\r\n", "GET", "GET /metrics HTTP/1.1\r\nho"] {
        let mut talk = Talk::to(&running);
        talk.send(beginning);
        talk.is_over();
    }
}
