//! Tests of the operations on one key.

use serde_json::{Value, json};
use tidegate::{MILLISECOND, SECOND};

use crate::wire::Running;
use crate::wire::http::{Answer, Talk};

fn post(talk: &mut Talk, path: &str, body: &Value) -> Answer {
    talk.post(path, &body.to_string())
}

fn ok(talk: &mut Talk, path: &str, body: &Value) -> Value {
    let answer = post(talk, path, body);
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")), "{answer:?}");
    answer.json()
}

#[test]
fn a_take_returns_remaining_and_reset_after() {
    let running = Running::start();
    let answer = Talk::to(&running).post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 15"}"#);
    let expected = r#"{"allowed":true,"limit":15,"remaining":14,"retry_after_ms":null,"reset_after_ms":2000,"delay_ms":0,"rule":null,"decided_by":"memory"}"#;
    assert_eq!((answer.status, &*answer.body), (200, expected));
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("retry-after"), None);
}

#[test]
fn a_denial_is_a_problem_with_the_time_to_retry() {
    let (running, mut talk) = Running::start().with_http();
    let ask = json!({"key": "ana", "limit": "4/10s burst 1"});
    ok(&mut talk, "/v1/take", &ask);
    running.clock.advance(400 * MILLISECOND);

    let refused = post(&mut talk, "/v1/take", &ask);
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.json(),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Quota exceeded",
            "status": 429,
            "detail": "Denied; the same request passes in 2100 ms if no other request spends meanwhile.",
            "violated-policies": ["adhoc"],
            "allowed": false, "limit": 1, "remaining": 0, "retry_after_ms": 2100, "reset_after_ms": 2100,
            "delay_ms": null, "rule": null, "decided_by": "memory",
        })
    );
    assert_eq!(refused.field("content-type"), Some("application/problem+json"));
    assert_eq!(refused.field("retry-after"), Some("3"));
    assert_eq!(refused.field("cache-control"), Some("no-store"));

    running.clock.advance(2099 * MILLISECOND);
    let refused = post(&mut talk, "/v1/take", &ask);
    assert_eq!((refused.status, refused.field("retry-after")), (429, Some("1")));
    running.clock.advance(MILLISECOND);
    ok(&mut talk, "/v1/take", &ask);
}

