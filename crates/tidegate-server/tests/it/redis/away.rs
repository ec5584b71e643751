//! Tests of an outage of Redis: every reply names the source of its decision.

use rustix::process::Signal;
use serde_json::Value as Json;
use testbed::until;

use super::place::{Node, TIMEOUT, decided_by, outline, redis, store};
use crate::wire::http::Answer;
use crate::wire::resp::{Client, Value};

const RULES: &str = "
[[rule]]
name = \"local\"
when = { path = \"/local\" }
limit = \"4/h\"

[[rule]]
name = \"open\"
when = { path = \"/open\" }
limit = \"4/h\"
on_store_failure = \"open\"

[[rule]]
name = \"closed\"
when = { path = \"/closed\" }
limit = \"4/h\"
on_store_failure = \"closed\"
";

fn admit(client: &mut Client, path: &str) -> (String, i64) {
    let answer = client.ask(&["TG.ADMIT", "path", path]);
    (decided_by(&answer), answer.number("allowed"))
}

#[test]
fn while_redis_is_down_each_rule_follows_its_policy_and_then_redis_again() {
    let redis = redis();
    let node = Node::start("away", &(store(&redis) + "nodes = 2\n" + RULES));
    let mut client = node.resp();
    for path in ["/local", "/open", "/closed"] {
        assert_eq!(admit(&mut client, path), ("redis".to_owned(), 1));
    }
    redis.kill();
    node.wait_until_available(false);
    assert!(node.process.says("store: ").contains("is not reachable: "));
    // The share of one of two servers in a limit of four.
    let local = [(); 3].map(|()| admit(&mut client, "/local"));
    assert_eq!(local, [1, 1, 0].map(|allowed| ("local".to_owned(), allowed)));
    assert_eq!(admit(&mut client, "/open"), ("open".to_owned(), 1));
    assert_eq!(admit(&mut client, "/closed"), ("closed".to_owned(), 0));
    let refused = node.http().post("/v1/admit", r#"{"attributes":{"path":"/closed"}}"#);
    assert_eq!((refused.status, refused.field("retry-after")), (429, Some("1")));
    assert_eq!(refused.json()["decided_by"], "closed");
    assert!(
        refused.detail().starts_with("The store is not available, and rule \"closed\" denies every request")
    );
    let open = node.http().post("/v1/admit", r#"{"attributes":{"path":"/open"}}"#);
    assert_eq!((open.status, &open.json()["decided_by"]), (200, &Json::from("open")));
    assert_eq!(node.metric("tidegate_store_available"), 0);
    let of_rule = |by: &str, verdict: &str| {
        let labels = format!("{{rule=\"{by}\",decided_by=\"{by}\",verdict=\"{verdict}\"}}");
        node.metric(&format!("tidegate_rule_without_store_total{labels}"))
    };
    assert_eq!([of_rule("local", "allowed"), of_rule("local", "denied")], [2, 1]);
    assert_eq!([of_rule("open", "allowed"), of_rule("closed", "denied")], [2, 2]);
    let counted = node.http().get("/v1/rules").json()["rules"][0]["counts"]["without_store"].clone();
    assert_eq!(counted["local_allowed"], 2);
    assert_eq!(node.http().get("/livez").status, 200);

    redis.restart();
    node.wait_until_available(true);
    assert!(node.process.says("store: ").contains(" is back; "));
    for path in ["/local", "/open", "/closed"] {
        assert_eq!(admit(&mut client, path).0, "redis");
    }
}

#[test]
fn limits_that_come_with_a_request_have_one_policy() {
    for (policy, decided) in [("local", [1, 1, 0]), ("open", [1, 1, 1]), ("closed", [0, 0, 0])] {
        let redis = redis();
        let text = format!("{}nodes = 2\non_store_failure = \"{policy}\"\n", store(&redis));
        let node = Node::start(&format!("policy_{policy}"), &text);
        let mut client = node.resp();
        assert_eq!(decided_by(&client.say("TG.TAKE ana LIMIT 4/h")), "redis");
        redis.kill();
        node.wait_until_available(false);
        for allowed in decided {
            let answer = client.say("TG.TAKE ana LIMIT 4/h");
            assert_eq!((decided_by(&answer).as_str(), answer.number("allowed")), (policy, allowed));
        }
        let Value::Array(numbers) = client.say("CL.THROTTLE bob 3 4 3600") else { panic!("five numbers") };
        assert_eq!(numbers[0], Value::Integer(i64::from(policy == "closed")));
        let both = client.say("TG.TAKEALL 2 eve LIMIT 4/h COST 1 site LIMIT 8/h COST 1");
        assert_eq!(
            (decided_by(&both).as_str(), both.number("allowed")),
            (policy, i64::from(policy != "closed"))
        );
        let taken = node.http().post("/v1/take", r#"{"key":"zoe","limit":"4/h"}"#);
        assert_eq!(taken.status, if policy == "closed" { 429 } else { 200 });
        assert_eq!(taken.json()["decided_by"], policy);
        assert_eq!(taken.fields_of("ratelimit").is_empty(), policy == "open");
        let name = format!("tidegate_store_decisions_total{{decided_by=\"{policy}\"}}");
        assert!(node.metric(&name) >= 6);
        let ready = node.http().get("/readyz").json();
        assert_eq!(ready["store"]["kind"], "redis");
        assert!(ready["store"]["decided_without"].as_u64() >= Some(6), "{ready}");
        assert!(ready["store"]["what"].as_str().is_some_and(|what| !what.is_empty()), "{ready}");
    }
}

#[test]
fn peeks_and_changes_are_errors_while_redis_is_down() {
    let (redis, node, mut client) = Node::on_redis("errors");
    let take = ["TG.TAKE", "ana", "LIMIT", "4/h concurrency"];
    let permit = client.ask(&take).text("permit");
    redis.kill();
    node.wait_until_available(false);
    for words in [
        "TG.PEEK ana LIMIT 4/h",
        "TG.ADJUST ana LIMIT 4/h 1",
        "TG.RESET ana",
        "DEL ana bob",
        "CL.THROTTLE a 1 2 3 0",
    ] {
        let answer = client.say(words);
        assert!(answer.error().starts_with("ERR the store is not available: "), "{words}: {answer:?}");
        assert!(answer.error().ends_with("; try again"), "{words}: {answer:?}");
    }
    for verb in ["TG.RELEASE", "TG.RENEW"] {
        assert!(client.ask(&[verb, &permit]).error().starts_with("ERR the store is not available: "));
    }
    for (path, body) in [
        ("/v1/peek", r#"{"key":"ana","limit":"4/h"}"#),
        ("/v1/adjust", r#"{"key":"ana","limit":"4/h","amount":1}"#),
        ("/v1/reset", r#"{"key":"ana"}"#),
        ("/v1/release", &format!(r#"{{"permit":"{permit}"}}"#)),
    ] {
        let answer = node.http().post(path, body);
        assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")), "{path}");
        assert!(answer.detail().starts_with("the store is not available: "), "{path}");
    }
    // A permit of the local store is released there, even when Redis is available again.
    let local = client.ask(&take).text("permit");
    redis.restart();
    node.wait_until_available(true);
    assert_eq!([(); 2].map(|()| client.ask(&["TG.RELEASE", &local])), [1, 0].map(Value::Integer));
}

#[test]
fn a_server_starts_without_redis_and_uses_it_when_it_comes() {
    let redis = redis();
    redis.kill();
    let node = Node::start("absent", &(store(&redis) + RULES));
    let place = node.process.says("            redis://");
    assert!(place.contains(" is not reachable: ") && place.ends_with("until it is"), "{place}");
    assert_eq!(node.http().get("/livez").json()["live"], true);
    let ready = node.http().get("/readyz").json();
    assert_eq!((&ready["ready"], &ready["store"]["available"]), (&Json::from(true), &Json::from(false)));
    assert_eq!(decided_by(&node.resp().say("TG.TAKE ana LIMIT 4/h")), "local");
    redis.restart();
    node.wait_until_available(true);
    assert!(node.process.says("store: ").contains(" is back; "));
    let answer = node.resp().say("TG.TAKE ana LIMIT 4/h");
    assert_eq!((decided_by(&answer).as_str(), outline(&answer)), ("redis", [1, 4, 3]));
    node.process.signal(Signal::TERM);
    node.process.says("stopped");
}

#[test]
fn a_redis_that_hangs_delays_no_request_beyond_the_deadline() {
    let redis = redis();
    let node = Node::start("hangs", &store(&redis).replace("\"5s\"", "\"200ms\""));
    let mut client = node.resp();
    let mut is_by_redis = || (decided_by(&client.say("TG.TAKE bob LIMIT 1000/s")) == "redis").then_some(());
    until("a decision by Redis", TIMEOUT, &mut is_by_redis);
    redis.stop();
    assert_eq!(is_by_redis(), None);
    assert!(node.metric("tidegate_store_errors_total{kind=\"timeout\"}") > 0);
    redis.resume();
    until("a decision by Redis again", TIMEOUT, is_by_redis);
}

/// Returns the replies to takes and admissions of this cost without Redis, on both fronts: the verdict, and the retry
/// time in milliseconds.
fn decisions_without_redis(policy: &str, cost: u64) -> Vec<(bool, Option<u64>)> {
    let redis = redis();
    let rule = format!("[[rule]]\nname = \"api\"\nlimit = \"4/h\"\non_store_failure = \"{policy}\"\n");
    let settings = format!("{}nodes = 2\non_store_failure = \"{policy}\"\n{rule}", store(&redis));
    let node = Node::start(&format!("share_{policy}_{cost}"), &settings);
    redis.kill();
    node.wait_until_available(false);
    let mut client = node.resp();
    let of_resp = |answer: &Value| {
        assert_eq!(decided_by(answer), policy, "{answer:?}");
        (answer.number("allowed") == 1, u64::try_from(answer.number("retry_after")).ok())
    };
    let of_http = |answer: &Answer| {
        let body = answer.json();
        assert_eq!(body["decided_by"], policy, "{body}");
        assert_eq!(answer.status, if body["allowed"] == true { 200 } else { 429 }, "{body}");
        let seconds =
            answer.field("retry-after").map(|seconds| 1000 * seconds.parse::<u64>().expect("seconds"));
        assert_eq!(body["retry_after_ms"].as_u64(), seconds, "{body}");
        (body["allowed"] == true, seconds)
    };
    let take = client.say(&format!("TG.TAKE ana LIMIT 4/h COST {cost}"));
    let take_all = client.say(&format!("TG.TAKEALL 2 bob LIMIT 4/h COST {cost} all LIMIT 8/h COST 1"));
    let Value::Array(throttle) = client.say(&format!("CL.THROTTLE eve 3 4 3600 {cost}")) else {
        panic!("five numbers");
    };
    let throttle = match (&throttle[0], &throttle[3]) {
        (Value::Integer(limited), Value::Integer(wait)) => {
            (*limited == 0, u64::try_from(*wait).ok().map(|seconds| 1000 * seconds))
        }
        other => panic!("{other:?}"),
    };
    let admit = client.say(&format!("TG.ADMIT COST {cost} user ana"));
    let mut decisions = vec![of_resp(&take), of_resp(&take_all), throttle, of_resp(&admit)];
    node.process.signal(Signal::TERM);
    node.process.says("stopped");

    // The HTTP requests use another server, which has its own share.
    let node = Node::start(&format!("share_{policy}_{cost}_http"), &settings);
    let body = format!(r#"{{"key":"zoe","limit":"4/h","cost":{cost}}}"#);
    decisions.push(of_http(&node.http().post("/v1/take", &body)));
    decisions
        .push(of_http(&node.http().post("/v1/admit", &format!(r#"{{"attributes":{{}},"cost":{cost}}}"#))));
    decisions
}

#[test]
fn a_cost_above_this_server_s_share_is_denied_for_a_second_and_one_above_the_limit_for_good() {
    assert_eq!(decisions_without_redis("local", 2), [(true, None); 6]);
    assert_eq!(decisions_without_redis("local", 3), [(false, Some(1000)); 6]);
    assert_eq!(decisions_without_redis("local", 5), [(false, None); 6]);
}

#[test]
fn an_impossible_cost_is_denied_also_while_redis_is_down() {
    assert_eq!(decisions_without_redis("open", 4), [(true, None); 6]);
    assert_eq!(decisions_without_redis("open", 5), [(false, None); 6]);
    assert_eq!(decisions_without_redis("closed", 4), [(false, Some(1000)); 6]);
    assert_eq!(decisions_without_redis("closed", 5), [(false, None); 6]);
}

#[test]
fn a_denial_names_the_share_if_it_is_too_small_for_the_cost() {
    let redis = redis();
    let rules = "nodes = 2\n[[rule]]\nname = \"api\"\nlimit = \"4/h\"\n";
    let node = Node::start("share_detail", &(store(&redis) + rules));
    redis.kill();
    node.wait_until_available(false);
    for (path, body, of) in [
        ("/v1/take", r#"{"key":"ana","limit":"4/h","cost":3}"#, "the limit"),
        ("/v1/admit", r#"{"attributes":{},"cost":3}"#, "rule \"api\""),
    ] {
        let answer = node.http().post(path, body);
        let expected = format!(
            "The store is not available, and a cost of 3 is more than this server's share of {of}; try again in a while."
        );
        assert_eq!((answer.status, answer.detail()), (429, expected));
        let kind = answer.json()["type"].clone();
        assert_eq!(kind, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    }
}
