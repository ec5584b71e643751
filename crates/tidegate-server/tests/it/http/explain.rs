//! Tests of `POST /v1/explain`.

use serde_json::{Value, json};

use crate::wire::Running;
use crate::wire::http::Talk;

const RULES: &str = r#"
[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "login"
when = { path = "/login" }
key = ["ip", "user"]
limit = "2/60s"
cost = 2

[[rule]]
name = "login-new"
candidate_for = "login"
limit = "8/60s"

[[rule]]
name = "site"
key = ["user"]
limit = "10/s"
mode = "shadow"
on_missing = "skip"
"#;

fn explain(talk: &mut Talk, attributes: &Value) -> Value {
    let answer = talk.post("/v1/explain", &json!({ "attributes": attributes }).to_string());
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")), "{answer:?}");
    assert!(answer.fields_of("ratelimit").is_empty());
    answer.json()
}

#[test]
fn values_of_a_name_that_comes_twice_are_a_list_and_share_one_count() {
    let (_running, mut talk) =
        Running::under("[[rule]]\nname = \"a\"\nkey = [\"query.account\"]\nlimit = \"2/h\"\n").with_http();
    let mut admit = |account: Value| {
        let body = json!({"attributes": {"query.account": account}}).to_string();
        talk.post("/v1/admit", &body).status
    };
    for guess in 0..4 {
        let status = if guess < 2 { 200 } else { 429 };
        assert_eq!(admit(json!([format!("x{guess}"), "victim"])), status, "{guess}");
    }
    assert_eq!(
        [admit(json!("victim")), admit(json!(["victim", "victim"])), admit(json!([]))],
        [200, 200, 200]
    );
    assert_eq!((admit(json!("victim")), admit(json!([1]))), (429, 400));
    let explained = explain(&mut talk, &json!({"query.account": ["x", "victim"]}));
    assert_eq!(explained["rules"][0]["repeated"], json!(["query.account"]));
    let twice = talk.post("/v1/admit", r#"{"attributes":{"user":["ana","bob"]}}"#);
    assert_eq!((twice.status, twice.detail().contains("is there twice")), (400, true), "{twice:?}");
}

#[test]
fn every_rule_is_explained_with_its_part_in_the_decision() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let explained = explain(&mut talk, &json!({"path": "/login", "ip": "192.0.2.7"}));
    assert_eq!((&explained["allowed"], &explained["rule"]), (&json!(true), &json!("login")));
    let mut office = explained["rules"][0].clone();
    assert_eq!(office["worst_case"].take(), Value::Null);
    assert_eq!(
        office,
        json!({
            "name": "office", "applies": false,
            "when": [{"condition": "ip = \"10.0.0.0/8\"", "value": "192.0.2.7", "holds": false}],
            "unless": [], "group": null, "chosen_first": null, "mode": "enforce", "decision": "allow", "key": {}, "repeated": [], "limit": null, "window": null, "changes_at": null,
            "limit_from": null, "overridden": false, "override": null, "penalty": null, "cost": 1, "remaining": null, "retry_after_ms": null, "reset_after_ms": null,
            "allowed": null, "ban": null, "candidate_for": null, "worst_case": null,
        })
    );
    let mut login = explained["rules"][1].clone();
    assert_eq!(
        login["worst_case"].take(),
        json!({"instant": 2, "second": 2, "minute": 3, "period": 3, "bytes_per_key": 24, "disk_bytes_per_key": null})
    );
    assert_eq!(
        login,
        json!({
            "name": "login", "applies": true,
            "when": [{"condition": "path = \"/login\"", "value": "/login", "holds": true}],
            "unless": [], "group": null, "chosen_first": null, "mode": "enforce", "decision": null,
            "key": {"ip": "192.0.2.7", "user": null}, "repeated": [], "limit": "2/m", "window": null, "changes_at": null, "limit_from": "limit", "overridden": false, "override": null, "penalty": null, "cost": 2, "remaining": 2,
            "retry_after_ms": null, "reset_after_ms": 0, "allowed": true, "ban": null, "candidate_for": null, "worst_case": null,
        })
    );
    assert_eq!(explained["rules"][2]["candidate_for"], "login");
    let site = &explained["rules"][3];
    assert_eq!(
        (&site["mode"], &site["applies"], &site["allowed"]),
        (&json!("shadow"), &json!(false), &Value::Null)
    );
}

#[test]
fn explain_spends_nothing_and_reports_denials() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let ana = json!({"path": "/login", "ip": "192.0.2.7", "user": "ana"});
    for _ in 0..3 {
        assert_eq!(explain(&mut talk, &ana)["rules"][1]["remaining"], 2);
    }
    assert_eq!(talk.post("/v1/admit", &json!({ "attributes": ana }).to_string()).status, 200);
    let explained = explain(&mut talk, &ana);
    assert_eq!((&explained["allowed"], &explained["rule"]), (&json!(false), &json!("login")));
    let login = &explained["rules"][1];
    assert_eq!((&login["allowed"], &login["retry_after_ms"]), (&json!(false), &json!(60_000)));
    assert_eq!((&login["remaining"], &login["reset_after_ms"]), (&json!(0), &json!(60_000)));
    assert_eq!(explained["rules"][3]["allowed"], true);
}

#[test]
fn a_rule_with_a_fixed_decision_is_named() {
    let running = Running::under(RULES);
    let explained = explain(&mut Talk::to(&running), &json!({"ip": "10.1.2.3"}));
    assert_eq!((&explained["allowed"], &explained["rule"]), (&json!(true), &json!("office")));
    assert_eq!(
        (&explained["rules"][0]["applies"], &explained["rules"][0]["allowed"]),
        (&json!(true), &json!(true))
    );
    let bare = Running::start();
    let explained = explain(&mut Talk::to(&bare), &json!({}));
    assert_eq!(explained, json!({"allowed": true, "rule": null, "unmatched": true, "rules": []}));
}

#[test]
fn the_worst_case_is_reported_where_there_is_a_bound() {
    for (limit, instant, minute) in [
        ("10/s burst 20", json!(20), json!(619)),
        ("10/60s sliding-log", json!(10), json!(10)),
        ("10/60s fixed-window", json!(10), json!(20)),
        ("8/30s concurrency", json!(8), Value::Null),
        ("10/s pacer", Value::Null, Value::Null),
        ("unlimited pacer", Value::Null, Value::Null),
    ] {
        let running = Running::under(&format!("[[rule]]\nname = 'r'\nlimit = '{limit}'"));
        let worst = explain(&mut Talk::to(&running), &json!({}))["rules"][0]["worst_case"].clone();
        assert_eq!((&worst["instant"], &worst["minute"]), (&instant, &minute), "{limit}: {worst}");
        assert!(worst["bytes_per_key"].as_u64().unwrap() >= 16);
    }
}
