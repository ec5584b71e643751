//! Tests of penalties over HTTP: keys that a rule denies too often are banned.

use serde_json::{Value, json};
use tidegate::{HOUR, MILLISECOND};
use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use super::pages::metrics;
use crate::wire::http::{Answer, Talk, by, get, post};
use crate::wire::{Running, settings};

pub(crate) const RULES: &str = r#"
[[rule]]
name = "login"
when = { path = "/login" }
key = ["user"]
limit = "1/h"
penalty = { after = 3, within = "1h", for = "10h" }

[[rule]]
name = "stricter"
candidate_for = "login"
limit = "1/2h"

[[rule]]
name = "measured"
when = { path = "/measured" }
key = ["user"]
limit = "1/h"
mode = "shadow"
penalty = { after = 3, within = "1h", for = "10h" }

[[rule]]
name = "day"
key = ["user"]
limit = "100/d"
"#;

const HOUR_MS: u64 = 3_600_000;

/// A server with these rules and a token, and a client with the token.
pub(crate) struct Desk {
    pub(crate) running: Running,
    talk: Talk,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let policy = Policy::from_toml(RULES).expect("valid rules");
        let running = Running::with(Settings { policy, token: Token::new("sesame"), ..settings() });
        let talk = Talk::to(&running);
        Desk { running, talk }
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.talk.ask(by("sesame", &post(path, &body.to_string())))
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.talk.ask(by("sesame", &get(path)))
    }

    fn admit(&mut self, path: &str, user: &str) -> Answer {
        self.post("/v1/admit", &json!({"attributes": {"path": path, "user": user}}))
    }

    /// Sends so many logins, and returns the last answer.
    pub(crate) fn logins(&mut self, user: &str, count: usize) -> Answer {
        (0..count).map(|_| self.admit("/login", user)).last().expect("at least one")
    }

    fn peek(&mut self, user: &str) -> Value {
        self.post("/v1/peek", &json!({"rule": "login", "key": {"user": user}})).json()
    }

    fn explain(&mut self, path: &str) -> Value {
        self.post("/v1/explain", &json!({"attributes": {"path": path, "user": "ana"}})).json()
    }

    /// Returns the ends of the listed bans, by user.
    fn bans(&mut self, query: &str) -> Vec<(String, u64)> {
        let bans = self.get(&format!("/v1/bans{query}")).json()["bans"].take();
        let bans = bans.as_array().expect("a list").iter();
        bans.map(|ban| {
            assert_eq!(ban["rule"], "login", "{ban}");
            let user = ban["key"][0].as_str().expect("text").to_owned();
            (user, ban["ends_in_ms"].as_u64().expect("a number"))
        })
        .collect()
    }
}

#[test]
fn the_third_denial_begins_a_ban_and_reports_its_end() {
    let mut desk = Desk::new();
    let allowed = desk.logins("ana", 1);
    assert_eq!((allowed.status, allowed.json().get("ban")), (200, None));
    for _ in 0..2 {
        let denied = desk.logins("ana", 1);
        denied.is_problem(429, "Denied by rule \"login\"; the same request passes in 3600000 ms");
        assert_eq!((denied.json().get("ban"), denied.json()["limits"][0].get("ban")), (None, None));
    }
    let begun = desk.logins("ana", 1);
    begun.is_problem(
        429,
        "The key is banned by rule \"login\", for 10h after 3 denials within 1h; the same request passes in 36000000 ms \
         if no other request spends meanwhile.",
    );
    let (retry, body) = (begun.field("retry-after").map(str::to_owned), begun.json());
    assert_eq!((retry.as_deref(), &body["retry_after_ms"]), (Some("36000"), &json!(10 * HOUR_MS)));
    assert_eq!((&body["ban"], &body["rule"]), (&json!("begun"), &json!("login")));
    let limits = &body["limits"];
    assert_eq!((&limits[0]["ban"], &limits[1]["name"]), (&json!("begun"), &json!("day")));
    assert_eq!(limits[1].get("ban"), None);

    desk.running.clock.advance(10 * HOUR - MILLISECOND);
    let banned = desk.logins("ana", 1);
    assert_eq!((banned.status, &banned.json()["ban"]), (429, &json!("in_force")));
    assert_eq!(banned.json()["retry_after_ms"], 1);
    assert_eq!(desk.logins("bob", 1).status, 200, "another key is not banned");
    desk.running.clock.advance(MILLISECOND);
    assert_eq!(desk.logins("ana", 1).status, 200);
    // Strikes begin anew.
    assert_eq!(desk.logins("ana", 2).json().get("ban"), None);
    assert_eq!(desk.logins("ana", 1).json()["ban"], "begun");
}

