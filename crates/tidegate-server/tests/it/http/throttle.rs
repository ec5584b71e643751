//! Tests of `POST /throttle`, as in throttlecrab.

use serde_json::{Value as Json, json};
use tidegate::{MILLISECOND, SECOND};

use crate::wire::Running;
use crate::wire::http::Talk;
use crate::wire::resp::Value;

fn ask(max_burst: u64, quantity: u64) -> String {
    json!({"key": "ana", "max_burst": max_burst, "count_per_period": 30, "period": 60, "quantity": quantity})
        .to_string()
}

/// Returns the body of a reply with status 200.
fn replied(talk: &mut Talk, body: &str) -> Json {
    let answer = talk.post("/throttle", body);
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")), "{answer:?}");
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    // Clients of throttlecrab read the body only.
    assert_eq!((answer.field("ratelimit"), answer.field("retry-after")), (None, None));
    answer.json()
}

fn fields(allowed: bool, [limit, remaining, reset_after, retry_after]: [i64; 4]) -> Json {
    json!({
        "allowed": allowed, "limit": limit, "remaining": remaining, "reset_after": reset_after,
        "retry_after": retry_after,
    })
}

#[test]
fn a_denial_is_status_200_and_times_are_seconds_rounded_up() {
    let (running, mut talk) = Running::start().with_http();
    let body = r#"{"key":"ana","max_burst":2,"count_per_period":30,"period":60}"#;
    let first = talk.post("/throttle", body);
    assert_eq!(first.body, r#"{"allowed":true,"limit":2,"remaining":1,"reset_after":2,"retry_after":0}"#);
    let null = r#"{"key":"ana","max_burst":2,"count_per_period":30,"period":60,"quantity":null}"#;
    assert_eq!(replied(&mut talk, null), fields(true, [2, 0, 4, 0]));
    assert_eq!(replied(&mut talk, body), fields(false, [2, 0, 4, 2]));
    running.clock.advance(2 * SECOND - MILLISECOND);
    assert_eq!(replied(&mut talk, body), fields(false, [2, 0, 3, 1]));
    running.clock.advance(MILLISECOND);
    assert_eq!(replied(&mut talk, body), fields(true, [2, 0, 4, 0]));
}

#[test]
fn a_quantity_of_0_peeks_and_one_above_the_burst_never_passes() {
    let (_running, mut talk) = Running::start().with_http();
    assert_eq!(replied(&mut talk, &ask(10, 0)), fields(true, [10, 10, 0, 0]));
    assert_eq!(replied(&mut talk, &ask(10, 10)), fields(true, [10, 0, 20, 0]));
    assert_eq!(replied(&mut talk, &ask(10, 0)), fields(true, [10, 0, 20, 0]));
    assert_eq!(replied(&mut talk, &ask(10, 11)), fields(false, [10, 0, 20, -1]));
    assert_eq!(replied(&mut talk, &ask(10, u64::MAX)), fields(false, [10, 0, 20, -1]));
}

#[test]
fn it_spends_the_state_of_the_same_limit_over_other_routes_and_resp() {
    let (running, mut talk) = Running::start().with_http();
    assert_eq!(replied(&mut talk, &ask(16, 1)), fields(true, [16, 15, 2, 0]));
    let take = talk.post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 16"}"#);
    assert_eq!(take.json()["remaining"], 14);
    assert_eq!(running.resp().say("CL.THROTTLE ana 15 30 60"), Value::integers(&[0, 16, 13, -1, 6]));
    assert_eq!(running.resp().say("THROTTLE ana 16 30 60"), Value::integers(&[1, 16, 12, 8, 0]));
    assert_eq!(talk.post("/v1/reset", r#"{"key":"ana"}"#).json(), json!({"reset": true}));
    assert_eq!(replied(&mut talk, &ask(16, 1)), fields(true, [16, 15, 2, 0]));
}

#[test]
fn invalid_bodies_are_status_400_with_the_field() {
    let (_running, mut talk) = Running::start().with_http();
    for (body, detail) in [
        ("", r#"the body is empty; send one such as {"key":"user123""#),
        (r#"{"key":"k","max_burst":1,"count_per_period":1}"#, "missing field `period`"),
        (r#"{"key":"k","max_burst":0,"count_per_period":1,"period":1}"#, "at least 1"),
        (r#"{"key":"k","max_burst":1,"count_per_period":0,"period":1}"#, "at least 1"),
        (r#"{"key":"k","max_burst":1,"count_per_period":1,"period":-1}"#, "at least 1"),
        (r#"{"key":"k","max_burst":1,"count_per_period":1,"period":1,"quantity":-1}"#, "at least 0"),
        (r#"{"key":"k","max_burst":1,"count_per_period":1,"period":1.5}"#, "at least 1"),
        (r#"{"key":"k","max_burst":1,"count_per_period":1,"period":1,"cost":1}"#, "unknown field `cost`"),
        (
            r#"{"key":"k","max_burst":1,"count_per_period":1,"period":18446744073709551615}"#,
            "longer than can be counted",
        ),
    ] {
        let answer = talk.post("/throttle", body);
        assert_eq!((answer.status, answer.field("content-type")), (400, Some("application/problem+json")));
        let said = answer.json()["detail"].to_string();
        assert!(said.replace("\\\"", "\"").contains(detail), "{body}: {said}");
    }
    assert_eq!(
        replied(&mut talk, r#"{"key":"k","max_burst":1,"count_per_period":1,"period":1}"#)["remaining"],
        0
    );
}
