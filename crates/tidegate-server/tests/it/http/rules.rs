//! Tests of `GET /v1/rules`.

use serde_json::{Value, json};

use crate::wire::Running;
use crate::wire::http::{Talk, get};

const RULES: &str = r#"
[zone.logins]
size = "128KiB"

[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "login"
when = { path = "/login", method = ["POST", "PUT"] }
key = ["ip", "user"]
limit = "5/60s fixed-window"
cost = 2
max_wait = "500ms"
on_missing = "skip"
on_store_failure = "closed"
when_full = "forget"
zone = "logins"
ipv4_prefix = 24
ipv6_prefix = 56

[[rule]]
name = "login-new"
candidate_for = "login"
limit = "8/60s"

[[rule]]
name = "site"
mode = "shadow"
limit = "10/s"
"#;

fn rules(talk: &mut Talk) -> Value {
    let answer = talk.get("/v1/rules");
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")));
    answer.json()
}

#[test]
fn every_rule_is_listed_with_all_its_fields() {
    let running = Running::under(RULES);
    let listed = rules(&mut Talk::to(&running));
    assert_eq!(listed["file"], Value::Null);
    assert_eq!(listed["zones"], json!([{"name": "logins", "bytes": 131_072, "bytes_in_use": 131_072}]));
    assert_eq!(listed["status"], json!({"replaced": 0, "rejected": 0, "wrong": null}));
    let shadow = json!({"allowed": 0, "denied": 0, "impossible": 0, "store_full": 0, "near": 0, "bans": 0, "banned": 0});
    let counts = json!({
        "allowed": 0, "denied": 0, "impossible": 0, "store_full": 0, "near": 0, "bans": 0, "banned": 0, "looser": 0, "stricter": 0,
        "unmeasured": 0, "without_store": {"local_allowed": 0, "local_denied": 0, "open": 0, "open_denied": 0, "closed": 0},
        "shadow": shadow,
    });
    assert_eq!(
        listed["rules"][0],
        json!({
            "name": "office", "when": ["ip = \"10.0.0.0/8\""], "unless": [], "group": null, "key": [], "limit": null, "limit_for": {}, "mode": "enforce",
            "decision": "allow", "candidate_for": null, "cost": null, "max_wait_ms": null, "penalty": null, "on_missing": null, "on_repeated": null,
            "on_store_failure": null, "when_full": null, "zone": null, "ipv4_prefix": null, "ipv6_prefix": null,
            "schedule": [], "counts": counts,
        })
    );
    let login = json!({
        "name": "login", "when": ["path = \"/login\"", "method = [\"POST\", \"PUT\"]"], "unless": [], "group": null,
        "key": ["ip", "user"],
        "limit": "5/m fixed-window", "limit_for": {}, "mode": "enforce", "decision": null, "candidate_for": null, "cost": 2,
        "max_wait_ms": 500, "penalty": null, "on_missing": "skip", "on_repeated": "share", "on_store_failure": "closed", "when_full": "forget",
        "zone": "logins", "ipv4_prefix": 24, "ipv6_prefix": 56, "schedule": [], "counts": counts,
    });
    let mut listed_login = listed["rules"][1].clone();
    // Conditions are not ordered.
    listed_login["when"]
        .as_array_mut()
        .unwrap()
        .sort_by_key(|condition| std::cmp::Reverse(condition.to_string()));
    assert_eq!(listed_login, login);
    let site = &listed["rules"][3];
    assert_eq!(
        (&site["name"], &site["mode"], &site["limit"]),
        (&json!("site"), &json!("shadow"), &json!("10/s"))
    );
    assert_eq!(
        (&site["cost"], &site["ipv4_prefix"], &site["ipv6_prefix"]),
        (&json!(1), &json!(32), &json!(64))
    );
    assert_eq!(listed["rules"][2]["candidate_for"], "login");
    assert_eq!(listed["rules"][2]["mode"], "candidate");
}

#[test]
fn a_rule_is_listed_with_its_counts() {
    let (_running, mut talk) =
        Running::under("[[rule]]\nname = 'api'\nkey = ['user']\nlimit = '5/h'").with_http();
    for cost in [1, 3, 1, 1, 9] {
        talk.post("/v1/admit", &json!({"attributes": {"user": "ana"}, "cost": cost}).to_string());
    }
    let counts = &rules(&mut talk)["rules"][0]["counts"];
    assert_eq!(
        *counts,
        json!({
            "allowed": 3, "denied": 1, "impossible": 1, "store_full": 0, "near": 2, "bans": 0, "banned": 0, "looser": 0, "stricter": 0,
        "unmeasured": 0, "without_store": {"local_allowed": 0, "local_denied": 0, "open": 0, "open_denied": 0, "closed": 0},
            "shadow": {"allowed": 0, "denied": 0, "impossible": 0, "store_full": 0, "near": 0, "bans": 0, "banned": 0},
        })
    );
}

#[test]
fn every_window_is_listed_with_all_its_fields_and_shadow_decisions_are_counted_apart() {
    let running = Running::under(
        r#"
        [[rule]]
        name = "api"
        limit = "5/h"
        cost = 2
        max_wait = "1s"
        schedule = [
            { from = "2020-01-01T00:00", to = "2020-01-02T00:00", timezone = "UTC", cost = 3, max_wait = "500ms" },
            { from = "00:00", to = "24:00", timezone = "UTC", limit = "1/h", mode = "shadow", cost = 1 },
        ]
        "#,
    );
    let mut talk = Talk::to(&running);
    for _ in 0..2 {
        assert_eq!(talk.post("/v1/admit", r#"{"attributes":{}}"#).status, 200);
    }
    let api = &rules(&mut talk)["rules"][0];
    let window = |nth: usize| api["schedule"][nth].clone();
    assert_eq!(
        window(0),
        json!({
            "window": "2020-01-01T00:00 to 2020-01-02T00:00 UTC", "limit": "5/h", "mode": "enforce", "cost": 3,
            "max_wait_ms": 500,
        })
    );
    assert_eq!(
        window(1),
        json!({
            "window": "00:00 to 24:00 UTC", "limit": "1/h", "mode": "shadow", "cost": 1, "max_wait_ms": 1000,
        })
    );
    let shadow = json!({"allowed": 1, "denied": 1, "impossible": 0, "store_full": 0, "near": 1, "bans": 0, "banned": 0});
    assert_eq!((&api["counts"]["denied"], &api["counts"]["shadow"]), (&json!(1), &shadow));
}

#[test]
fn a_server_without_rules_has_none() {
    let running = Running::start();
    let expected = r#"{"file":null,"unmatched":"allow","rules":[],"zones":[],"status":{"replaced":0,"rejected":0,"wrong":null}}"#;
    assert_eq!(Talk::to(&running).get("/v1/rules").body, expected);
}

#[test]
fn json_is_sent_unless_text_is_preferred() {
    let (_running, mut talk) = Running::start().with_http();
    let mut asked = |accept: &str| {
        talk.ask(get("/v1/rules").replace("host: localhost", &format!("host: localhost\r\naccept: {accept}")))
    };
    for accept in
        ["*/*", "application/json", "application/json, text/plain", "text/html, */*;q=0.8", "", "image/png"]
    {
        assert_eq!(asked(accept).status, 200, "{accept}");
    }
    for accept in
        ["application/toml", "text/plain;q=0.5, application/json", "TEXT/PLAIN", "x/y,application/toml"]
    {
        let answer = asked(accept);
        answer.is_problem_of(accept, 404, "start the server with --config FILE");
    }
}