#[test]
fn a_batch_and_a_proxy_see_the_ban_too() {
    let mut desk = Desk::new();
    desk.logins("ana", 4);
    let of = |user: &str| json!({"attributes": {"path": "/login", "user": user}});
    let batch = desk.post("/v1/admit/batch", &json!({"requests": [of("ana"), of("bob")]})).json();
    assert_eq!((&batch["answers"][0]["ban"], batch["answers"][1].get("ban")), (&json!("in_force"), None));
    let batch = desk.post("/v1/admit/batch", &json!({"all": true, "requests": [of("eve"), of("ana")]}));
    batch.is_problem(429, "The key is banned by rule \"login\", for 10h after 3 denials within 1h; ");
    let answers = &batch.json()["answers"];
    assert_eq!((answers[0].get("ban"), &answers[1]["ban"]), (None, &json!("in_force")));
    let message = by("sesame", &get("/v1/auth?user=ana"));
    let message = message.replacen("\r\n", "\r\nx-forwarded-uri: /login\r\n", 1);
    let proxied = desk.talk.ask(message);
    proxied.is_problem(429, "The key is banned by rule \"login\"");
    assert_eq!(proxied.json()["ban"], "in_force");
}

#[test]
fn a_peek_and_an_explanation_show_the_penalty_and_the_ban() {
    let mut desk = Desk::new();
    let of_login = |explained: &Value| {
        let rule = &explained["rules"][0];
        (rule["allowed"].clone(), rule["ban"].clone(), rule["retry_after_ms"].clone())
    };
    desk.logins("ana", 3);
    // The next denial would be the third.
    assert_eq!(desk.peek("ana")["ban"], "begun");
    assert_eq!(of_login(&desk.explain("/login")), (json!(false), json!("begun"), json!(10 * HOUR_MS)));
    assert_eq!(desk.bans(""), []);
    desk.logins("ana", 1);
    desk.running.clock.advance(HOUR);
    assert_eq!((&desk.peek("ana")["ban"], &desk.peek("bob")["ban"]), (&json!("in_force"), &Value::Null));
    let explained = desk.explain("/login");
    assert_eq!(of_login(&explained), (json!(false), json!("in_force"), json!(9 * HOUR_MS)));
    let penalty = json!({"after": 3, "within_ms": HOUR_MS, "for_ms": 10 * HOUR_MS});
    assert_eq!(explained["rules"][0]["penalty"], penalty);
    assert_eq!(explained["rules"][1]["penalty"], penalty, "a candidate has the penalty of its rule");
    assert_eq!(
        (&explained["rules"][3]["penalty"], &explained["rules"][3]["ban"]),
        (&Value::Null, &Value::Null)
    );
    let rules = desk.get("/v1/rules").json();
    assert_eq!((&rules["rules"][0]["penalty"], &rules["rules"][3]["penalty"]), (&penalty, &Value::Null));
}

