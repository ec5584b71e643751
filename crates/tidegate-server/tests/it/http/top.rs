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
        ("/v1/top?m=1", 400, "\"m\" is no parameter; there are rule and n"),
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
