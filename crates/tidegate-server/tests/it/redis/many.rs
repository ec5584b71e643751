//! Tests of requests with more limits than one Redis script decides. They must not fail: a caller might treat an error
//! as allowed.

use serde_json::json;

use super::place::{Node, decided_by, redis, store};
use crate::command::call::Call;

/// The maximum number of limits in one script.
const IN_SCRIPT: usize = 128;
/// The maximum number of limits that Redis decides in one call.
const TOGETHER: usize = 4096;

/// Returns `count` rules for one path. The first allows five per hour, and each other one more than the rule before it.
fn rules(count: usize) -> String {
    let rule = |nth: usize| {
        let limit = 5 + nth;
        format!(
            "[[rule]]\nname = \"r{nth}\"\nwhen = {{ path = \"/p*\" }}\nkey = [\"user\"]\nlimit = \"{limit}/h\"\n\
             on_store_failure = \"closed\"\n"
        )
    };
    (0..count).map(rule).collect()
}

#[test]
fn a_request_to_which_more_rules_apply_than_a_script_decides_is_decided_by_redis() {
    for count in [IN_SCRIPT, IN_SCRIPT + 1, 300] {
        let redis = redis();
        let node = Node::start(&format!("many_{count}"), &(store(&redis) + &rules(count)));
        let mut client = node.resp();
        for left in [4, 3, 2] {
            let answer = client.ask(&["TG.ADMIT", "path", "/p", "user", "ana"]);
            assert_eq!((decided_by(&answer).as_str(), answer.number("allowed")), ("redis", 1), "{count}");
            assert_eq!(answer.number("remaining"), left, "{count}");
        }
        let admit = || node.http().post("/v1/admit", r#"{"attributes":{"path":"/p","user":"ana"}}"#);
        assert_eq!([admit().status, admit().status], [200, 200], "{count}");
        let denied = admit();
        assert_eq!((denied.status, &denied.json()["rule"]), (429, &json!("r0")), "{count}");
        assert_eq!(denied.json()["decided_by"], "redis");
        let other = client.ask(&["TG.ADMIT", "path", "/p", "user", "bob"]);
        assert_eq!(other.number("remaining"), 4, "{count}: each key has its own");
        // The denial spent nothing under the other rules.
        let explained =
            node.http().post("/v1/explain", r#"{"attributes":{"path":"/p","user":"ana"}}"#).json();
        let last = &explained["rules"][count - 1];
        assert_eq!(last["remaining"], 5 + count - 1 - 5, "{count}");
    }
}

#[test]
fn a_batch_that_stands_or_falls_together_may_ask_for_more_than_a_script_decides() {
    let redis = redis();
    let rule =
        |nth: usize| format!("[[rule]]\nname = \"q{nth}\"\nkey = [\"user\"]\nlimit = \"{}/h\"\n", nth + 2);
    let node = Node::start("many_batch", &(store(&redis) + &(0..5).map(rule).collect::<String>()));
    let batch = |users: usize, all: bool| {
        let of = |user: usize| json!({"attributes": {"user": format!("u{user}")}});
        let body = json!({"all": all, "requests": (0..users).map(of).collect::<Vec<_>>()});
        node.http().post("/v1/admit/batch", &body.to_string())
    };
    for _ in 0..2 {
        let answer = batch(30, true);
        assert_eq!((answer.status, &answer.json()["allowed"]), (200, &json!(true)), "{}", answer.body);
        assert_eq!(answer.json()["answers"][29]["decided_by"], "redis");
    }
    let denied = batch(31, true);
    assert_eq!((denied.status, &denied.json()["rule"]), (429, &json!(null)), "{}", denied.body);
    assert_eq!(
        (&denied.json()["allowed"], &denied.json()["violated-policies"]),
        (&json!(false), &json!(["q0"]))
    );
    let each = batch(31, false).json();
    let allowed: Vec<_> = (0..31).map(|user| each["answers"][user]["allowed"] == true).collect();
    assert_eq!(allowed, (0..31).map(|user| user == 30).collect::<Vec<_>>(), "the denial has spent nothing");
}

#[test]
fn many_rules_go_by_what_they_say_while_redis_is_away() {
    let redis = redis();
    let node = Node::start("many_away", &(store(&redis) + &rules(IN_SCRIPT + 2)));
    redis.kill();
    node.wait_until_available(false);
    let denied = node.http().post("/v1/admit", r#"{"attributes":{"path":"/p","user":"ana"}}"#);
    assert_eq!((denied.status, &denied.json()["decided_by"]), (429, &json!("closed")), "{}", denied.body);
    let denied = node.resp().ask(&["TG.ADMIT", "path", "/p", "user", "ana"]);
    assert_eq!((decided_by(&denied).as_str(), denied.number("allowed")), ("closed", 0));
}

#[test]
fn more_rules_than_redis_decides_together_are_found_when_they_are_loaded() {
    let check = |count: usize| {
        let text = format!("[store]\nkind = \"redis\"\n{}", rules(count));
        let call = Call::from(&format!("redis_many_check_{count}")).file("tidegate.toml", &text);
        let (checked, served) = (call.run(&["check"]), count > TOGETHER);
        (checked, served.then(|| call.run(&["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"])))
    };
    let (most, _) = check(TOGETHER);
    assert_eq!(most.code, Some(0), "{}", most.err);
    let (more, served) = check(TOGETHER + 1);
    assert_eq!(more.code, Some(2), "{}", more.out);
    let said = "rule \"r0\": at least 4097 rules with a limit apply to its requests, and the store decides at most 4096 \
                limits together; narrow the conditions of some, or join rules that count by the same key";
    assert!(more.err.contains("tidegate.toml:7:9: ") && more.err.contains(said), "{}", more.err);
    let served = served.expect("it was started");
    assert_eq!(served.code, Some(2), "{}", served.err);
    assert!(served.err.contains(said), "{}", served.err);
}
