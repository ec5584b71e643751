//! Tests of peek, adjust and reset under a rule, over HTTP.

use serde_json::{Value, json};
use tidegate::{MILLISECOND, SECOND};
use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use crate::wire::http::{Answer, Talk, by, post, with_json};
use crate::wire::{Running, settings};

pub(crate) const RULES: &str = r#"
[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "login"
when = { path = "/login" }
key = ["user", "ip"]
limit = "3/60s"

[[rule]]
name = "tighter"
candidate_for = "login"
limit = "1/60s"

[[rule]]
name = "measured"
key = ["user"]
limit = "5/h"
mode = "shadow"
on_missing = "skip"

[[rule]]
name = "site"
limit = "100/h"
"#;

/// A server with these rules and a token, and a client with or without the token.
pub(crate) struct Desk {
    pub(crate) running: Running,
    pub(crate) talk: Talk,
    token: Option<&'static str>,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let policy = Policy::from_toml(RULES).expect("valid rules");
        let running = Running::with(Settings { policy, token: Token::new("sesame"), ..settings() });
        let talk = Talk::to(&running);
        Desk { running, talk, token: Some("sesame") }
    }

    /// A server without a token.
    fn open() -> Desk {
        let running = Running::under(RULES);
        let talk = Talk::to(&running);
        Desk { running, talk, token: None }
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        let message = post(path, &body.to_string());
        self.talk.ask(self.token.map_or(message.clone(), |token| by(token, &message)))
    }

    /// Sends a login, and returns its status.
    pub(crate) fn login(&mut self) -> u16 {
        let attributes = json!({"path": "/login", "user": "ana", "ip": "192.0.2.7"});
        self.post("/v1/admit", &json!({ "attributes": attributes })).status
    }
}

