//! Tests that every operation replies the same with Redis as in memory, except for the source of the decision.

use serde_json::Value as Json;

use super::place::{Node, decided_by, outline, redis, store};
use crate::wire::resp::Value;

const RULES: &str = "
[[rule]]
name = \"api\"
key = [\"user\"]
limit = \"3/h sliding-log\"

[[rule]]
name = \"uploads\"
when = { path = \"/upload\" }
key = [\"user\"]
limit = \"1/h concurrency\"
";

/// Starts a server with a store in memory, and one with a store in Redis.
fn both(name: &str) -> ([Node; 2], testbed::Redis) {
    let redis = redis();
    let memory = Node::start(&format!("{name}_memory"), RULES);
    (([memory, Node::start(name, &(store(&redis) + RULES))]), redis)
}

#[test]
fn every_command_has_the_same_replies_as_in_memory() {
    let (nodes, _redis) = both("commands");
    let mut clients = nodes.each_ref().map(Node::resp);
    let takes = [
        ("TG.TAKE a LIMIT 3/h", 4),
        ("TG.TAKE a LIMIT 3/h COST 9", 1),
        ("TG.TAKE w LIMIT 2/h|fixed-window", 3),
        ("TG.TAKE l LIMIT 2/h|sliding-log", 3),
        ("TG.TAKE s LIMIT 2/h|sliding-window", 3),
        ("TG.TAKE q LIMIT 2/h|leaky-bucket|queue|1 MAXWAIT 9999999", 3),
        ("TG.TAKE p LIMIT 2/h|pacer MAXWAIT 9999999", 3),
        ("TG.TAKEALL 2 b LIMIT 2/h COST 1 c LIMIT 5/h COST 2", 3),
        ("TG.PEEK c LIMIT 5/h", 1),
        ("TG.ADJUST c LIMIT 5/h 1", 1),
        ("TG.ADJUST c LIMIT 5/h -2", 1),
        ("TG.ADMIT user ana", 4),
    ];
    for (words, times) in takes {
        let words: Vec<_> = words.split(' ').map(|word| word.replace('|', " ")).collect();
        for nth in 0..times {
            let [memory, redis] = clients.each_mut().map(|client| client.ask(&words));
            assert_eq!(outline(&redis), outline(&memory), "{words:?}, {nth}");
            for name in ["binding", "adjusted", "rule"] {
                assert_eq!(redis.field(name), memory.field(name), "{words:?}, {nth}");
            }
            assert_eq!([&memory, &redis].map(decided_by), ["memory", "redis"]);
        }
    }
    for words in [
        "CL.THROTTLE t 1 2 3600",
        "CL.THROTTLE t 1 2 3600 0",
        "CL.THROTTLE t 1 2 3600 2",
        "THROTTLE t 2 2 3600",
        "THROTTLE u 2 2 3600",
        "THROTTLE u 2 2 3600 0",
        "THROTTLE u 2 2 3600 3",
        "DEL a b unused",
        "TG.RESET c",
        "TG.RESET c",
    ] {
        let [memory, redis] = clients.each_mut().map(|client| client.say(words));
        let start = |answer: Value| match answer {
            Value::Array(numbers) => Value::Array(numbers[..3].to_vec()),
            other => other,
        };
        assert_eq!(start(redis), start(memory), "{words}");
    }
}

#[test]
fn permits_are_given_back_and_held_on_to() {
    let (nodes, _redis) = both("permits");
    for mut client in nodes.each_ref().map(Node::resp) {
        for take in ["TG.TAKE ana LIMIT 1/h|concurrency", "TG.ADMIT user bob path /upload"] {
            let words: Vec<_> = take.split(' ').map(|word| word.replace('|', " ")).collect();
            let permit = client.ask(&words).text("permit");
            assert_eq!(client.ask(&words).number("allowed"), 0);
            let expected = [("TG.RENEW", 1), ("TG.RELEASE", 1), ("TG.RELEASE", 0), ("TG.RENEW", 0)];
            for (verb, is_held) in expected {
                assert_eq!(client.ask(&[verb, &permit]), Value::Integer(is_held), "{take}: {verb}");
            }
            assert_eq!(client.ask(&words).number("allowed"), 1);
        }
    }
}

#[test]
fn every_route_has_the_same_replies_as_in_memory() {
    let (nodes, _redis) = both("routes");
    let mut talks = nodes.each_ref().map(Node::http);
    let user = r#"{"attributes":{"user":"ana"}}"#;
    let asks = [
        ("/v1/take", r#"{"key":"a","limit":"1/h"}"#.to_owned()),
        ("/v1/take", r#"{"key":"a","limit":"1/h"}"#.to_owned()),
        ("/v1/take", r#"{"key":"a","limit":"1/h","cost":2}"#.to_owned()),
        ("/v1/peek", r#"{"key":"a","limit":"1/h"}"#.to_owned()),
        ("/v1/reset", r#"{"key":"a"}"#.to_owned()),
        ("/v1/adjust", r#"{"key":"a","limit":"1/h","amount":1}"#.to_owned()),
        ("/v1/adjust", r#"{"key":"a","limit":"1/h","amount":-1}"#.to_owned()),
        ("/v1/reset", r#"{"key":"unused"}"#.to_owned()),
        ("/v1/admit", user.to_owned()),
        ("/v1/explain", user.to_owned()),
        ("/v1/admit/batch", format!(r#"{{"requests":[{user},{user},{user}]}}"#)),
        ("/v1/admit/batch", format!(r#"{{"requests":[{user}],"all":true}}"#)),
        ("/v1/admit/batch", format!(r#"{{"requests":[{}]}}"#, vec![user; 200].join(","))),
    ];
    for (path, body) in asks {
        let [memory, redis] = talks.each_mut().map(|talk| talk.post(path, &body));
        assert_eq!(redis.status, memory.status, "{path} {body}");
        assert_eq!(redis.fields_of("rate"), memory.fields_of("rate"), "{path} {body}");
        let [memory, redis] = [memory, redis].map(|answer| still(answer.json()));
        assert_eq!(redis.to_string().replace("\"redis\"", "\"memory\""), memory.to_string(), "{path} {body}");
        assert!(
            path == "/v1/reset" || path == "/v1/explain" || redis.to_string().contains("\"redis\""),
            "{redis}"
        );
    }
}

/// Removes the members that depend on time.
fn still(mut answer: Json) -> Json {
    match &mut answer {
        Json::Object(members) => {
            members.retain(|name, _| !name.ends_with("_ms") && name != "detail");
            members.values_mut().for_each(|member| *member = still(member.take()));
        }
        Json::Array(members) => members.iter_mut().for_each(|member| *member = still(member.take())),
        _ => {}
    }
    answer
}

#[test]
fn an_override_holds_at_once() {
    let redis = redis();
    let call =
        crate::command::call::Call::from("redis_override").file("tidegate.toml", &(store(&redis) + RULES));
    let node = Node::of(&call.variable("TIDEGATE_TOKEN", "secret"));
    let mut talk = node.http();
    let mut admit = || {
        let request = crate::wire::http::post("/v1/admit", r#"{"attributes":{"user":"ana"}}"#);
        talk.ask(crate::wire::http::by("secret", &request)).status
    };
    assert_eq!([(); 4].map(|()| admit()), [200, 200, 200, 429]);
    let body = r#"{"rule":"api","key":{"user":"ana"},"limit":"9/h sliding-log","for":"1h"}"#;
    let put = crate::wire::http::with_json("PUT", "/v1/overrides", body);
    assert_eq!(node.http().ask(crate::wire::http::by("secret", &put)).status, 200);
    // The override leaves quota. A cached denial must not hide that.
    assert_eq!(admit(), 200);
    let fast =
        crate::wire::http::with_json("PUT", "/v1/overrides", &body.replace("9/h sliding-log", "2000000/s"));
    let answer = node.http().ask(crate::wire::http::by("secret", &fast));
    assert_eq!(answer.status, 400, "{}", answer.body);
}

#[test]
fn a_limit_that_redis_cannot_hold_is_the_caller_s_mistake() {
    let redis = redis();
    let node = Node::start("too_fast", &store(&redis));
    for words in [
        "TG.TAKE a LIMIT 2000000/s",
        "TG.PEEK a LIMIT 2000000/s",
        "TG.ADJUST a LIMIT 2000000/s 1",
        "TG.TAKEALL 1 a LIMIT 2000000/s COST 1",
        "CL.THROTTLE a 1 2000000 1",
    ] {
        let answer = node.resp().say(words);
        assert!(answer.error().starts_with("ERR limit \"2000000/s"), "{words}: {answer:?}");
    }
    for path in ["/v1/take", "/v1/peek"] {
        let answer = node.http().post(path, r#"{"key":"a","limit":"2000000/s"}"#);
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.detail().starts_with("limit \"2000000/s\": "), "{}", answer.body);
    }
    assert_eq!(node.metric("tidegate_store_decisions_total{decided_by=\"local\"}"), 0);
}
