//! Tests of requests that no rule matches, and of groups and exceptions, over every front.

use serde_json::json;

use super::pages::metrics;
use crate::wire::Running;
use crate::wire::resp::Value;

const RULES: &str = r#"
[rules]
unmatched = "deny"

[attributes]
names = ["user", "plan"]

[[rule]]
name = "vip"
group = "plan"
when = { path = "/api/{*rest}", plan = "vip" }
key = ["user"]
limit = "5/h"

[[rule]]
name = "anonymous"
group = "plan"
when = { path = "/api/{*rest}", user = { missing = true } }
limit = "1/h"

[[rule]]
name = "default"
group = "plan"
when = { path = "/api/{*rest}" }
unless = { path = "/api/healthz" }
key = ["user"]
limit = "2/h"

[[rule]]
name = "default-new"
candidate_for = "default"
limit = "3/h"
"#;

const DETAIL: &str = "No rule applies to this request, and such requests are denied; POST /v1/explain with the same \
                      attributes reports why.";

#[test]
fn an_unmatched_request_is_denied_alike_over_every_front() {
    let (running, mut talk) = Running::under(RULES).with_http();
    let denied = talk.post("/v1/admit", r#"{"attributes":{"path":"/x","user":"ana"}}"#);
    assert_eq!(
        denied.json(),
        json!({
            "type": "about:blank", "title": "Forbidden", "status": 403, "detail": DETAIL,
            "allowed": false, "limit": null, "remaining": null, "retry_after_ms": null, "reset_after_ms": null,
            "delay_ms": null, "rule": null, "decided_by": "memory", "limits": [],
        })
    );
    assert_eq!((denied.status, denied.field("retry-after")), (403, None));

    let requests = r#"[{"attributes":{"path":"/api/x","user":"ana"}},{"attributes":{"path":"/api/healthz","user":"ana"}}]"#;
    let each = talk.post("/v1/admit/batch", &format!(r#"{{"requests":{requests}}}"#)).json();
    let of = |answer: &serde_json::Value| (answer["allowed"].clone(), answer["rule"].clone());
    assert_eq!(of(&each["answers"][0]), (json!(true), json!("default")));
    assert_eq!(of(&each["answers"][1]), (json!(false), json!(null)));
    let all = talk.post("/v1/admit/batch", &format!(r#"{{"all":true,"requests":{requests}}}"#));
    assert_eq!((all.status, all.json()["binding"].as_u64(), all.detail()), (403, Some(1), DETAIL.to_owned()));

    let fields = "x-forwarded-for: 192.0.2.7\r\nx-forwarded-uri: /x\r\n";
    let auth = talk.ask(format!("GET /v1/auth?user=ana HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n"));
    auth.is_problem(403, "No rule applies to this request");

    let mut resp = running.resp();
    let reply = resp.ask(&["TG.ADMIT", "path", "/x", "user", "ana"]);
    assert_eq!((reply.number("allowed"), reply.number("retry_after")), (0, -1));
    assert_eq!(reply.field("rule"), Some(&Value::Null));

    let numbers = metrics(&talk.get("/metrics").body);
    assert_eq!(numbers.get("tidegate_unmatched_denied_total"), Some(&5.0));
    assert_eq!(numbers.get("tidegate_unmatched_total"), Some(&0.0));
    assert_eq!(talk.get("/v1/rules").json()["unmatched"], "deny");
}

#[test]
fn an_explanation_names_the_member_that_was_chosen() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let mut explain = |attributes: serde_json::Value| {
        talk.post("/v1/explain", &json!({ "attributes": attributes }).to_string()).json()
    };
    let vip = explain(json!({"path": "/api/x", "user": "ana", "plan": "vip"}));
    assert_eq!((&vip["rule"], &vip["unmatched"]), (&json!("vip"), &json!(false)));
    let chosen: Vec<_> = (0..4).map(|rule| vip["rules"][rule]["chosen_first"].clone()).collect();
    assert_eq!(chosen, [json!(null), json!(null), json!("vip"), json!("vip")]);
    assert_eq!(vip["rules"][2]["group"], "plan");
    assert_eq!((&vip["rules"][2]["applies"], &vip["rules"][2]["allowed"]), (&json!(false), &json!(null)));

    let health = explain(json!({"path": "/api/healthz", "user": "ana"}));
    assert_eq!(
        (&health["allowed"], &health["rule"], &health["unmatched"]),
        (&json!(false), &json!(null), &json!(true))
    );
    let except = json!([{"condition": "path = \"/api/healthz\"", "value": "/api/healthz", "holds": true}]);
    assert_eq!(health["rules"][2]["unless"], except);

    let anonymous = explain(json!({"path": "/api/x"}));
    assert_eq!(anonymous["rule"], "anonymous");
    let missing = json!({"condition": "user = { missing = true }", "value": null, "holds": true});
    assert!(anonymous["rules"][1]["when"].as_array().expect("a list").contains(&missing));
    let listed = talk.get("/v1/rules").json();
    assert_eq!(listed["rules"][2]["unless"], json!(["path = \"/api/healthz\""]));
    assert_eq!((&listed["rules"][2]["group"], &listed["rules"][3]["group"]), (&json!("plan"), &json!(null)));
}

#[test]
fn requests_with_an_attribute_that_no_rule_uses_are_counted() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    for (attributes, count) in [
        (json!({"path": "/api/x", "user": "ana", "method": "GET", "ip": "192.0.2.7", "header.x": "1"}), 0.0),
        (json!({"path": "/api/x", "user": "ana", "plan": "free"}), 0.0),
        (json!({"path": "/api/x", "usr": "ana", "tenant": "x"}), 1.0),
        (json!({"path": "/api/x", "usr": "ana"}), 2.0),
    ] {
        talk.post("/v1/admit", &json!({ "attributes": attributes }).to_string());
        let numbers = metrics(&talk.get("/metrics").body);
        assert_eq!(numbers.get("tidegate_unknown_attributes_total"), Some(&count), "{attributes}");
    }
}