#[test]
fn bans_are_listed_and_a_reset_lifts_them() {
    let mut desk = Desk::new();
    assert_eq!(desk.get("/v1/bans").body, r#"{"bans":[]}"#);
    desk.logins("ana", 4);
    let ana = r#"{"bans":[{"rule":"login","key":["ana"],"ends_in_ms":36000000}]}"#;
    assert_eq!(desk.get("/v1/bans").body, ana);
    desk.running.clock.advance(HOUR);
    desk.logins("bob", 4);
    let (of_ana, of_bob) = (("ana".to_owned(), 9 * HOUR_MS), ("bob".to_owned(), 10 * HOUR_MS));
    assert_eq!(desk.bans(""), [of_bob.clone(), of_ana.clone()], "the longest first");
    assert_eq!(desk.bans("?n=1&rule=login"), [of_bob]);
    assert_eq!(desk.bans("?rule=day"), []);

    let reset = desk.post("/v1/reset", &json!({"rule": "login", "key": {"user": "bob"}}));
    assert_eq!(reset.json(), json!({"reset": true}));
    assert_eq!(desk.bans("?n=1"), [of_ana], "a ban that was lifted takes no place of another");
    assert_eq!(desk.logins("bob", 1).status, 200);
    // Strikes are forgotten as well.
    assert_eq!(desk.logins("bob", 2).json().get("ban"), None);
    desk.running.clock.advance(9 * HOUR);
    assert_eq!(desk.bans(""), [], "a ban that has ended is not listed");
}

#[test]
fn a_query_for_bans_has_a_rule_and_a_number() {
    let mut desk = Desk::new();
    for (query, status, said) in [
        ("n=0", 400, "n \"0\": has to be a number from 1 to 100"),
        ("n=101", 400, "n \"101\": has to be a number from 1 to 100"),
        ("by=denied", 400, "\"by\" is no parameter; there are rule and n"),
        ("rule=%zz", 400, "rule: this is no percent-encoded text"),
        ("rule=unknown", 404, "rule \"unknown\": there is no rule of this name; /v1/rules lists"),
    ] {
        desk.get(&format!("/v1/bans?{query}")).is_problem_of(query, status, said);
    }
    assert_eq!(desk.post("/v1/bans", &json!({})).field("allow"), Some("GET, HEAD"));
    assert_eq!(desk.talk.get("/v1/bans").status, 401, "keys are not for everyone");
}

#[test]
fn bans_are_counted_and_a_shadow_rule_bans_no_key() {
    let mut desk = Desk::new();
    desk.logins("ana", 6);
    for _ in 0..6 {
        let measured = desk.admit("/measured", "ana");
        assert_eq!((measured.status, measured.json().get("ban")), (200, None));
    }
    assert_eq!(desk.bans("").len(), 1);
    let explained = desk.explain("/measured");
    assert_eq!((&explained["allowed"], &explained["rules"][2]["ban"]), (&json!(true), &json!("in_force")));
    let numbers = metrics(&desk.get("/metrics").body);
    for (series, number) in [
        (r#"tidegate_bans_total{rule="login"}"#, Some(1.0)),
        (r#"tidegate_banned_total{rule="login"}"#, Some(2.0)),
        (r#"tidegate_admissions_total{rule="login",verdict="denied"}"#, Some(5.0)),
        (r#"tidegate_shadow_bans_total{rule="measured"}"#, Some(1.0)),
        (r#"tidegate_shadow_banned_total{rule="measured"}"#, Some(2.0)),
        (r#"tidegate_shadow_bans_total{rule="stricter"}"#, Some(1.0)),
        (r#"tidegate_bans_total{rule="measured"}"#, None),
        (r#"tidegate_bans_total{rule="day"}"#, None),
        (r#"tidegate_shadow_bans_total{rule="login"}"#, None),
    ] {
        assert_eq!(numbers.get(series).copied(), number, "{series} in {numbers:#?}");
    }
    let rules = desk.get("/v1/rules").json();
    let counts = &rules["rules"][0]["counts"];
    assert_eq!((&counts["denied"], &counts["bans"], &counts["banned"]), (&json!(5), &json!(1), &json!(2)));
    let counts = &rules["rules"][2]["counts"]["shadow"];
    assert_eq!((&counts["denied"], &counts["bans"], &counts["banned"]), (&json!(5), &json!(1), &json!(2)));
}
