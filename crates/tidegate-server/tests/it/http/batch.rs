//! Many requests at once.

use serde_json::{Value, json};

use crate::wire::Running;
use crate::wire::http::{Answer, Talk};

const MAX_REQUESTS: usize = 1000;
const MAX_BATCH_BYTES: usize = 1 << 20;

const RULES: &str = r#"
[[rule]]
name = "robots"
when = { user = "robot" }
decision = "deny"

[[rule]]
name = "api"
key = ["user"]
limit = "2/60s"
on_missing = "skip"

[[rule]]
name = "slow"
when = { path = "/slow" }
limit = "1/h"
"#;

fn of(user: &str) -> Value {
    json!({"attributes": {"user": user}})
}

fn ask(talk: &mut Talk, requests: &[Value], all: bool) -> Answer {
    talk.post("/v1/admit/batch", &json!({"requests": requests, "all": all}).to_string())
}

fn members(answer: &Answer, name: &str) -> Vec<Value> {
    answer.json()["answers"].as_array().expect("a list").iter().map(|one| one[name].clone()).collect()
}

#[test]
fn each_request_is_answered_by_itself_and_in_order() {
    let running = Running::under(RULES);
    let mut talk = Talk::to(&running);
    let one = r#"{"requests":[{"attributes":{"user":"ana"}}]}"#;
    let answer = talk.post("/v1/admit/batch", one);
    let expected = r#"{"allowed":true,"answers":[{"allowed":true,"limit":2,"remaining":1,"retry_after_ms":null,"reset_after_ms":30000,"delay_ms":0,"rule":"api","decided_by":"memory"}]}"#;
    assert_eq!((answer.status, &*answer.body), (200, expected));

    let answer = ask(&mut talk, &["ana", "ana", "robot", "bob"].map(of), false);
    assert_eq!((answer.status, &answer.json()["allowed"]), (200, &json!(false)));
    assert_eq!(members(&answer, "allowed"), [json!(true), json!(false), json!(false), json!(true)]);
    assert_eq!(members(&answer, "rule"), ["api", "api", "robots", "api"].map(Value::from));
    assert_eq!(members(&answer, "retry_after_ms"), [json!(null), json!(30_000), json!(null), json!(null)]);
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (None, None));
    assert_eq!(ask(&mut talk, &[], false).body, r#"{"allowed":true,"answers":[]}"#);
}

#[test]
fn all_are_allowed_or_nothing_is_spent() {
    let running = Running::under(RULES);
    let mut talk = Talk::to(&running);
    assert_eq!(ask(&mut talk, &["ana", "bob"].map(of), true).status, 200);

    let answer = ask(&mut talk, &["ana", "ana", "eve"].map(of), true);
    assert_eq!(answer.status, 429);
    let told = answer.json();
    assert_eq!((&told["allowed"], &told["binding"]), (&json!(false), &json!(0)));
    assert_eq!(told["violated-policies"], json!(["api"]));
    assert!(answer.detail().starts_with("Refused by rule \"api\"; the same request passes in 30000 ms"));
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (Some("30"), Some("no-store")));
    assert_eq!(members(&answer, "allowed"), [json!(false), json!(false), json!(false)]);
    assert_eq!(members(&answer, "delay_ms"), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(members(&answer, "retry_after_ms"), [json!(30_000), json!(30_000), json!(0)]);

    // Nothing was spent: what was left then is left now.
    assert_eq!(members(&ask(&mut talk, &["ana", "eve"].map(of), true), "remaining"), [json!(0), json!(1)]);
}

#[test]
fn the_longest_wait_binds_and_what_is_forbidden_or_can_never_pass_has_none() {
    let running = Running::under(RULES);
    let mut talk = Talk::to(&running);
    let slow = json!({"attributes": {"path": "/slow"}});
    assert_eq!(ask(&mut talk, &[of("ana"), of("ana"), slow.clone()], true).status, 200);

    let answer = ask(&mut talk, &[of("ana"), slow.clone(), of("bob")], true);
    assert_eq!((answer.status, &answer.json()["binding"]), (429, &json!(1)));
    assert_eq!(answer.field("retry-after"), Some("3600"));

    let never = json!({"attributes": {"user": "bob"}, "cost": 3});
    let answer = ask(&mut talk, &[of("ana"), slow.clone(), never.clone()], true);
    assert_eq!((answer.status, &answer.json()["binding"]), (429, &json!(2)));
    assert_eq!(answer.field("retry-after"), None);
    assert!(answer.detail().starts_with("A cost of 3 can never pass: rule \"api\""));

    let answer = ask(&mut talk, &[slow, never, of("robot"), of("robot")], true);
    assert_eq!((answer.status, &answer.json()["binding"]), (403, &json!(2)));
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (None, Some("no-store")));
    assert!(answer.detail().starts_with("Rule \"robots\" refuses this"));
    assert_eq!(answer.json().get("violated-policies"), None);
    assert_eq!(members(&answer, "rule")[2], "robots");
}

