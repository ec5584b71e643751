//! Tests of requests in pieces and of clients that disconnect: no reply is lost, reordered or leaked.

use std::io::Write as _;
use std::thread;

use testbed::until;

use super::place::{Node, TIMEOUT, outline, redis, store};
use crate::wire::resp::{Client, Value, request};

/// Returns a session of commands that wait for Redis and commands that do not, with keys of this name.
fn session(name: &str) -> Vec<u8> {
    let take = |limit: &str| request(&["TG.TAKE", name, "LIMIT", limit]);
    [
        take("9/h"),
        format!("TG.PEEK {name} LIMIT 9/h\r\nECHO \"a b\"\r\n").into_bytes(),
        request(&["MULTI"]),
        take("9/h"),
        request(&["TG.ADJUST", name, "LIMIT", "9/h", "2"]),
        take("9/h"),
        request(&["EXEC"]),
        request(&["TG.TAKE", name, "LIMIT", "9/x"]),
        request(&["HELLO", "3"]),
        take("9/h"),
        request(&["TG.RESET", name]),
        take("9/h").repeat(70),
        request(&["QUIT"]),
    ]
    .concat()
}

/// Removes the fields of a reply that depend on time.
fn still(reply: Value) -> Value {
    match reply {
        Value::Array(values) if values.first() == Some(&Value::bulk("allowed")) => {
            Value::integers(&outline(&Value::Array(values)))
        }
        Value::Array(values) => Value::Array(values.into_iter().map(still).collect()),
        Value::Map(pairs) if pairs.first().is_some_and(|(name, _)| *name == Value::bulk("allowed")) => {
            Value::integers(&outline(&Value::Map(pairs)))
        }
        // A greeting contains the connection number.
        Value::Map(_) => Value::Null,
        other => other,
    }
}

fn replies(client: &mut Client) -> Vec<Value> {
    client.read_to_end().expect("whole replies").into_iter().map(still).collect()
}

#[test]
fn a_session_in_pieces_is_answered_as_if_it_came_at_once() {
    let redis = redis();
    let node = Node::start("pieces", &store(&redis));
    let mut whole = node.resp();
    whole.send(&session("whole"));
    let expected = replies(&mut whole);
    assert_eq!(expected.len(), 3 + 5 + 1 + 1 + 1 + 1 + 70 + 1);
    for size in [1, 7, 100, 1000] {
        let mut client = node.resp();
        for piece in session(&format!("by{size:03}")).chunks(size) {
            client.send(piece);
        }
        assert_eq!(replies(&mut client), expected, "{size}");
    }
}

#[test]
fn a_client_that_reads_late_gets_every_reply_in_order() {
    let redis = redis();
    let node = Node::start("late", &store(&redis));
    let (mut writer, mut client) = node.resp_twice();
    let sending = thread::spawn(move || {
        for nth in 0..5000 {
            let asked =
                [request(&["TG.TAKE", "ana", "LIMIT", "100000/s"]), request(&["ECHO", &nth.to_string()])];
            writer.write_all(&asked.concat()).expect("the server reads");
        }
    });
    until("a server that is full of replies, or has read all", TIMEOUT, || {
        (node.metric("tidegate_requests_total{front=\"resp\"}") > 1000).then_some(())
    });
    for nth in 0..5000 {
        assert_eq!(client.read().number("limit"), 100_000);
        assert_eq!(client.read(), Value::bulk(&nth.to_string()));
    }
    sending.join().expect("all was sent");
}

#[test]
fn a_client_that_hangs_up_during_store_calls_leaves_nothing_behind() {
    let redis = redis();
    let node = Node::start("hangs_up", &store(&redis).replace("\"5s\"", "\"200ms\""));
    assert_eq!(node.resp().say("TG.TAKE ana LIMIT 9/h").number("allowed"), 1);
    redis.stop();
    for _ in 0..8 {
        node.resp().send(&request(&["TG.TAKE", "ana", "LIMIT", "9/h"]).repeat(100));
    }
    // The only remaining connection is the one that reads the metrics.
    until("no connection but that of the metrics", TIMEOUT, || {
        (node.metric("tidegate_open_connections") == 1).then_some(())
    });
    until("nothing in flight", TIMEOUT, || (node.metric("tidegate_store_in_flight") == 0).then_some(()));
    redis.resume();
}
