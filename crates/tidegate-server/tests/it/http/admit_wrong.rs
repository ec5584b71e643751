//! Requests to the rules that are not what they should be, and the bounds of those that are.

use serde_json::json;

use crate::wire::Running;
use crate::wire::http::Talk;

const MAX_ATTRIBUTES: usize = 64;
const MAX_NAME_BYTES: usize = 128;
const MAX_BYTES: usize = 64 << 10;

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let running = Running::start();
    let mut talk = Talk::to(&running);
    for (body, said) in [
        ("", r#"the body is empty; send one such as {"attributes":{"ip":"192.0.2.7","path":"/api/x"}}"#),
        ("[]", "the body is no JSON object"),
        ("{}", "missing field `attributes`"),
        (r#"{"attributes":{},"key":"ana"}"#, "unknown field `key`, expected one of `attributes`, `cost`,"),
        (r#"{"attributes":[]}"#, "invalid type: sequence, expected an object of texts such as"),
        (r#"{"attributes":null}"#, "invalid type: null, expected an object of texts"),
        (r#"{"attributes":{"user":7}}"#, "invalid type: integer `7`, expected a text"),
        (r#"{"attributes":{"user":null}}"#, "invalid type: null, expected a text"),
        (
            r#"{"attributes":{"user":"a","user":"b"}}"#,
            r#"attribute "user" is there twice; leave one of them out"#,
        ),
        (
            r#"{"attributes":{"header.A":"a","header.a":"b"}}"#,
            r#"attribute "header.a" is there twice; send all of its values as a list"#,
        ),
        (r#"{"attributes":{"ip":"192.0.2.7","ip":"192.0.2.7"}}"#, r#"attribute "ip" is there twice"#),
        (r#"{"attributes":{"ip":"unknown"}}"#, r#"attribute "ip" is no address; send one such as 192.0.2.7"#),
        (r#"{"attributes":{"ip":""}}"#, r#"attribute "ip" is no address"#),
        (
            r#"{"attributes":{},"cost":0}"#,
            "at least 1 (to look without spending there are /v1/peek and /v1/explain)",
        ),
        (r#"{"attributes":{},"patience_ms":-1}"#, "expected a whole number of milliseconds"),
    ] {
        for path in ["/v1/admit", "/v1/explain"] {
            let answer = talk.post(path, body);
            assert_eq!(answer.status, 400, "{body}");
            assert!(answer.detail().contains(said), "{body} -> {}", answer.detail());
        }
    }
}

#[test]
fn so_many_attributes_are_taken_and_one_more_is_not() {
    let running = Running::start();
    let mut talk = Talk::to(&running);
    let mut with = |count: usize| {
        let attributes: serde_json::Map<_, _> =
            (0..count).map(|nth| (format!("a{nth}"), json!(""))).collect();
        talk.post("/v1/admit", &json!({ "attributes": attributes }).to_string())
    };
    assert_eq!(with(MAX_ATTRIBUTES).status, 200);
    let answer = with(MAX_ATTRIBUTES + 1);
    assert_eq!(answer.status, 400);
    assert!(answer.detail().contains("at most 64 attributes"), "{}", answer.detail());
}

#[test]
fn a_name_and_all_bytes_together_have_a_bound() {
    let running = Running::start();
    let mut talk = Talk::to(&running);
    let mut with = |name: usize, value: usize| {
        let attributes = json!({ "n".repeat(name): "v".repeat(value) });
        let answer = talk.post("/v1/admit", &json!({ "attributes": attributes }).to_string());
        (answer.status, answer.body)
    };
    assert_eq!(with(MAX_NAME_BYTES, 0).0, 200);
    assert!(with(MAX_NAME_BYTES + 1, 0).1.contains("a name of 129 bytes; at most 128"));
    assert_eq!(with(10, MAX_BYTES - 10).0, 200);
    assert!(with(10, MAX_BYTES - 9).1.contains("more than 65536 bytes"));
}
