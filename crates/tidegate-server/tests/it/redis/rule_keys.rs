//! Tests of peek, adjust and reset under a rule by servers that share a Redis.

use serde_json::{Value as Json, json};

use super::place::{Node, redis, store};
use crate::command::call::Call;
use crate::wire::http::{Answer, by, get, post};

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

const BANNING: &str = "[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '1/d'\n\
    penalty = { after = 2, within = '1d', for = '10d' }\n";

#[test]
fn a_ban_holds_on_every_server_is_listed_by_those_that_denied_and_lifted_by_any() {
    let redis = redis();
    let text = store(&redis) + BANNING;
    let call = |name: &str| {
        let call = Call::from(&format!("redis_bans_{name}")).file("tidegate.toml", &text);
        call.variable("TIDEGATE_TOKEN", "sesame")
    };
    let (of_first, first) = (call("first"), Node::of(&call("first")));
    let second = Node::of(&call("second"));
    let login = |node: &Node| {
        let answer = ask(node, "/v1/admit", &json!({"attributes": {"user": "ana"}})).json();
        assert_eq!(answer["decided_by"], "redis", "{answer}");
        (answer["allowed"] == true, answer["ban"].clone())
    };
    let bans = |node: &Node| node.http().ask(by("sesame", &get("/v1/bans")));
    let banned = |node: &Node| bans(node).json()["bans"].as_array().map(Vec::len);
    assert_eq!([login(&first), login(&second)], [(true, Json::Null), (false, Json::Null)]);
    assert_eq!(login(&first), (false, json!("begun")));
    assert_eq!([banned(&first), banned(&second)], [Some(1), Some(0)], "the other has denied nothing for it");
    assert_eq!(login(&second), (false, json!("in_force")));
    let mut client = second.resp();
    client.say("AUTH sesame");
    let list = client.say("TG.BANS COUNT 5");
    let crate::wire::resp::Value::Array(rows) = &list else { panic!("{list:?}") };
    assert_eq!((rows.len(), rows[0].text("rule")), (1, "login".to_owned()));
    assert!(rows[0].number("ends_in") > 9 * 24 * 3600 * 1000, "{list:?}");

    let key = json!({"rule": "login", "key": {"user": "ana"}});
    assert_eq!(ask(&second, "/v1/reset", &key).json(), json!({"reset": true}));
    assert_eq!([banned(&first), banned(&second)], [Some(0), Some(0)]);
    // No server denies from a cache.
    assert_eq!([login(&first), login(&first)], [(true, Json::Null), (false, Json::Null)]);
    assert_eq!(login(&first), (false, json!("begun")));

    redis.kill();
    bans(&first).is_problem(503, "the store is not available");
    assert_eq!(ask(&first, "/v1/peek", &key).status, 503, "no server answers in the place of Redis");
    let address = first.http().address().to_string();
    let ended = of_first.run(&["top", "--once", "--server", &address]);
    assert!(ended.code == Some(0) && ended.out.starts_with("RULE   KEY"), "{ended:?}");
    assert!(
        ended.out.contains(&format!("\n\nno list of bans: {address} says: the store is not")),
        "{ended:?}"
    );
    let ended = of_first.run(&["top", "--json", "--server", &address]);
    assert!(ended.out.trim_end().ends_with(",\"bans\":null}"), "{ended:?}");
}
