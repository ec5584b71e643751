//! Tests of overrides, which replace the limit or verdict of a rule for single keys.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use crate::command::call::{Call, address};
use crate::wire::http::{Answer, Talk, by, get, post, with_json};
use crate::wire::{Running, settings};

const RULES: &str = r#"
[[rule]]
name = "api"
key = ["ip"]
limit = "2/h"
on_missing = "skip"

[[rule]]
name = "pair"
key = ["user", "header.x-plan"]
limit = "2/h"
on_missing = "skip"

[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"
"#;

pub(super) struct Keeper {
    running: Arc<Running>,
    talk: Talk,
}

impl Keeper {
    pub(super) fn new() -> Keeper {
        let policy = Policy::from_toml(RULES).expect("rules that hold");
        let running = Running::with(Settings { policy, token: Token::new("sesame"), ..settings() });
        let talk = Talk::to(&running);
        Keeper { running: Arc::new(running), talk }
    }

    /// Opens another connection to the same server.
    pub(super) fn another(&self) -> Keeper {
        Keeper { running: self.running.clone(), talk: Talk::to(&self.running) }
    }

    pub(super) fn put(&mut self, body: &Value) -> Answer {
        self.talk.ask(by("sesame", &with_json("PUT", "/v1/overrides", &body.to_string())))
    }

    /// Puts an override with one more header field.
    pub(super) fn put_with(&mut self, field: &str, body: &Value) -> Answer {
        self.ask_with(field, "PUT", body)
    }

    /// Puts an override with `If-Match: *`.
    pub(super) fn replace(&mut self, body: &Value) -> Answer {
        self.put_with("if-match: *", body)
    }

    pub(super) fn ask_with(&mut self, field: &str, method: &str, body: &Value) -> Answer {
        let message = by("sesame", &with_json(method, "/v1/overrides", &body.to_string()));
        self.talk.ask(message.replacen("\r\n", &format!("\r\n{field}\r\n"), 1))
    }

    pub(super) fn delete(&mut self, body: &Value) -> Answer {
        self.talk.ask(by("sesame", &with_json("DELETE", "/v1/overrides", &body.to_string())))
    }

    pub(super) fn list(&mut self) -> Value {
        let answer = self.talk.ask(by("sesame", &get("/v1/overrides")));
        assert_eq!(answer.status, 200);
        answer.json()["overrides"].clone()
    }

    pub(super) fn admit(&mut self, attributes: &Value) -> Answer {
        self.talk.ask(by("sesame", &post("/v1/admit", &json!({ "attributes": attributes }).to_string())))
    }

    pub(super) fn explain(&mut self, attributes: &Value) -> Value {
        let message = post("/v1/explain", &json!({ "attributes": attributes }).to_string());
        self.talk.ask(by("sesame", &message)).json()
    }
}

/// Removes the end of an override from the reply. Asserts that it is a date, and returns it.
fn ends_with_a_date(fields: &mut Value) -> String {
    let until = fields["until"].take().as_str().expect("a date").to_owned();
    assert!(until.len() == 20 && until.starts_with("20") && until.ends_with('Z'), "{until}");
    until
}

#[test]
fn another_limit_holds_for_one_key() {
    let mut keeper = Keeper::new();
    let ana = json!({"ip": "192.0.2.7"});
    assert_eq!(keeper.admit(&ana).json()["limit"], 2);
    let put = keeper.put(&json!({"rule": "api", "key": ana, "limit": "100/h", "for": "2h"}));
    assert_eq!(put.status, 200, "{put:?}");
    let mut stored = put.json();
    ends_with_a_date(&mut stored);
    assert_eq!(stored.as_object_mut().expect("an object").remove("warnings"), Some(json!([])));
    let at = stored["at"].take();
    assert!(at.as_str().is_some_and(|at| at.ends_with('Z')), "{at}");
    let etag = put.field("etag").expect("a tag");
    let expected = json!({
        "rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "100/h", "decision": null, "until": null,
        "by": "127.0.0.1", "at": null, "in_effect": true, "etag": etag,
    });
    assert_eq!(stored, expected);

    let admitted = keeper.admit(&ana).json();
    assert_eq!((&admitted["limit"], &admitted["rule"]), (&json!(100), &json!("api")));
    assert_eq!(keeper.admit(&json!({"ip": "192.0.2.8"})).json()["limit"], 2);
    let mut listed = keeper.list();
    ends_with_a_date(&mut listed[0]);
    assert_eq!(listed[0]["at"].take(), at);
    assert_eq!(listed, json!([expected]));

    assert_eq!(keeper.delete(&json!({"rule": "api", "key": ana})).body, r#"{"removed":true}"#);
    assert_eq!(keeper.delete(&json!({"rule": "api", "key": ana})).body, r#"{"removed":false}"#);
    assert_eq!((keeper.list(), &keeper.admit(&ana).json()["limit"]), (json!([]), &json!(2)));
}

#[test]
fn an_override_may_always_allow_or_always_deny_a_key() {
    let mut keeper = Keeper::new();
    let ana = json!({"ip": "192.0.2.7"});
    assert_eq!(
        keeper.put(&json!({"rule": "api", "key": ana, "decision": "deny", "for": "365d"})).status,
        200
    );
    let refused = keeper.admit(&ana);
    assert_eq!((refused.status, &refused.json()["rule"]), (403, &json!("api")));
    let explained = keeper.explain(&ana);
    assert_eq!((&explained["allowed"], &explained["rule"]), (&json!(false), &json!("api")));
    let api = &explained["rules"][0];
    assert_eq!((&api["overridden"], &api["allowed"]), (&json!(true), &json!(false)));
    assert_eq!((&api["override"]["decision"], &api["override"]["by"]), (&json!("deny"), &json!("127.0.0.1")));
    assert!(api["override"]["until"].is_string() && api["override"]["limit"].is_null(), "{api}");
    assert!(refused.detail().starts_with("An override of this key denies it under rule \"api\";"));
    assert_eq!(refused.json()["overridden"], true);

    assert_eq!(
        keeper.replace(&json!({"rule": "api", "key": ana, "decision": "allow", "for": "90s"})).status,
        200
    );
    assert_eq!(keeper.list().as_array().unwrap().len(), 1);
    for _ in 0..3 {
        assert_eq!(keeper.admit(&ana).json()["rule"], Value::Null);
    }
}

#[test]
fn a_group_of_addresses_names_its_key_if_the_rule_counts_by_it() {
    let mut keeper = Keeper::new();
    let put = |keeper: &mut Keeper, ip: &str, until: &str| {
        keeper.put(&json!({"rule": "api", "key": {"ip": ip}, "decision": "deny", "for": until}))
    };
    let stored = put(&mut keeper, "2001:db8::/64", "1h");
    assert_eq!((stored.status, &stored.json()["key"]), (200, &json!({"ip": "2001:db8::/64"})));
    assert_eq!(keeper.admit(&json!({"ip": "2001:db8::7"})).status, 403);
    put(&mut keeper, "2001:db8::/48", "1h")
        .is_problem(400, "counts by /64; send an address, or the key as it is listed");
    put(&mut keeper, "192.0.2.0/24", "1h").is_problem(400, "and rule \"api\" counts by /32");
    put(&mut keeper, "2001:db8::9", "never")
        .is_problem(400, "for \"never\": is no length; send \"until\":\"never\"");
    keeper.admit(&json!({"ip": "2001:db8::/64"})).is_problem(400, "attribute \"ip\" is no address");
}

#[test]
fn an_end_is_to_come_and_not_too_far_away() {
    let mut keeper = Keeper::new();
    let ana = json!({"ip": "192.0.2.7"});
    let body = |until: Value| json!({"rule": "api", "key": ana, "decision": "allow", "until": until});
    // The end of an override of known length gives the current date.
    let put = keeper.put(&json!({"rule": "api", "key": ana, "decision": "allow", "for": "365d"})).json();
    let in_a_year: jiff::Timestamp = put["until"].as_str().unwrap().parse().unwrap();
    let now = in_a_year.as_second() - 365 * 24 * 3600;

    for until in [json!(now + 3600), json!(now + 366 * 24 * 3600 - 60), json!(in_a_year.to_string())] {
        assert_eq!(keeper.replace(&body(until.clone())).status, 200, "{until}");
    }
    let offset = jiff::Timestamp::from_second(now + 3600).unwrap().to_string().replace('Z', "+00:00");
    assert_eq!(keeper.replace(&body(json!(offset))).status, 200);
    for (until, said) in [
        (json!(now - 60), "is over; send a date to come"),
        (json!(0), "until 1970-01-01T00:00:00Z: is over"),
        (json!(-1), "is over"),
        (json!(now + 366 * 24 * 3600 + 60), "is more than 366 days ahead"),
        (json!(u64::MAX), "is more than 366 days ahead"),
        (json!("1999-12-31T23:59:59Z"), "until 1999-12-31T23:59:59Z: is over"),
        (
            json!("tomorrow"),
            "expected a date such as \"2026-11-15T12:00:00Z\", whole seconds since 1970, or \"never\"",
        ),
        (json!("2026-11-15T12:00:00"), "expected a date such as"),
        (json!(1.5), "floating point `1.5`, expected a date"),
    ] {
        let answer = keeper.put(&body(until.clone()));
        answer.is_problem_of(&until, 400, said);
    }
}

#[test]
fn an_override_without_an_end_says_so_and_is_listed_last() {
    let mut keeper = Keeper::new();
    let put = |keeper: &mut Keeper, ip: &str, until: Value| {
        keeper.put(&json!({"rule": "api", "key": {"ip": ip}, "decision": "deny", "until": until}))
    };
    let never = put(&mut keeper, "192.0.2.7", json!("never"));
    assert_eq!((never.status, &never.json()["until"]), (200, &Value::Null));
    let warning = never.json()["warnings"][0].as_str().unwrap_or_default().to_owned();
    assert!(warning.starts_with("until \"never\": this server keeps overrides in memory"), "{warning}");
    let (status, body) = {
        let again = put(&mut keeper, "192.0.2.7", json!("never"));
        (again.status, again.json())
    };
    assert_eq!((status, &body["at"], &body["etag"]), (200, &never.json()["at"], &never.json()["etag"]));
    let soon = json!({"rule": "api", "key": {"ip": "192.0.2.8"}, "decision": "deny", "for": "366d"});
    assert_eq!(keeper.put(&soon).status, 400, "a span is at most a year");
    let soon = json!({"rule": "api", "key": {"ip": "192.0.2.8"}, "decision": "deny", "for": "365d"});
    assert_eq!(keeper.put(&soon).status, 200);
    let ips: Vec<_> = keeper.list().as_array().unwrap().iter().map(|one| one["key"]["ip"].clone()).collect();
    assert_eq!(ips, ["192.0.2.8", "192.0.2.7"]);
    assert_eq!(keeper.admit(&json!({"ip": "192.0.2.7"})).status, 403);
}

#[test]
fn an_override_has_its_author_and_its_key_may_be_named_as_it_is_listed() {
    let mut keeper = Keeper::new();
    let body = json!({"rule": "api", "key": {"ip": "2001:db8::7"}, "decision": "deny", "until": "never"});
    keeper.put_with("x-tidegate-by: ana@example.com\r\nx-tidegate-by: bob", &body).is_problem_of(
        &body,
        400,
        "X-Tidegate-By: is no name; send one field with a text of 1 to 256 bytes",
    );
    let put = keeper.put_with("X-Tidegate-By: Ana \"the\" <ana@example.com>", &body);
    assert_eq!((put.status, &put.json()["by"]), (200, &json!("Ana \"the\" <ana@example.com>")));
    let listed = keeper.list()[0]["key"].clone();
    assert_eq!(listed, json!({"ip": "2001:db8::/64"}), "addresses of IPv6 are counted by network");
    assert_eq!(keeper.admit(&json!({"ip": "2001:db8::8"})).status, 403);
    assert_eq!(keeper.delete(&json!({"rule": "api", "key": listed})).body, r#"{"removed":true}"#);
    assert_eq!(keeper.delete(&json!({"rule": "api", "key": listed})).body, r#"{"removed":false}"#);
    let other = json!({"rule": "api", "key": {"ip": "2001:db8::/56"}});
    keeper.delete(&other).is_problem_of(&other, 400, "key: \"ip\" has the prefix length /56");
}

/// The body, the status and the expected error.
const WRONG_PUTS: &str = r#"
{} | 400 | missing field `rule`
{"rule": "api", "for": "1h"} | 400 | missing field `key`
{"rule": "api", "key": {"ip": "192.0.2.7"}, "for": "1h"} | 400 | either a limit or a decision; send one
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s", "decision": "allow", "for": "1h"} | 400 | either a limit or a decision
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s"} | 400 | either for or until; send one of them
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s", "for": "1h", "until": 1} | 400 | either for or until
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "60/min", "for": "1h"} | 400 | write "60/m" or "60/60s" (at character 4)
{"rule": "api", "key": {"ip": "192.0.2.7"}, "decision": "maybe", "for": "1h"} | 400 | unknown variant `maybe`, expected `allow` or `deny`
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s", "for": "1y"} | 400 | for "1y": unknown unit "y"
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s", "for": "366d"} | 400 | for "366d": longer than a year
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s", "for": "0s"} | 400 | for "0s": no time at all
{"rule": "api", "key": {"ip": "x"}, "limit": "1/s", "for": "1h"} | 400 | attribute "ip" is no address
{"rule": "api", "key": {}, "limit": "1/s", "for": "1h"} | 400 | key: "ip" is a part of this rule's key and missing
{"rule": "api", "key": {"ip": "192.0.2.7", "user": "ana"}, "limit": "1/s", "for": "1h"} | 400 | key: "user" is no part of this rule's key
{"rule": "apy", "key": {"ip": "192.0.2.7"}, "limit": "1/s", "for": "1h"} | 404 | rule "apy": there is no rule of this name with a limit
{"rule": "office", "key": {}, "limit": "1/s", "for": "1h"} | 404 | rule "office": there is no rule
"#;
const WRONG_DELETES: &str = r#"
{"rule": "api"} | 400 | missing field `key`
{"rule": "api", "key": {}} | 400 | "ip" is a part of this rule's key and missing
{"rule": "api", "key": {"ip": "192.0.2.7"}, "limit": "1/s"} | 400 | unknown field `limit`
{"rule": "apy", "key": {"ip": "192.0.2.7"}} | 404 | there is no rule of this name
"#;

#[test]
fn an_invalid_override_is_an_error_with_its_reason() {
    let mut keeper = Keeper::new();
    for (table, ask) in
        [(WRONG_PUTS, Keeper::put as fn(&mut Keeper, &Value) -> Answer), (WRONG_DELETES, Keeper::delete)]
    {
        for [body, status, said] in conformance::rows(table) {
            let answer = ask(&mut keeper, &body.parse().expect(body));
            assert_eq!(answer.status.to_string(), status, "{body}");
            assert!(answer.detail().contains(said), "{body} -> {}", answer.detail());
        }
    }
    assert_eq!(keeper.list(), json!([]));
}

#[test]
fn a_key_of_several_parts_is_meant_in_any_order_and_listed_by_rule_and_end() {
    let mut keeper = Keeper::new();
    let pair = json!({"header.X-Plan": "free", "user": "ana"});
    for (rule, key, span) in [
        ("pair", &pair, "2h"),
        ("api", &json!({"ip": "192.0.2.8"}), "2h"),
        ("api", &json!({"ip": "192.0.2.7"}), "1h"),
    ] {
        let put = keeper.put(&json!({"rule": rule, "key": key, "decision": "deny", "for": span}));
        assert_eq!(put.status, 200, "{put:?}");
    }
    let keys: Vec<_> = keeper.list().as_array().unwrap().iter().map(|one| one["key"].clone()).collect();
    let expected = [
        json!({"ip": "192.0.2.7"}),
        json!({"ip": "192.0.2.8"}),
        json!({"user": "ana", "header.x-plan": "free"}),
    ];
    assert_eq!(keys, expected);
    assert_eq!(keeper.admit(&json!({"user": "ana", "header.x-plan": "free"})).status, 403);
    assert_eq!(keeper.admit(&json!({"user": "ana", "header.x-plan": "paid"})).status, 200);
}

#[test]
fn overrides_may_be_looked_at_without_a_token_where_there_is_none() {
    let running = Running::under(RULES);
    let answer = Talk::to(&running).get("/v1/overrides");
    assert_eq!((answer.status, &*answer.body), (200, r#"{"kept_in":"memory","wrong":null,"overrides":[]}"#));
}

#[test]
fn long_keys_fill_the_bytes_for_overrides_and_the_next_is_an_error_with_a_remedy() {
    let mut keeper = Keeper::new();
    let key = |nth: usize| json!({"user": format!("{nth}-{}", "x".repeat(30_000)), "header.x-plan": "free"});
    let put = |keeper: &mut Keeper, nth: usize| {
        keeper.put(&json!({"rule": "pair", "key": key(nth), "decision": "deny", "for": "2h"}))
    };
    let (full, refused) = (0..1000)
        .map(|nth| (nth, put(&mut keeper, nth)))
        .find(|(_, answer)| answer.status != 200)
        .expect("a thousand keys of 30,000 bytes are too many");
    // Each key is stored whole and as its parts. 4 MiB hold 69 keys of 60,000 bytes, and the rest is too small for
    // another.
    assert_eq!((full, refused.status), (69, 409), "{}", refused.body);
    let detail = refused.detail();
    assert!(detail.starts_with("key: takes 600") && detail.contains("of the 4194304 bytes"), "{detail}");
    assert!(
        detail.ends_with("; delete some, write a rule, or count by a hash of what is so long"),
        "{detail}"
    );
    assert_eq!(keeper.list().as_array().map(Vec::len), Some(69));
    assert_eq!(keeper.admit(&key(68)).status, 403, "those that are there hold");
    assert_eq!(keeper.admit(&key(69)).status, 200);

    assert_eq!(keeper.delete(&json!({"rule": "pair", "key": key(0)})).body, r#"{"removed":true}"#);
    assert_eq!(put(&mut keeper, 69).status, 200);
    let again = json!({"rule": "pair", "key": key(69), "decision": "deny", "for": "3h"});
    assert_eq!(keeper.replace(&again).status, 200, "one that replaces another takes no more");
}

#[test]
fn an_override_of_another_algorithm_is_warned_of_in_the_answer_and_in_the_log() {
    let call =
        Call::from("override_warning").file("tidegate.toml", RULES).variable("TIDEGATE_TOKEN", "sesame");
    let (process, ready) = call.serve(&["--config", "tidegate.toml"]);
    let mut talk = Talk::at(address(&ready, "http"));
    let mut put = |address: &str, limit: &str| {
        let body = json!({"rule": "api", "key": {"ip": address}, "limit": limit, "for": "2h"});
        talk.ask(by("sesame", &with_json("PUT", "/v1/overrides", &body.to_string()))).json()["warnings"]
            .clone()
    };
    assert_eq!(put("192.0.2.7", "100/h"), json!([]));
    let warning = "limit \"100/h sliding-log\": is a sliding-log and rule \"api\" a token-bucket, so what this key \
                   has used does not count under the override, nor the other way round; write a limit of the same algorithm";
    assert_eq!(put("192.0.2.8", "100/h sliding-log"), json!([warning]));
    process.signal(rustix::process::Signal::TERM);
    let said = process.end().err;
    let warned = format!("rules: a key of rule \"api\" has an override\nwarning: {warning}\n");
    assert_eq!(said.matches("has an override").count(), 1, "{said}");
    assert!(said.contains(&warned), "{said}");
}
