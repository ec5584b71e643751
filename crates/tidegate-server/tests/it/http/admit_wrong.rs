//! Tests of invalid requests to rules, and of the limits of valid ones.

use serde_json::json;

use crate::wire::Running;

const MAX_ATTRIBUTES: usize = 64;
const MAX_NAME_BYTES: usize = 128;
const MAX_BYTES: usize = 64 << 10;

/// The body and the expected error.
const WRONG: &str = r#"
 | the body is empty; send one such as {"attributes":{"ip":"192.0.2.7","path":"/api/x"}}
[] | the body is no JSON object
{} | missing field `attributes`
{"attributes":{},"key":"ana"} | unknown field `key`, expected one of `attributes`, `cost`,
{"attributes":[]} | invalid type: sequence, expected an object of texts such as
{"attributes":null} | invalid type: null, expected an object of texts
{"attributes":{"user":7}} | invalid type: integer `7`, expected a text
{"attributes":{"user":[null]}} | invalid type: null, expected a
{"attributes":{"user":null,"user":"ana"}} | attribute "user" is there twice; leave one of them out
{"attributes":{"user":"ana","user":null}} | attribute "user" is there twice; leave one of them out
{"attributes":{"user":null,"user":null}} | attribute "user" is there twice; leave one of them out
{"attributes":{"user":"a","user":"b"}} | attribute "user" is there twice; leave one of them out
{"attributes":{"header.A":"a","header.a":"b"}} | attribute "header.a" is there twice; send all of its values as a list
{"attributes":{"ip":"192.0.2.7","ip":"192.0.2.7"}} | attribute "ip" is there twice
{"attributes":{"ip":"unknown"}} | attribute "ip" is no address; send one such as 192.0.2.7
{"attributes":{"ip":""}} | attribute "ip" is no address
{"attributes":{},"cost":0} | at least 1 (to look without spending there are /v1/peek and /v1/explain)
{"attributes":{},"max_wait_ms":-1} | expected a whole number of milliseconds
"#;

#[test]
fn an_invalid_request_is_an_error_with_its_reason() {
    let (_running, mut talk) = Running::start().with_http();
    for [body, said] in conformance::rows(WRONG) {
        for path in ["/v1/admit", "/v1/explain"] {
            let answer = talk.post(path, body);
            answer.is_problem_of(body, 400, said);
        }
    }
}

#[test]
fn so_many_attributes_are_taken_and_one_more_is_not() {
    let (_running, mut talk) = Running::start().with_http();
    let mut with = |count: usize| {
        let attributes: serde_json::Map<_, _> =
            (0..count).map(|nth| (format!("a{nth}"), json!(""))).collect();
        talk.post("/v1/admit", &json!({ "attributes": attributes }).to_string())
    };
    assert_eq!(with(MAX_ATTRIBUTES).status, 200);
    let answer = with(MAX_ATTRIBUTES + 1);
    answer.is_problem(400, "at most 64 attributes");
}

#[test]
fn a_name_and_all_bytes_together_have_a_bound() {
    let (_running, mut talk) = Running::start().with_http();
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
