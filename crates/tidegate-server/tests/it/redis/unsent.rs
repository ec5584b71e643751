//! Tests of clients that disconnect before they receive their permits.

use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use testbed::{Direction, Flow, Proxy, Redis, until};

use super::place::{Node, TIMEOUT, redis};
use crate::wire::http::post;
use crate::wire::resp::Value;

const LIMIT: &str = "3/1h concurrency";
const RULES: &str = "[[rule]]\nname = \"places\"\nkey = [\"user\"]\nlimit = \"3/1h concurrency\"\n";

/// Returns the free permits of a limit that comes with the request, and of a rule.
fn free(node: &Node) -> [i64; 2] {
    let peek = node.resp().ask(&["TG.PEEK", "ana", "LIMIT", LIMIT]).number("remaining");
    let explained = node.http().post("/v1/explain", r#"{"attributes":{"user":"ana"}}"#).json();
    [peek, explained["rules"][0]["remaining"].as_i64().unwrap_or(-1)]
}

/// Returns the number of scripts that Redis has run.
fn scripts(redis: &Redis) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default();
    line.split(['=', ',']).nth(1).and_then(|calls| calls.parse().ok()).unwrap_or_default()
}

#[test]
fn a_client_that_resets_while_the_store_is_asked_holds_no_place() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let store = format!("[store]\nkind = \"redis\"\nurl = \"{}\"\ndeadline = \"5s\"\n", proxy.url());
    let node = Node::start("unsent", &(store + RULES));
    // The first take of a limit lists it first, which needs its own reply.
    let mut client = node.resp();
    for first in [&["TG.TAKE", "ana", "LIMIT", LIMIT][..], &["TG.ADMIT", "user", "ana"]] {
        let permit = client.ask(first).text("permit");
        assert_eq!(client.ask(&["TG.RELEASE", &permit]), Value::Integer(1));
    }
    assert_eq!(free(&node), [3, 3]);
    let asked = [
        b"*4\r\n$7\r\nTG.TAKE\r\n$3\r\nana\r\n$5\r\nLIMIT\r\n$16\r\n3/1h concurrency\r\n".repeat(3),
        b"*3\r\n$8\r\nTG.ADMIT\r\n$4\r\nuser\r\n$3\r\nana\r\n".repeat(3),
    ];
    let (take, admit) = (format!(r#"{{"key":"ana","limit":"{LIMIT}"}}"#), r#"{"attributes":{"user":"ana"}}"#);
    for round in 0..8 {
        proxy.flow(Direction::Replies, Flow::Hold);
        let before = scripts(&redis);
        let socket = match round % 4 {
            which @ (0 | 1) => {
                let (mut writer, client) = node.resp_twice();
                std::io::Write::write_all(&mut writer, &asked[which]).unwrap();
                drop(client);
                writer
            }
            which => {
                let mut talk = node.http();
                let (path, body) = if which == 2 { ("/v1/take", &*take) } else { ("/v1/admit", admit) };
                talk.send(post(path, body));
                talk.writer()
            }
        };
        until("the store is asked", TIMEOUT, || (scripts(&redis) > before).then_some(()));
        // With linger 0 the close is a reset, so that the next write of the server fails.
        set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
        drop(socket);
        proxy.flow(Direction::Replies, Flow::Pass);
        until("all places are free", TIMEOUT, || (free(&node) == [3, 3]).then_some(()));
    }
}