#[test]
fn an_impossible_cost_is_denied_without_retry_after() {
    let running = Running::start();
    let refused = Talk::to(&running).post("/v1/take", r#"{"key":"ana","limit":"10/s","cost":11}"#);
    assert_eq!((refused.status, refused.field("retry-after")), (429, None));
    assert_eq!(refused.json()["retry_after_ms"], Value::Null);
    assert!(
        refused.detail().starts_with("A cost of 11 can never pass: this limit holds at most 10"),
        "{refused:?}"
    );
}

#[test]
fn a_take_within_max_wait_is_allowed_with_its_delay() {
    let (_running, mut talk) = Running::start().with_http();
    let ask = |max_wait: u64| json!({"key": "ana", "limit": "1/s", "max_wait_ms": max_wait});
    ok(&mut talk, "/v1/take", &ask(0));
    assert_eq!(post(&mut talk, "/v1/take", &ask(999)).status, 429);
    let patient = ok(&mut talk, "/v1/take", &ask(1000));
    assert_eq!((&patient["allowed"], &patient["delay_ms"]), (&json!(true), &json!(1000)));
}

#[test]
fn a_peek_spends_nothing_and_has_status_200_also_if_denied() {
    let (_running, mut talk) = Running::start().with_http();
    let ask = json!({"key": "ana", "limit": "1/s"});
    for _ in 0..3 {
        assert_eq!(ok(&mut talk, "/v1/peek", &ask)["remaining"], 1);
    }
    ok(&mut talk, "/v1/take", &ask);
    let looked = post(&mut talk, "/v1/peek", &ask);
    assert_eq!((looked.status, looked.field("retry-after")), (200, None));
    let looked = looked.json();
    assert_eq!((&looked["allowed"], &looked["retry_after_ms"]), (&json!(false), &json!(1000)));
    let impossible = ok(&mut talk, "/v1/peek", &json!({"key": "ana", "limit": "1/s", "cost": 2}));
    assert_eq!((&impossible["allowed"], &impossible["retry_after_ms"]), (&json!(false), &Value::Null));
}

#[test]
fn an_amount_is_charged_or_refunded_and_the_remaining_quota_returned() {
    let (_running, mut talk) = Running::start().with_http();
    let mut adjust = |amount: i64| {
        let said = ok(&mut talk, "/v1/adjust", &json!({"key": "ana", "limit": "10/10s", "amount": amount}));
        (
            said["adjusted"].as_str().unwrap().to_owned(),
            said["remaining"].as_u64(),
            said["reset_after_ms"].as_u64(),
        )
    };
    assert_eq!(adjust(4), ("whole".to_owned(), Some(6), Some(4000)));
    assert_eq!(adjust(-1), ("whole".to_owned(), Some(7), Some(3000)));
    assert_eq!(adjust(-9), ("capped".to_owned(), Some(10), Some(0)));
    assert_eq!(adjust(12), ("whole".to_owned(), Some(0), Some(12_000)));
    assert_eq!(adjust(9), ("capped".to_owned(), Some(0), Some(20_000)));
    let flying = ok(&mut talk, "/v1/adjust", &json!({"key": "a", "limit": "1/s concurrency", "amount": 1}));
    assert_eq!(flying["adjusted"], "needs-permit");
}

#[test]
fn a_reset_forgets_a_key_whatever_the_algorithm() {
    let (_running, mut talk) = Running::start().with_http();
    let asks =
        ["1/h", "1/h sliding-log", "1/h fixed-window"].map(|limit| json!({"key": "ana", "limit": limit}));
    for ask in &asks {
        ok(&mut talk, "/v1/take", ask);
        assert_eq!(post(&mut talk, "/v1/take", ask).status, 429);
    }
    assert_eq!(ok(&mut talk, "/v1/reset", &json!({"key": "ana"})), json!({"reset": true}));
    assert_eq!(ok(&mut talk, "/v1/reset", &json!({"key": "unused"})), json!({"reset": false}));
    for ask in &asks {
        ok(&mut talk, "/v1/take", ask);
    }
}

#[test]
fn a_permit_is_held_until_it_is_released_or_its_lease_ends() {
    let (running, mut talk) = Running::start().with_http();
    let ask = json!({"key": "a\"n\na", "limit": "2/30s concurrency"});
    let mut permits = [0, 1].map(|_| ok(&mut talk, "/v1/take", &ask)["permit"].as_str().unwrap().to_owned());
    assert_ne!(permits[0], permits[1]);
    let refused = post(&mut talk, "/v1/take", &ask);
    assert_eq!((refused.status, refused.json().get("permit")), (429, None));

    let [first, second] = permits.each_mut().map(|permit| json!({"permit": permit}));
    assert_eq!(ok(&mut talk, "/v1/release", &first), json!({"released": true}));
    assert_eq!(ok(&mut talk, "/v1/release", &first), json!({"released": false}));
    assert_eq!(ok(&mut talk, "/v1/renew", &first), json!({"renewed": false}));
    assert_eq!(ok(&mut talk, "/v1/peek", &ask)["remaining"], 1);
    running.clock.advance(20 * SECOND);
    assert_eq!(ok(&mut talk, "/v1/renew", &second), json!({"renewed": true}));
    running.clock.advance(29 * SECOND);
    assert_eq!(ok(&mut talk, "/v1/peek", &ask)["remaining"], 1);
    running.clock.advance(SECOND);
    assert_eq!(ok(&mut talk, "/v1/renew", &second), json!({"renewed": false}));
    assert_eq!(ok(&mut talk, "/v1/peek", &ask)["remaining"], 2);
}

#[test]
fn a_key_is_its_decoded_text_however_it_is_escaped() {
    let (_running, mut talk) = Running::start().with_http();
    let left = |talk: &mut Talk, key: &str| {
        let body = format!(r#"{{"limit":"9/h","key":{key}}}"#);
        talk.post("/v1/take", &body).json()["remaining"].as_u64().unwrap()
    };
    assert_eq!(left(&mut talk, r#""ä\n☃""#), 8);
    assert_eq!(left(&mut talk, r#""\u00e4\u000A\u2603""#), 7);
    assert_eq!(left(&mut talk, r#""""#), 8);
    assert_eq!(left(&mut talk, r#""\u0000""#), 8);
    assert_eq!(left(&mut talk, r#""\u0000\u0000""#), 8);
}

#[test]
fn one_key_under_other_numbers_is_another_state() {
    let (_running, mut talk) = Running::start().with_http();
    assert_eq!(
        ok(&mut talk, "/v1/take", &json!({"key": "ana", "limit": "10/10s", "cost": 5}))["remaining"],
        5
    );
    assert_eq!(ok(&mut talk, "/v1/peek", &json!({"key": "ana", "limit": "20/20s"}))["remaining"], 20);
    assert_eq!(ok(&mut talk, "/v1/peek", &json!({"key": "ana", "limit": "1/s burst 10"}))["remaining"], 5);
    assert_eq!(
        ok(&mut talk, "/v1/peek", &json!({"key": "ana", "limit": "10/10s fixed-window"}))["remaining"],
        10
    );
}

#[test]
fn a_reset_forgets_a_key_under_one_limit_or_under_all() {
    let (_running, mut talk) = Running::start().with_http();
    let (hourly, daily) = (json!({"key": "ana", "limit": "9/h"}), json!({"key": "ana", "limit": "9/d"}));
    let left = |talk: &mut Talk, ask| ok(talk, "/v1/peek", ask)["remaining"].as_u64().unwrap();
    ok(&mut talk, "/v1/take", &hourly);
    ok(&mut talk, "/v1/take", &daily);
    assert_eq!(ok(&mut talk, "/v1/reset", &hourly), json!({"reset": true}));
    assert_eq!((left(&mut talk, &hourly), left(&mut talk, &daily)), (9, 8));
    assert_eq!(ok(&mut talk, "/v1/reset", &hourly), json!({"reset": false}));
    assert_eq!(ok(&mut talk, "/v1/reset", &json!({"key": "ana"})), json!({"reset": true}));
    assert_eq!(left(&mut talk, &daily), 9);
}

#[test]
fn while_not_all_limits_are_listed_a_reset_names_its_limit_or_is_a_conflict() {
    let (running, mut talk) = Running::start().with_http();
    for amount in 1..=1025 {
        ok(&mut talk, "/v1/take", &json!({"key": "ana", "limit": format!("{amount}/h")}));
    }
    let conflict = post(&mut talk, "/v1/reset", &json!({"key": "ana"}));
    assert_eq!((conflict.status, conflict.field("retry-after")), (409, None));
    assert_eq!(
        conflict.detail(),
        "more than 1024 limits are in use, and a reset by key does not know all of them; name the limit to reset; \
         add \"limit\" to the request"
    );
    for limit in ["7/h", "1025/h"] {
        assert_eq!(
            ok(&mut talk, "/v1/reset", &json!({"key": "ana", "limit": limit})),
            json!({"reset": true})
        );
    }
    running.clock.advance(5 * 3600 * SECOND);
    assert!(ok(&mut talk, "/v1/reset", &json!({"key": "ana"}))["reset"].is_boolean());
}

#[test]
fn a_take_may_come_in_chunks_and_with_trailers() {
    let (_running, mut talk) = Running::start().with_http();
    let head = "POST /v1/take HTTP/1.1\r\nhost: localhost\r\ncontent-type: Application/JSON; charset=utf-8\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let body = "8;x=y\r\n{\"key\":\"\r\n7\r\nana\",\"l\r\ne\r\nimit\":\"1/60s\"}\r\n0\r\ntrailer: x\r\n\r\n";
    assert_eq!(talk.ask(format!("{head}{body}")).json()["limit"], 1);
    assert_eq!(talk.get("/livez").status, 200);
}
