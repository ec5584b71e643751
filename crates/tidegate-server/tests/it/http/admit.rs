//! Tests of `POST /v1/admit`: decisions of rules about one request.

use serde_json::{Value, json};
use tidegate::{MILLISECOND, SECOND};

use crate::wire::Running;
use crate::wire::http::{Answer, Talk};

const RULES: &str = r#"
[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "robots"
when = { "header.user-agent" = "Bad*" }
decision = "deny"

[[rule]]
name = "api"
when = { path = "/api/{*rest}" }
key = ["user"]
limit = "4/10s burst 1"

[[rule]]
name = "site"
key = ["ip"]
limit = "30/60s burst 15"
on_missing = "skip"
"#;

fn ask(talk: &mut Talk, attributes: &Value) -> Answer {
    talk.post("/v1/admit", &json!({ "attributes": attributes }).to_string())
}

#[test]
fn an_answer_has_the_fields_of_a_take_and_names_the_rule() {
    let running = Running::under(RULES);
    let body = r#"{"attributes":{"ip":"192.0.2.7","path":"/","user":"ana","header.x-plan":"free"}}"#;
    let answer = Talk::to(&running).post("/v1/admit", body);
    let expected = r#"{"allowed":true,"limit":15,"remaining":14,"retry_after_ms":null,"reset_after_ms":2000,"delay_ms":0,"rule":"site","decided_by":"memory","limits":[{"name":"site","limit":15,"remaining":14,"retry_after_ms":null,"reset_after_ms":2000}]}"#;
    assert_eq!((answer.status, &*answer.body), (200, expected));
    assert_eq!(answer.field("ratelimit-policy"), Some("\"site\";q=15;w=30"));
    assert_eq!(answer.field("ratelimit"), Some("\"site\";r=14;t=2"));
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (None, None));
    assert_eq!(answer.field("content-type"), Some("application/json"));
}

#[test]
fn a_denial_names_its_rule_and_the_time_to_retry() {
    let (running, mut talk) = Running::under(RULES).with_http();
    let ana = json!({"path": "/api/x", "user": "ana", "ip": "192.0.2.7"});
    assert_eq!(ask(&mut talk, &ana).json()["rule"], "api");
    running.clock.advance(400 * MILLISECOND);

    let refused = ask(&mut talk, &ana);
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.json(),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Quota exceeded",
            "status": 429,
            "detail": "Denied by rule \"api\"; the same request passes in 2100 ms if no other request spends meanwhile.",
            "violated-policies": ["api"],
            "allowed": false, "limit": 1, "remaining": 0, "retry_after_ms": 2100, "reset_after_ms": 2100,
            "delay_ms": null, "rule": "api", "decided_by": "memory",
            "limits": [
                {"name": "api", "limit": 1, "remaining": 0, "retry_after_ms": 2100, "reset_after_ms": 2100},
                {"name": "site", "limit": 15, "remaining": 14, "retry_after_ms": null, "reset_after_ms": 1600},
            ],
        })
    );
    assert_eq!(refused.field("content-type"), Some("application/problem+json"));
    assert_eq!((refused.field("retry-after"), refused.field("cache-control")), (Some("3"), Some("no-store")));
    assert_eq!(refused.field("ratelimit-policy"), Some("\"api\";q=1;w=3, \"site\";q=15;w=30"));
    assert_eq!(refused.field("ratelimit"), Some("\"api\";r=0;t=3, \"site\";r=14;t=2"));

    running.clock.advance(2099 * MILLISECOND);
    assert_eq!(ask(&mut talk, &ana).status, 429);
    running.clock.advance(MILLISECOND);
    assert_eq!(ask(&mut talk, &ana).status, 200);
}

#[test]
fn a_request_denied_by_one_rule_spends_nothing_under_the_others() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let ana = json!({"path": "/api/x", "user": "ana", "ip": "192.0.2.7"});
    for expected in [200, 429, 429, 429] {
        assert_eq!(ask(&mut talk, &ana).status, expected);
    }
    assert_eq!(ask(&mut talk, &json!({"ip": "192.0.2.7"})).json()["remaining"], 13);
}

#[test]
fn unmatched_and_always_allowed_requests_pass_without_numbers() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let free = r#"{"allowed":true,"limit":null,"remaining":null,"retry_after_ms":null,"reset_after_ms":null,"delay_ms":0,"rule":null,"decided_by":"memory","limits":[]}"#;
    for (attributes, body) in [
        (json!({}), free.to_owned()),
        (json!({"user": "ana"}), free.to_owned()),
        (json!({"user": null, "header.x": null}), free.to_owned()),
        (json!({"ip": "10.1.2.3", "path": "/api/x"}), free.replace("\"rule\":null", "\"rule\":\"office\"")),
    ] {
        for _ in 0..20 {
            let answer = ask(&mut talk, &attributes);
            assert_eq!((answer.status, &*answer.body), (200, &*body), "{attributes}");
            assert!(answer.fields_of("ratelimit").is_empty() && answer.field("retry-after").is_none());
        }
    }
    let bare = Running::start();
    assert_eq!(ask(&mut Talk::to(&bare), &json!({"ip": "192.0.2.7"})).body, free);
}