#[test]
fn so_many_requests_are_taken_and_one_more_is_not() {
    let running = Running::start();
    let mut talk = Talk::to(&running);
    let many = |count: usize| vec![json!({"attributes": {}}); count];
    for all in [false, true] {
        let answer = ask(&mut talk, &many(MAX_REQUESTS), all);
        assert_eq!((answer.status, members(&answer, "allowed").len()), (200, MAX_REQUESTS));
        let answer = ask(&mut talk, &many(MAX_REQUESTS + 1), all);
        assert_eq!(answer.status, 400);
        assert_eq!(answer.detail(), "requests: 1001 of them; send at most 1000 at a time");
    }
}

#[test]
fn the_longest_batch_is_taken_and_the_next_is_not() {
    let running = Running::start();
    let body = |bytes: usize| {
        let rest = r#"{"requests":[]}"#;
        format!("{}{rest}", " ".repeat(bytes - rest.len()))
    };
    assert_eq!(Talk::to(&running).post("/v1/admit/batch", &body(MAX_BATCH_BYTES)).status, 200);
    let answer = Talk::to(&running).post("/v1/admit/batch", &body(MAX_BATCH_BYTES + 1));
    assert_eq!((answer.status, answer.field("connection")), (413, Some("close")));
    assert!(answer.detail().contains("more than 1048576 bytes"));
}

#[test]
fn what_is_wrong_with_a_batch_is_said() {
    let running = Running::start();
    let mut talk = Talk::to(&running);
    for (body, said) in [
        ("", r#"send one such as {"requests":[{"attributes":{"ip":"192.0.2.7"}}]}"#),
        ("{}", "missing field `requests`"),
        (r#"{"requests":{}}"#, "invalid type: map, expected a sequence"),
        (r#"{"requests":[7]}"#, "invalid type: integer `7`, expected an object such as"),
        (r#"{"requests":[[{}]]}"#, "invalid type: sequence, expected an object such as"),
        (r#"{"requests":[{"attributes":{"ip":"x"}}]}"#, r#"attribute "ip" is no address"#),
        (r#"{"requests":[],"all":1}"#, "invalid type: integer `1`, expected a boolean"),
        (r#"{"requests":[],"any":true}"#, "unknown field `any`, expected `requests` or `all`"),
    ] {
        let answer = talk.post("/v1/admit/batch", body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.detail().contains(said), "{body} -> {}", answer.detail());
    }
}

#[test]
fn permits_come_with_the_answers_that_have_them() {
    let running = Running::under("[[rule]]\nname = 'up'\nkey = ['user']\nlimit = '1/30s concurrency'");
    let mut talk = Talk::to(&running);
    let answer = ask(&mut talk, &["ana", "ana", "bob"].map(of), false);
    let permits = members(&answer, "permit");
    assert!(permits[0].is_string() && permits[1].is_null() && permits[2].is_string(), "{permits:?}");
    let released = talk.post("/v1/release", &json!({"permit": permits[0]}).to_string());
    assert_eq!(released.body, r#"{"released":true}"#);
    assert_eq!(ask(&mut talk, &[of("ana")], true).status, 200);
}

#[test]
fn who_is_refused_has_no_permit_also_where_a_candidate_would_have_one() {
    let running = Running::under(
        "[[rule]]\nname = 'uploads'\nlimit = '1/30s concurrency'\n\
         [[rule]]\nname = 'wide'\ncandidate_for = 'uploads'\nlimit = '5/30s concurrency'\n",
    );
    let body = r#"{"requests":[{"attributes":{}},{"attributes":{}}]}"#;
    let answers = Talk::to(&running).post("/v1/admit/batch", body).json()["answers"].clone();
    let told = [0, 1].map(|nth| (answers[nth]["allowed"].clone(), answers[nth]["permit"].is_string()));
    assert_eq!(told, [(true.into(), true), (false.into(), false)]);
}
