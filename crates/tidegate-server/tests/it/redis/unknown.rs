//! Tests that an operation which was done, or may have been, is never reported as retryable.

use testbed::{Direction, Proxy};

use super::place::{Node, redis};

/// The length of the reply to an adjustment: `:1` and its line end.
const ADJUSTED: usize = 4;

#[test]
fn a_refund_that_was_done_is_not_asked_for_again() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let node = Node::start(
        "unknown",
        &format!("[store]\nkind = 'redis'\nurl = '{}'\ndeadline = '5s'\n", proxy.url()),
    );
    let mut client = node.resp();
    let take = client.ask(&["TG.TAKE", "ana", "LIMIT", "10/d", "COST", "5"]);
    assert_eq!(take.number("remaining"), 5);
    // The script is cached by now. The connection is cut after the reply to the next one.
    client.ask(&["TG.ADJUST", "bob", "LIMIT", "10/d", "1"]);
    proxy.cut_after(Direction::Replies, ADJUSTED);
    let reply = format!("{:?}", client.ask(&["TG.ADJUST", "ana", "LIMIT", "10/d", "-2"]));
    proxy.clear();
    assert!(reply.contains("it is done, and what is left could not be seen"), "{reply}");
    assert!(!reply.contains("; try again"), "{reply}");
    node.wait_until_available(true);
    assert_eq!(client.ask(&["TG.PEEK", "ana", "LIMIT", "10/d"]).number("remaining"), 7);
}

#[test]
fn a_charge_with_an_unknown_outcome_has_no_retry_after() {
    let redis = redis();
    let node = Node::start(
        "unknown_http",
        &format!("[store]\nkind = 'redis'\nurl = '{}'\ndeadline = '1s'\n", redis.url()),
    );
    let body = r#"{"key":"ana","limit":"10/d","amount":1}"#;
    let mut http = node.http();
    assert_eq!(http.post("/v1/take", r#"{"key":"ana","limit":"10/d"}"#).status, 200);
    redis.stop();
    let reply = http.post("/v1/adjust", body);
    redis.resume();
    assert_eq!((reply.status, reply.field("retry-after")), (503, None), "{}", reply.detail());
    assert!(reply.detail().contains("look before trying again"), "{}", reply.detail());
}
