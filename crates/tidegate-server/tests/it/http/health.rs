//! Tests of health checks when `max_connections` is reached.

use tidegate_server::Settings;
use tidegate_server::settings::{Bounds, Token};

use super::slow::SHORT;
use crate::wire::http::{Talk, by, get, post};
use crate::wire::resp::{Client, Value};
use crate::wire::{NEVER, Running, settings};

/// The maximum number of connections above `max_connections` that are read.
const MAX_HEALTH_CONNECTIONS: usize = 16;

/// Starts a server whose connections are all held by RESP clients.
fn full(health: std::time::Duration, token: Option<Token>) -> (Running, [Client; 2]) {
    let bounds = Bounds { max_connections: 2, request_timeout: NEVER, health, ..Bounds::default() };
    let is_guarded = token.is_some();
    let running = Running::with(Settings { bounds, token, ..settings() });
    let held = [running.resp(), running.resp()].map(|mut client| {
        // The reply proves that the connection is counted.
        let pong = client.say("PING");
        assert!(is_guarded || pong == Value::Simple("PONG".to_owned()), "{pong:?}");
        client
    });
    (running, held)
}

#[test]
fn a_server_without_a_connection_left_lives_and_is_ready() {
    let (running, _held) = full(NEVER, None);
    for (path, body) in [("/livez", r#"{"live":true}"#), ("/readyz", r#"{"ready":true,"rules":"ok"}"#)] {
        let mut talk = Talk::to(&running);
        let answer = talk.get(path);
        assert_eq!((answer.status, answer.field("connection")), (200, Some("close")), "{answer:?}");
        assert_eq!((answer.body.as_str(), talk.rest().as_str()), (body, ""));
    }
}

#[test]
fn other_requests_get_too_many_connections_and_nothing_is_executed() {
    let (running, held) = full(NEVER, None);
    let take = post("/v1/take", r#"{"key":"ana","limit":"1/h"}"#);
    let long = post("/v1/take", &" ".repeat(100_000));
    for message in [&take, &long, &get("/metrics"), &get("/nowhere"), &post("/livez", "")] {
        let mut talk = Talk::to(&running);
        let answer = talk.ask(message);
        if message.contains("/livez") {
            assert_eq!((answer.status, answer.field("connection")), (405, Some("close")), "{answer:?}");
            continue;
        }
        assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{answer:?}");
        assert!(answer.detail().contains("too many connections"), "{answer:?}");
        assert_eq!(answer.field("connection"), Some("close"));
        talk.is_over();
    }
    drop(held);
    // A slot is free a moment after its client has left.
    while !Talk::to(&running).is_served() {}
    assert_eq!(Talk::to(&running).post("/v1/take", r#"{"key":"ana","limit":"1/h"}"#).status, 200);
}

#[test]
fn one_request_is_answered_and_no_second() {
    let (running, _held) = full(NEVER, None);
    let said = Talk::to(&running).send(get("/livez").repeat(2)).rest();
    assert_eq!(said.matches("HTTP/1.1 200").count(), 1, "{said}");
}

#[test]
fn sixteen_connections_above_the_bound_are_read_and_the_seventeenth_is_not() {
    let (running, _held) = full(NEVER, None);
    let mut above: Vec<_> = (0..MAX_HEALTH_CONNECTIONS).map(|_| Talk::to(&running)).collect();
    // Connections are accepted in the order in which they were made. This one gets a reply without sending a request.
    let mut beyond = Talk::to(&running);
    assert_eq!((beyond.answer().status, beyond.rest()), (503, String::new()));
    for talk in &mut above {
        assert_eq!(talk.get("/livez").status, 200);
    }
    drop(above);
    // A new connection is read a moment after they have closed.
    assert!((0..100_000).any(|_| Talk::to(&running).is_answered("/livez")));
}

#[test]
fn clients_that_take_their_time_do_not_keep_health_checks_out() {
    let (running, _held) = full(SHORT, None);
    let beginnings = [
        "",
        "GET /li",
        "GET /livez HTTP/1.1\r\nhost: ",
        "POST /v1/take HTTP/1.1\r\ncontent-length: 9\r\n\r\n",
    ];
    let mut slow: Vec<_> = (0..MAX_HEALTH_CONNECTIONS).map(|_| Talk::to(&running)).collect();
    for (talk, beginning) in slow.iter_mut().zip(beginnings.iter().cycle()) {
        // The server may have closed it by now.
        let _ = talk.try_send(beginning);
    }
    for mut talk in slow {
        talk.rest();
    }
    // This connection may be too slow as well.
    assert!((0..1000).any(|_| Talk::to(&running).is_answered("/livez")));
}

#[test]
fn where_there_is_a_token_health_checks_need_none() {
    let (running, _held) = full(NEVER, Token::new("sesame"));
    assert_eq!(Talk::to(&running).get("/livez").status, 200);
    assert_eq!(Talk::to(&running).ask(by("sesame", &get("/readyz"))).status, 200);
    assert_eq!(Talk::to(&running).ask(by("sesame", &get("/metrics"))).status, 503);
}
