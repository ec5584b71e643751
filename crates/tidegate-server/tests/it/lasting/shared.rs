//! Tests that hold for servers with one file as for servers with one Redis.

use serde_json::json;
use testbed::Redis;

use super::place::{Node, redis, store};
use crate::wire::http::Answer;

/// Calls a test with three servers on one file, and with three on one Redis.
fn each(name: &str, test: impl Fn([Node; 3], &str)) {
    let first = Node::start(&format!("{name}_file"), "");
    let others = [first.beside(), first.beside()];
    let [second, third] = others;
    test([first, second, third], "file");
    let redis: Redis = redis();
    let on_redis = |number: usize| Node::start(&format!("{name}_redis_{number}"), &store(&redis));
    test([on_redis(0), on_redis(1), on_redis(2)], "redis");
}

#[test]
fn an_override_made_on_one_server_holds_on_three_and_survives_kill_9_of_all_of_them() {
    each("kill", |mut nodes, place| {
        assert_eq!(nodes[0].page()["kept_in"], place);
        assert_eq!(nodes[0].put("eve", "deny").status, 200);
        assert_eq!(nodes[0].admit("eve").status, 403, "it is in force here when the reply comes");
        for node in &mut nodes {
            node.wait_for_users(&["eve"]);
            assert_eq!(node.admit("eve").status, 403, "{place}");
        }
        // Changes on different servers are merged.
        assert_eq!(nodes[1].put("ana", "9/h").status, 200);
        assert_eq!(nodes[2].put("bob", "allow").status, 200);
        for node in &mut nodes {
            node.wait_for_users(&["ana", "bob", "eve"]);
        }
        let listed = nodes[0].page();
        let mut nodes = nodes.map(Node::killed_and_started);
        for node in &mut nodes {
            // A server on a busy machine may begin before Redis has answered.
            node.wait_for_users(&["ana", "bob", "eve"]);
            assert_eq!(node.page(), listed, "{place}: with its tag, author and time");
            assert_eq!(node.admit("eve").status, 403);
            assert_eq!(node.admit("ana").json()["limit"], 9);
        }
        assert_eq!(nodes[2].delete("eve").body, r#"{"removed":true}"#);
        for node in &mut nodes {
            node.wait_for_users(&["ana", "bob"]);
            assert_eq!(node.admit("eve").status, 200, "{place}");
        }
    });
}

#[test]
fn of_two_changes_with_the_same_tag_on_two_servers_one_is_made() {
    each("race", |mut nodes, place| {
        let mut tag = nodes[0].put("ana", "5/h").field("etag").expect("a tag").to_owned();
        nodes[1].wait_for_users(&["ana"]);
        for round in 0..10 {
            let [one, other, _] = &mut nodes;
            let put = |node: &mut Node, amount: usize| -> Answer {
                let body = json!({"rule": "api", "key": {"user": "ana"}, "limit": format!("{amount}/h"), "until": "never"});
                node.ask("PUT", &format!("if-match: {tag}\r\n"), &body)
            };
            let answers = std::thread::scope(|scope| {
                let first = scope.spawn(|| put(one, 10 + 2 * round));
                let second = put(other, 11 + 2 * round);
                [first.join().expect("it ends"), second]
            });
            let mut statuses = answers.each_ref().map(|answer| answer.status);
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 412], "{place}, round {round}: {answers:?}");
            let won = answers.iter().find(|answer| answer.status == 200).expect("one has won");
            won.field("etag").expect("a tag").clone_into(&mut tag);
        }
        // The third server has written nothing, and sees the last one.
        testbed::until("the last tag", super::place::TIMEOUT, || {
            (nodes[2].page()["overrides"][0]["etag"] == *tag).then_some(())
        });
    });
}

#[test]
fn new_overrides_of_many_callers_are_all_kept() {
    each("crowd", |mut nodes, place| {
        std::thread::scope(|scope| {
            for (number, node) in nodes.iter_mut().enumerate() {
                scope.spawn(move || {
                    for user in 0..12 {
                        let answer = node.put(&format!("{number}-{user:02}"), "deny");
                        assert_eq!(answer.status, 200, "{place}: {answer:?}");
                    }
                });
            }
        });
        for node in &mut nodes {
            testbed::until("all of them", super::place::TIMEOUT, || (node.users().len() == 36).then_some(()));
        }
    });
}

#[test]
fn what_a_key_has_used_counts_under_an_override_from_another_server() {
    let redis = redis();
    let on_redis = |number: usize| Node::start(&format!("counts_{number}"), &store(&redis));
    let mut nodes = [on_redis(0), on_redis(1)];
    for node in &mut nodes {
        assert_eq!(node.admit("ana").status, 200);
    }
    assert_eq!(nodes[0].put("ana", "10/h").status, 200);
    nodes[1].wait_for_users(&["ana"]);
    assert_eq!(nodes[1].admit("ana").json()["remaining"], 7);
    assert_eq!(nodes[0].admit("ana").json()["remaining"], 6);
}

#[test]
fn a_calendar_of_a_zone_that_no_rule_names_survives_a_restart() {
    each("zone", |mut nodes, place| {
        assert_eq!(nodes[0].put("eve", "deny").status, 200);
        assert_eq!(nodes[0].put("ana", "100/day calendar asia/shanghai").status, 200);
        for node in &mut nodes {
            node.wait_for_users(&["ana", "eve"]);
            assert_eq!(node.admit("ana").json()["limit"], 100, "{place}");
        }
        for node in &mut nodes.map(Node::killed_and_started) {
            node.wait_for_users(&["ana", "eve"]);
            assert_eq!(node.page()["overrides"][0]["limit"], "100/day calendar Asia/Shanghai");
            assert_eq!(
                (node.admit("ana").json()["limit"].clone(), node.admit("eve").status),
                (json!(100), 403)
            );
        }
    });
}

#[test]
fn an_override_goes_on_when_its_rule_is_back() {
    each("renamed", |mut nodes, place| {
        assert_eq!(nodes[0].put("eve", "deny").status, 200);
        let text = std::fs::read_to_string(nodes[0].file("tidegate.toml")).expect("there are rules");
        let other = text.replace("\"api\"", "\"other\"");
        assert_eq!(nodes[0].put_rules(&other).status, 200);
        assert_eq!(nodes[0].admit("eve").status, 200);
        let page = nodes[0].page();
        assert_eq!(
            (&page["overrides"][0]["in_effect"], nodes[0].users()),
            (&json!(false), vec!["eve".to_owned()])
        );
        let said =
            nodes[0].process.says("warning: override of rule \"api\", key {\"user\":\"eve\"}: has no effect");
        assert!(said.contains("there is no rule of this name"), "{said}");
        // Another server may put others meanwhile, and they do not end it.
        let body = json!({"rule": "other", "key": {"user": "bob"}, "decision": "deny", "until": "never"});
        assert_eq!(nodes[0].ask("PUT", "", &body).status, 200);
        assert_eq!(nodes[0].put_rules(&text).status, 200);
        assert_eq!(nodes[0].admit("eve").status, 403, "{place}");
        // One without effect is deleted by the key that the list shows.
        let removed = nodes[0].ask("DELETE", "", &json!({"rule": "other", "key": {"user": "bob"}}));
        assert_eq!(removed.body, r#"{"removed":true}"#);
        assert_eq!(nodes[0].users(), ["eve"]);
    });
}
