//! Tests of the limit on unfinished requests of all connections together.

use tidegate_server::settings::Bounds;

use crate::wire::Running;
use crate::wire::http::{Talk, get, post};
use crate::wire::resp::{Client, Value, request};

/// The length of a request. Two unfinished ones fit, including buffer growth, and a third does not.
const LONG: usize = 900_000;
const AT_MOST: usize = 2_000_000;

const TOO_MUCH: &str = "ERR unfinished requests of all connections hold more than 2000000 bytes; send whole requests, \
                        or try again later";

fn running(max_unfinished: usize) -> Running {
    let bounds =
        Bounds { max_unfinished, request_timeout: std::time::Duration::from_secs(3600), ..Bounds::default() };
    Running::bounded(bounds)
}

/// Returns the counted bytes from the metrics page.
fn counted(running: &Running) -> usize {
    let page = Talk::to(running).get("/metrics").body;
    let line = page.lines().find_map(|line| line.strip_prefix("tidegate_unfinished_bytes "));
    line.and_then(|number| number.parse().ok()).expect("the page says so")
}

/// Returns the words of a long request. The command is unknown, which the server reports only after the whole request.
fn words() -> Vec<String> {
    ["a", "b", "c", "d", "e"].iter().map(|word| word.repeat(LONG / 5)).collect()
}

/// Sends all of a long request but its end, and waits until the server has it. Returns the end.
fn begin(running: &Running, client: &mut Client) -> Vec<u8> {
    let before = counted(running);
    let mut whole = request(&words());
    let end = whole.split_off(whole.len() - 2);
    client.send(&whole);
    while counted(running) < before + whole.len() {}
    end
}

/// Asserts that a request over the limit gets an error, and that the connection is closed.
fn is_sent_away(mut client: Client, message: &[u8]) {
    // The server may reply before the client has sent everything.
    client.try_send(message);
    let replies = client.read_to_end().expect("whole replies");
    assert_eq!(replies.last().map(Value::error), Some(TOO_MUCH), "{replies:?}");
}

#[test]
fn a_client_over_the_limit_of_unfinished_bytes_gets_an_error_and_is_closed() {
    let running = running(AT_MOST);
    let mut held = [running.resp(), running.resp()];
    let ends = held.each_mut().map(|client| begin(&running, client));
    assert!(counted(&running) <= AT_MOST);
    is_sent_away(running.resp(), &request(&words()));
    assert_eq!(
        running.resp().ask(&["ECHO", &"x".repeat(10_000)]),
        Value::bulk(&"x".repeat(10_000)),
        "what is short"
    );

    let body = format!("{}{}", r#"{"key":"ana","limit":"1/s"}"#, " ".repeat(900_000));
    let mut talk = Talk::to(&running);
    let _ = talk.try_send(post("/v1/admit/batch", &body));
    let answer = talk.answer();
    assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{answer:?}");
    assert!(answer.detail().contains("hold more than 2000000 bytes"), "{answer:?}");
    assert_eq!(answer.field("connection"), Some("close"));

    for (client, end) in held.iter_mut().zip(&ends) {
        client.send(end);
        assert!(client.read().error().starts_with("ERR unknown command"), "it was read to its end");
    }
    // The memory is released a moment after the reply.
    while counted(&running) > 0 {}
    let mut third = running.resp();
    let end = begin(&running, &mut third);
    third.send(&end);
    third.read().error();
}

#[test]
fn requests_that_wait_for_exec_count_and_are_given_back() {
    let running = running(AT_MOST);
    let queue = |client: &mut Client| {
        client.say("MULTI");
        let long = "x".repeat(200_000);
        for _ in 0..4 {
            assert_eq!(client.ask(&["ECHO", &long]), Value::Simple("QUEUED".to_owned()));
        }
    };
    let mut held = running.resp();
    queue(&mut held);
    assert!((800_000..AT_MOST).contains(&counted(&running)), "{}", counted(&running));
    let mut others = [running.resp(), running.resp()];
    let replies = others.each_mut().map(|client| {
        client.say("MULTI");
        let long = request(&["ECHO", &"x".repeat(200_000)]).repeat(5);
        client.try_send(&long);
        (0..5).map_while(|_| client.try_read().expect("whole replies")).last()
    });
    assert!(replies.iter().flatten().any(|reply| *reply == Value::Error(TOO_MUCH.to_owned())), "{replies:?}");
    drop(others);
    let Value::Array(replies) = held.say("EXEC") else { panic!("no array") };
    assert_eq!(replies.len(), 4);
    drop(held);
    while counted(&running) > 0 {}
}

#[test]
fn the_first_buffer_of_a_connection_is_not_counted() {
    let (running, mut client) = running(0).with_resp();
    let whole = request(&["ECHO", &"x".repeat((16 << 10) - 100)]);
    let (begin, end) = whole.split_at(whole.len() - 10);
    client.send(&[&request(&["PING"]), begin].concat());
    assert_eq!(client.read(), Value::Simple("PONG".to_owned()));
    assert_eq!(Talk::to(&running).ask(get("/livez")).status, 200);
    client.send(end);
    assert_eq!(client.read(), Value::bulk(&"x".repeat((16 << 10) - 100)));
}
