//! Tests of two servers with one shared count.

use super::place::{Node, decided_by, outline, redis, store};

const RULES: &str = "[[rule]]\nname = \"api\"\nkey = [\"user\"]\nlimit = \"4/h\"\n";

#[test]
fn a_take_on_one_server_counts_on_the_other() {
    let redis = redis();
    let text = store(&redis) + RULES;
    let nodes = [Node::start("shared_a", &text), Node::start("shared_b", &text)];
    let mut clients = nodes.each_ref().map(Node::resp);
    let mut left = 3;
    for round in 0..6 {
        let answer = clients[round % 2].say("TG.TAKE ana LIMIT 4/h");
        assert_eq!(decided_by(&answer), "redis");
        assert_eq!(outline(&answer), [i64::from(round < 4), 4, left.max(0)], "{round}");
        left -= 1;
    }
    for round in 0..6 {
        let answer = clients[round % 2].say("TG.ADMIT user ana");
        assert_eq!((decided_by(&answer).as_str(), answer.number("allowed")), ("redis", i64::from(round < 4)));
    }
    let body = r#"{"attributes":{"user":"bob"}}"#;
    let statuses = [0, 1, 0, 1, 0].map(|node: usize| nodes[node].http().post("/v1/admit", body).status);
    assert_eq!(statuses, [200, 200, 200, 200, 429]);
    assert_eq!(clients[1].say("CL.THROTTLE bob 1 2 3600"), clients[1].say("CL.THROTTLE eve 1 2 3600"));
    assert_eq!(nodes[0].metric("tidegate_store_decisions_total{decided_by=\"local\"}"), 0);
    assert!(nodes[0].metric("tidegate_store_decisions_total{decided_by=\"redis\"}") >= 9);
    assert_eq!(nodes[0].metric("tidegate_store_available"), 1);
}

#[test]
fn a_denial_is_cached_only_if_the_setting_allows_it() {
    let redis = redis();
    for (is_cached, text) in [(true, store(&redis)), (false, store(&redis) + "denial_cache = false\n")] {
        let node = Node::start(&format!("denial_cache_{is_cached}"), &text);
        let mut client = node.resp();
        let key = format!("TG.TAKE {is_cached} LIMIT 1/h");
        assert_eq!((0..5).map(|_| client.say(&key).number("allowed")).sum::<i64>(), 1);
        assert_eq!(node.metric("tidegate_store_cached_denials_total") > 0, is_cached);
    }
}

#[test]
fn another_prefix_is_another_count() {
    let redis = redis();
    let one = Node::start("prefix_tg", &store(&redis));
    let other = Node::start("prefix_other", &(store(&redis) + "prefix = \"other:\"\n"));
    for node in [&one, &other] {
        assert_eq!(outline(&node.resp().say("TG.TAKE ana LIMIT 2/h")), [1, 2, 1]);
    }
    let names = redis.command(&["KEYS", "*"]);
    assert!(names.contains("tg:{") && names.contains("other:{"), "{names}");
}