#[test]
fn a_rule_that_always_denies_replies_403_without_retry_after() {
    let running = Running::under(RULES);
    let refused = ask(&mut Talk::to(&running), &json!({"header.User-Agent": "BadBot/1", "ip": "192.0.2.7"}));
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.json(),
        json!({
            "type": "about:blank", "title": "Forbidden", "status": 403,
            "detail": "Rule \"robots\" always denies this request; POST /v1/explain with the same attributes reports why.",
            "allowed": false, "limit": null, "remaining": null, "retry_after_ms": null, "reset_after_ms": null,
            "delay_ms": null, "rule": "robots", "decided_by": "memory", "limits": [],
        })
    );
    assert_eq!(refused.field("content-type"), Some("application/problem+json"));
    assert_eq!((refused.field("retry-after"), refused.field("cache-control")), (None, Some("no-store")));
    assert!(refused.fields_of("ratelimit").is_empty());
}

#[test]
fn an_impossible_cost_is_reported_with_its_rule() {
    let running = Running::under("[[rule]]\nname = 'api'\nlimit = '10/s'\ncost = 3");
    let refused = Talk::to(&running).post("/v1/admit", r#"{"attributes":{},"cost":4}"#);
    assert_eq!((refused.status, refused.field("retry-after")), (429, None));
    assert_eq!(refused.json()["retry_after_ms"], Value::Null);
    assert_eq!(
        refused.detail(),
        "A cost of 12 can never pass: rule \"api\" holds at most 10; ask for less, or raise the limit."
    );
}

#[test]
fn max_wait_is_that_of_the_rule_and_at_most_that_of_the_request() {
    let (_running, mut talk) =
        Running::under("[[rule]]\nname = 'api'\nlimit = '2/2s'\nmax_wait = '2s'").with_http();
    let mut ask = |more: &str| talk.post("/v1/admit", &format!(r#"{{"attributes":{{}}{more}}}"#));
    assert_eq!(ask("").json()["delay_ms"], 0);
    assert_eq!(ask(r#","max_wait_ms":0"#).json()["delay_ms"], 0);
    assert_eq!(ask(r#","max_wait_ms":999"#).status, 429);
    assert_eq!(ask(r#","max_wait_ms":0"#).status, 429);
    assert_eq!(ask(r#","max_wait_ms":1000"#).json()["delay_ms"], 1000);
    assert_eq!(ask("").json()["delay_ms"], 2000);
    assert_eq!(ask(r#","max_wait_ms":9000"#).status, 429);
}

#[test]
fn every_algorithm_decides_for_a_rule() {
    for (limit, allowed, retry_after_ms) in [
        ("2/10s token-bucket", 2, 5000),
        ("2/10s leaky-bucket queue 1 delay-after all", 2, 5000),
        ("2/10s fixed-window align first-hit", 2, 10_000),
        ("2/10s sliding-log", 2, 10_000),
        ("2/16s sliding-window", 2, 17_000),
        ("2/10s pacer", 1, 5000),
        ("2/10s concurrency", 2, 10_000),
    ] {
        let (running, mut talk) =
            Running::under(&format!("[[rule]]\nname = 'r'\nkey = ['user']\nlimit = '{limit}'")).with_http();
        let mut passed = 0;
        let refused = loop {
            let answer = ask(&mut talk, &json!({"user": "ana"}));
            assert_eq!(answer.json()["rule"], "r");
            if answer.status == 429 {
                break answer;
            }
            passed += 1;
        };
        let body = refused.json();
        assert_eq!(
            (passed, body["retry_after_ms"].as_u64()),
            (allowed, Some(u64::from(retry_after_ms))),
            "{limit}: {body}"
        );
        running.clock.advance(retry_after_ms * MILLISECOND);
        assert_eq!(ask(&mut talk, &json!({"user": "ana"})).status, 200, "{limit}");
    }
}

#[test]
fn a_permit_under_rules_is_released_and_renewed_like_any_other() {
    let running = Running::under(
        "[[rule]]\nname = 'uploads'\nkey = ['user']\nlimit = '1/30s concurrency'\n\
         [[rule]]\nname = 'all'\nlimit = '2/30s concurrency'",
    );
    let mut talk = Talk::to(&running);
    let first = ask(&mut talk, &json!({"user": "ana"}));
    assert_eq!(
        first.field("ratelimit-policy"),
        Some("\"uploads\";q=1;qu=\"concurrent-requests\";w=30, \"all\";q=2;qu=\"concurrent-requests\";w=30"),
        "{first:?}"
    );
    let permit = first.json()["permit"].as_str().expect("a permit").to_owned();
    assert!(permit.contains(".uploads+") && permit.ends_with(".all"), "{permit}");
    let refused = ask(&mut talk, &json!({"user": "ana"}));
    assert_eq!((refused.status, refused.json().get("permit")), (429, None));

    let of = json!({ "permit": permit }).to_string();
    running.clock.advance(20 * SECOND);
    assert_eq!(talk.post("/v1/renew", &of).body, r#"{"renewed":true}"#);
    running.clock.advance(20 * SECOND);
    assert_eq!(ask(&mut talk, &json!({"user": "ana"})).status, 429);
    assert_eq!(talk.post("/v1/release", &of).body, r#"{"released":true}"#);
    assert_eq!(talk.post("/v1/release", &of).body, r#"{"released":false}"#);
    assert_eq!(ask(&mut talk, &json!({"user": "ana"})).status, 200);
}

#[test]
fn the_same_name_in_other_clothes_is_the_same() {
    let (_running, mut talk) =
        Running::under("[[rule]]\nname = 'r'\nkey = ['ip', 'header.x-user']\nlimit = '9/h'").with_http();
    let left = |talk: &mut Talk, body: &str| talk.post("/v1/admit", body).json()["remaining"].as_u64();
    assert_eq!(left(&mut talk, r#"{"attributes":{"ip":"192.0.2.7","header.x-user":"ä"}}"#), Some(8));
    assert_eq!(
        left(&mut talk, r#"{"attributes":{"header.X-User":"\u00e4","ip":"::ffff:192.0.2.7"}}"#),
        Some(7)
    );
    assert_eq!(left(&mut talk, r#"{"attributes":{"i\u0070":"192.0.2.7","header.x-user":"b"}}"#), Some(8));
}

/// A zone of 4 KiB with as much again for logs: it holds a few dozen keys.
const NARROW: &str = "
[zone.small]
size = \"4KiB\"

[[rule]]
name = \"log\"
key = [\"user\"]
limit = \"5/h sliding-log\"
zone = \"small\"
";

#[test]
fn a_store_full_of_live_keys_is_a_denial_on_both_fronts_and_never_an_error() {
    let running = Running::under(NARROW);
    let (mut talk, mut client) = (Talk::to(&running), running.resp());
    let admit = |talk: &mut Talk, user: &str| {
        talk.post("/v1/admit", &json!({"attributes": {"user": user}}).to_string())
    };
    let full =
        (0..10_000).map(|user| admit(&mut talk, &user.to_string())).find(|answer| answer.status != 200);
    let full = full.expect("4 KiB are full of ten thousand keys");
    assert_eq!((full.status, full.field("retry-after")), (429, Some("1")));
    assert_eq!(full.detail(), "The store has no room for another key; try again in a while.");
    assert!(full.json()["type"].as_str().is_some_and(|kind| kind.ends_with("#temporary-reduced-capacity")));

    // One of them may still find room in another part of the store.
    let names = (0..10_000).map(|nth| format!("newcomer{nth}"));
    let mut newcomers = names.map(|name| (client.say(&format!("TG.ADMIT user {name}")), name));
    let (denied, newcomer) =
        newcomers.find(|(answer, _)| answer.number("allowed") == 0).expect("the store is full");
    assert_eq!(denied.number("retry_after"), 1000);
    drop(newcomers);
    assert_eq!(client.say("TG.ADMIT user 0").number("allowed"), 1, "a known key is decided as ever");

    let body = json!({"requests": [{"attributes": {"user": newcomer}}, {"attributes": {"user": "0"}}]});
    let each = talk.post("/v1/admit/batch", &body.to_string());
    assert_eq!((each.status, &each.json()["answers"][0]["retry_after_ms"]), (200, &json!(1000)));
    assert_eq!(each.json()["answers"][1]["allowed"], true);
    let mut body = body;
    body["all"] = true.into();
    let all = talk.post("/v1/admit/batch", &body.to_string());
    assert_eq!((all.status, all.field("retry-after")), (429, Some("1")));
}

#[test]
fn every_limit_that_decided_is_listed_in_the_body_and_in_both_fields() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let ana = json!({"path": "/api/x", "user": "ana", "ip": "192.0.2.7"});
    let allowed = ask(&mut talk, &ana);
    let [api, site] = [
        json!({"name": "api", "limit": 1, "remaining": 0, "retry_after_ms": null, "reset_after_ms": 2500}),
        json!({"name": "site", "limit": 15, "remaining": 14, "retry_after_ms": null, "reset_after_ms": 2000}),
    ];
    assert_eq!(allowed.json()["limits"], json!([api, site]));
    assert_eq!(allowed.field("ratelimit"), Some("\"api\";r=0;t=3, \"site\";r=14;t=2"));
    assert_eq!(allowed.field("ratelimit-policy"), Some("\"api\";q=1;w=3, \"site\";q=15;w=30"));
    let only = ask(&mut talk, &json!({"path": "/", "ip": "192.0.2.8"}));
    assert_eq!(only.json()["limits"], json!([site]));
    assert_eq!(only.field("ratelimit"), Some("\"site\";r=14;t=2"));
    let take = talk.post("/v1/take", r#"{"key":"ana","limit":"1/s"}"#);
    assert!(take.json().get("limits").is_none(), "its own fields are those of the one limit");
}