/// Returns a body about the key of ana.
pub(crate) fn ana(more: &Value) -> Value {
    let mut body = json!({"rule": "login", "key": {"user": "ana", "ip": "192.0.2.7"}});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

#[test]
fn a_peek_reports_the_next_decision_of_the_rule_alone_and_changes_nothing() {
    let mut desk = Desk::open();
    for left in [3, 2, 1] {
        for _ in 0..3 {
            assert_eq!(desk.post("/v1/peek", &ana(&json!({}))).json()["remaining"], left);
        }
        assert_eq!(desk.login(), 200);
    }
    desk.running.clock.advance(500 * MILLISECOND);
    let peek = desk.post("/v1/peek", &ana(&json!({})));
    let expected = json!({
        "allowed": false, "limit": 3, "remaining": 0, "retry_after_ms": 19_500, "reset_after_ms": 59_500,
        "delay_ms": null, "rule": "login", "decided_by": "memory",
        "limits": [{"name": "login", "limit": 3, "remaining": 0, "retry_after_ms": 19_500, "reset_after_ms": 59_500}],
    });
    assert_eq!((peek.status, peek.json()), (200, expected));
    assert_eq!(peek.field("ratelimit"), Some("\"login\";r=0;t=20"));
    assert_eq!((peek.field("retry-after"), desk.login()), (None, 429));
    // The attributes of a request name the same key, whatever else they have.
    let request = json!({"user": "ana", "ip": "192.0.2.7", "path": "/other", "header.accept": ["a", "b"]});
    let peek = desk.post("/v1/peek", &json!({"rule": "login", "attributes": request, "cost": 4}));
    assert_eq!((&peek.json()["allowed"], &peek.json()["retry_after_ms"]), (&json!(false), &Value::Null));
    let site = desk.post("/v1/peek", &json!({"rule": "site"}));
    assert_eq!(site.json()["remaining"], 97, "a rule without a key needs none");
}

#[test]
fn a_reset_gives_the_whole_limit_back_and_an_adjustment_a_part() {
    let mut desk = Desk::new();
    for expected in [200, 200, 200, 429] {
        assert_eq!(desk.login(), expected);
    }
    let adjusted = desk.post("/v1/adjust", &ana(&json!({"amount": -2})));
    assert_eq!(adjusted.status, 200, "{}", adjusted.body);
    assert_eq!((&adjusted.json()["adjusted"], &adjusted.json()["remaining"]), (&json!("whole"), &json!(2)));
    let adjusted = desk.post("/v1/adjust", &ana(&json!({"amount": -9}))).json();
    assert_eq!((&adjusted["adjusted"], &adjusted["remaining"]), (&json!("capped"), &json!(3)));
    let adjusted = desk.post("/v1/adjust", &ana(&json!({"amount": 2}))).json();
    assert_eq!((&adjusted["adjusted"], &adjusted["remaining"]), (&json!("whole"), &json!(1)));
    assert_eq!(adjusted["limits"][0]["name"], "login");

    assert_eq!(desk.post("/v1/reset", &ana(&json!({}))).body, r#"{"reset":true}"#);
    assert_eq!(desk.post("/v1/reset", &ana(&json!({}))).body, r#"{"reset":false}"#);
    assert_eq!(desk.login(), 200);
    let site = desk.post("/v1/peek", &json!({"rule": "site"})).json();
    assert_eq!(site["remaining"], 96, "the other rule keeps its counts");
}

#[test]
fn a_reset_reaches_the_counts_of_an_override_and_leaves_it() {
    let mut desk = Desk::new();
    assert_eq!(desk.login(), 200);
    desk.running.clock.advance(SECOND);
    let put = with_json("PUT", "/v1/overrides", &ana(&json!({"limit": "20/60s", "for": "1h"})).to_string());
    assert_eq!(desk.talk.ask(by("sesame", &put)).status, 200);
    assert_eq!(desk.login(), 200);
    assert_eq!(desk.post("/v1/peek", &ana(&json!({}))).json()["remaining"], 18);
    assert_eq!(desk.post("/v1/reset", &ana(&json!({}))).json(), json!({"reset": true}));
    assert_eq!(desk.post("/v1/peek", &ana(&json!({}))).json()["remaining"], 20);
    let put = ana(&json!({"decision": "deny", "for": "1h"})).to_string();
    let put = with_json("PUT", "/v1/overrides", &put).replacen("\r\n", "\r\nif-match: *\r\n", 1);
    assert_eq!(desk.talk.ask(by("sesame", &put)).status, 200);
    let banned = desk.post("/v1/peek", &ana(&json!({}))).json();
    assert_eq!(
        (&banned["allowed"], &banned["limit"], &banned["limits"]),
        (&json!(false), &Value::Null, &json!([]))
    );
    assert_eq!(banned["overridden"], true);
}

#[test]
fn without_the_token_nothing_is_reset_or_adjusted() {
    for (mut desk, status, said) in [
        (Desk::open(), 403, "this changes what holds for others, and the server has no token"),
        (Desk { token: None, ..Desk::new() }, 401, "this server has a token; send it"),
        (Desk { token: Some("wrong"), ..Desk::new() }, 401, "this server has a token; send it"),
    ] {
        for (path, more) in [("/v1/reset", json!({})), ("/v1/adjust", json!({"amount": -1}))] {
            let mut client = Talk::to(&desk.running);
            let message = post(path, &ana(&more).to_string());
            let answer = client.ask(desk.token.map_or(message.clone(), |token| by(token, &message)));
            answer.is_problem_of(path, status, said);
        }
        if status == 401 {
            desk = Desk { token: Some("sesame"), talk: Talk::to(&desk.running), ..desk };
        }
        assert_eq!(desk.login(), 200);
        assert_eq!(desk.post("/v1/peek", &ana(&json!({}))).json()["remaining"], 2);
    }
    // What has no rule needs no token, as before.
    let mut desk = Desk::open();
    assert_eq!(desk.post("/v1/reset", &json!({"key": "ana"})).body, r#"{"reset":false}"#);
}

#[test]
fn what_names_no_key_of_an_enforced_rule_says_what_to_send() {
    let mut desk = Desk::new();
    for (body, status, said) in [
        (
            json!({"rule": "lgoin", "key": {}}),
            404,
            "rule \"lgoin\": there is no rule of this name; did you mean \"login\"?",
        ),
        (
            json!({"rule": "office"}),
            409,
            "rule \"office\": has a decision in place of a limit, so it counts nothing",
        ),
        (
            json!({"rule": "tighter"}),
            409,
            "is a candidate, which decides nothing; name the rule that decides",
        ),
        (json!({"rule": "measured", "key": {"user": "a"}}), 409, "rule \"measured\": is in shadow mode now"),
        (
            json!({"rule": "login", "key": {"user": "ana"}}),
            400,
            "key: \"ip\" is a part of the key of rule \"login\" and missing",
        ),
        (json!({"rule": "login"}), 400, "key: \"user\" is a part of the key"),
        (
            json!({"rule": "login", "key": {"usr": "ana", "ip": "192.0.2.7"}}),
            400,
            "key: \"usr\" is no part of this rule's key; /v1/rules says which parts it has",
        ),
        (
            json!({"rule": "login", "key": {}, "attributes": {}}),
            400,
            "has both \"attributes\" and \"key\"; send",
        ),
        (
            json!({"rule": "login", "key": {"ip": "localhost"}}),
            400,
            "attribute \"ip\" is no address; send one such as",
        ),
        (json!({"rule": 5}), 400, "body: invalid type: integer `5`, expected a string"),
        (
            json!({"rule": "login", "key": "ana"}),
            400,
            "body: invalid type: string \"ana\", expected an object of texts",
        ),
        (
            json!({"rule": "login", "limit": "1/s"}),
            400,
            "body: unknown field `limit`, expected one of `rule`, `attributes`, `key`",
        ),
    ] {
        let mut with_amount = body.clone();
        with_amount["amount"] = json!(1);
        for (path, body) in [("/v1/peek", &body), ("/v1/adjust", &with_amount), ("/v1/reset", &body)] {
            desk.post(path, body).is_problem_of(format!("{path} {body}"), status, said);
        }
    }
    for body in [json!({"key": {"user": "ana"}, "amount": 1}), json!({"rule": null, "attributes": {}})] {
        for path in ["/v1/peek", "/v1/adjust", "/v1/reset"] {
            let said =
                "body: \"rule\" is missing: a key by its parts belongs to a rule; send {\"rule\":\"login\"";
            desk.post(path, &body).is_problem_of(format!("{path} {body}"), 400, said);
        }
    }
    for (path, body, said) in [
        ("/v1/adjust", json!({"rule": "site"}), "missing field `amount`"),
        ("/v1/adjust", json!({"rule": "site", "amount": 0}), "positive to charge and negative to give back"),
        ("/v1/reset", json!({"rule": "site", "cost": 1}), "unknown field `cost`"),
        ("/v1/peek", json!({"rule": "site", "cost": 0}), "a whole number of at least 1"),
    ] {
        desk.post(path, &body).is_problem_of(path, 400, said);
    }
    assert_eq!(desk.post("/v1/peek", &json!({"rule": "site"})).json()["remaining"], 100, "nothing was spent");
}
