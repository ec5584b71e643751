//! Tests of peek, adjust and reset under a rule by servers that share a Redis.

use serde_json::{Value as Json, json};

use super::place::{Node, redis, store};
use crate::command::call::Call;
use crate::wire::http::{Answer, by, post};

const RULE: &str = "[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '3/d'\n";

fn ask(node: &Node, path: &str, body: &Json) -> Answer {
    node.http().ask(by("sesame", &post(path, &body.to_string())))
}

/// Sends a login, and returns its status.
fn login(node: &Node) -> u16 {
    ask(node, "/v1/admit", &json!({"attributes": {"user": "ana"}})).status
}

#[test]
fn a_key_is_looked_at_corrected_and_reset_by_any_server() {
    let redis = redis();
    let text = store(&redis) + RULE;
    let start = |name: &str| {
        let call = Call::from(&format!("redis_rule_key_{name}")).file("tidegate.toml", &text);
        Node::of(&call.variable("TIDEGATE_TOKEN", "sesame"))
    };
    let (first, second) = (start("first"), start("second"));
    let key = json!({"rule": "login", "key": {"user": "ana"}});
    let left = |node: &Node| {
        let peek = ask(node, "/v1/peek", &key).json();
        assert_eq!(peek["decided_by"], "redis", "{peek}");
        peek["remaining"].clone()
    };
    for expected in [200, 200, 200, 429] {
        assert_eq!(login(&first), expected);
    }
    assert_eq!([left(&first), left(&second)], [json!(0), json!(0)]);
    // The server that denied remembers the denial, and forgets it with the reset.
    assert_eq!(ask(&first, "/v1/reset", &key).json(), json!({"reset": true}));
    assert_eq!([left(&first), left(&second)], [json!(3), json!(3)]);
    assert_eq!([login(&first), login(&second)], [200, 200]);
    let adjusted =
        ask(&second, "/v1/adjust", &json!({"rule": "login", "key": {"user": "ana"}, "amount": -1}));
    assert_eq!((&adjusted.json()["adjusted"], &adjusted.json()["remaining"]), (&json!("whole"), &json!(2)));
    assert_eq!(left(&first), json!(2));
}
