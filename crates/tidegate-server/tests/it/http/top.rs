//! Tests of the list of keys with the most denials.

use serde_json::json;

use crate::wire::Running;
use crate::wire::http::Talk;

const RULES: &str = "[[rule]]\nname = 'a:b/c'\nkey = ['user']\nlimit = '1/h'\n";

#[test]
fn how_many_is_asked_for_in_the_query_and_has_a_bound() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    for path in ["/v1/top", "/v1/top?", "/v1/top?n=1", "/v1/top?n=100&rule=a:b/c", "/v1/top?rule=a%3Ab%2fc"] {
        let answer = talk.get(path);
        assert_eq!((answer.status, answer.json()), (200, json!({"keys": []})), "{path}");
    }
    for (path, status, said) in [
        ("/v1/top?n=0", 400, "n \"0\": has to be a number from 1 to 100"),
        ("/v1/top?n=101", 400, "n \"101\": has to be a number from 1 to 100"),
        ("/v1/top?n=x", 400, "n \"x\": has to be"),
        ("/v1/top?m=1", 400, "\"m\" is no parameter; there are rule, n and by"),
        ("/v1/top?by=allowed", 400, "by \"allowed\": is unknown; write denied or asked"),
        ("/v1/top?rule=%zz", 400, "rule: this is no percent-encoded text"),
        ("/v1/top?rule=unknown", 404, "rule \"unknown\": there is no rule of this name; /v1/rules lists"),
    ] {
        let answer = talk.get(path);
        answer.is_problem_of(path, status, said);
    }
    assert_eq!(talk.post("/v1/top", "{}").field("allow"), Some("GET, HEAD"));
}

#[test]
fn the_keys_that_were_denied_most_come_first() {
    let running = Running::under(&format!(
        "{RULES}[[rule]]\nname = 'other'\nkey = ['ip', 'user']\nlimit = '9/h'\non_missing = 'skip'"
    ));
    let mut talk = Talk::to(&running);
    let ask = |talk: &mut Talk, attributes: serde_json::Value| {
        talk.post("/v1/admit", &json!({ "attributes": attributes }).to_string()).status
    };
    for (user, refused) in [("ana", 3), ("bob", 5), ("eve", 0)] {
        for nth in 0..=refused {
            assert_eq!(ask(&mut talk, json!({ "user": user })), if nth == 0 { 200 } else { 429 });
        }
    }
    let top = |talk: &mut Talk, query: &str| talk.get(&format!("/v1/top{query}")).json();
    let key = |user: &str, asked: u64| json!({"rule": "a:b/c", "key": [user], "asked": asked, "denied": asked - 1, "error": 0});
    assert_eq!(top(&mut talk, ""), json!({"keys": [key("bob", 6), key("ana", 4)]}));
    assert_eq!(top(&mut talk, "?n=1&rule=a:b/c"), json!({"keys": [key("bob", 6)]}));
    assert_eq!(top(&mut talk, "?rule=other"), json!({"keys": []}));
}

#[test]
fn keys_of_limits_that_came_with_requests_are_counted_over_every_front() {
    let running = Running::under(RULES);
    let (mut talk, mut client) = (Talk::to(&running), running.resp());
    for _ in 0..2 {
        talk.post("/v1/take", r#"{"key":"ana","limit":"1/h"}"#);
        talk.post("/throttle", r#"{"key":"ana","max_burst":1,"count_per_period":1,"period":9}"#);
        client.say("TG.TAKE ana LIMIT 1/d");
        client.say("CL.THROTTLE ana 0 1 60");
        client.say("TG.TAKEALL 2 ana LIMIT 1/2h bob LIMIT 9/m");
    }
    talk.post("/v1/admit", r#"{"attributes":{"user":"ana"}}"#);
    let key = |key: &str, asked, denied| json!({"rule": null, "key": [key], "asked": asked, "denied": denied, "error": 0});
    let ana = key("ana", 10, 5);
    assert_eq!(talk.get("/v1/top").json(), json!({"keys": [ana]}));
    let of_rule = json!({"rule": "a:b/c", "key": ["ana"], "asked": 1, "denied": 0, "error": 0});
    // Equal numbers are in the order of the names.
    assert_eq!(talk.get("/v1/top?by=asked").json(), json!({"keys": [ana, key("bob", 1, 0), of_rule]}));
    assert_eq!(talk.get("/v1/top?by=asked&rule=a:b/c").json(), json!({"keys": [of_rule]}));
    assert_eq!(talk.get("/v1/top?by=asked&n=1").json(), json!({"keys": [ana]}));
}

#[test]
fn a_key_that_would_break_a_terminal_is_escaped_also_without_a_rule() {
    let running = Running::under(RULES);
    let (mut talk, mut client) = (Talk::to(&running), running.resp());
    client.ask(&[&b"TG.TAKE"[..], b"\x1b[2J\xff\n", b"LIMIT", b"1/h"]);
    let long = "k".repeat(1000);
    client.ask(&["TG.TAKE", &long, "LIMIT", "1/h"]);
    let keys = talk.get("/v1/top?by=asked").json()["keys"].clone();
    let shown: Vec<_> = keys.as_array().expect("a list").iter().map(|key| key["key"][0].as_str()).collect();
    assert_eq!(shown[0], Some("\\u{1b}[2J\\xff\\n"), "{keys}");
    assert!(
        shown[1].is_some_and(|key| key.starts_with("kkkk") && key.contains('\u{2026}') && key.len() < 200),
        "{keys}"
    );
}
