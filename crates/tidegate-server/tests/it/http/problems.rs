//! Tests of error replies: place, fault and remedy.

use crate::wire::Running;
use crate::wire::http::{Talk, by, get, post, with_json};

/// The path, the body and the expected error.
const WRONG: &str = r#"
/v1/take |  | the body is empty; send one such as {
/v1/take | [1] | the body is no JSON object
/v1/take | { | body: EOF while parsing an object at line 1 column 1
/v1/take | {"key":"ana"} | body: missing field `limit`
/v1/take | {"key":"ana","limit":"1/s","burst":5} | unknown field `burst`, expected one of `key`,
/v1/take | {"key":"a","key":"a","limit":"1/s"} | duplicate field `key` at line 1 column 16
/v1/take | {"key":1,"limit":"1/s"} | invalid type: integer `1`, expected a string
/v1/take | {"key":"a","limit":"1/s","cost":0} | expected a whole number of at least 1 (to look
/v1/peek | {"key":"a","limit":"1/s","max_wait_ms":-1} | expected a whole number of milliseconds
/v1/take | {"key":"a","limit":"60/min"} | limit "60/min": unknown unit "min"; write "60/m" or
/v1/take | {"key":"a","limit":"60/min"} | (at character 4)
/v1/adjust | {"key":"a","limit":"1/s","amount":0} | positive to charge and negative to give back
/v1/adjust | {"key":"a","limit":"1/s"} | missing field `amount`
/v1/adjust | {"key":"a","limit":"0/s","amount":1} | an amount of 0 admits nothing
/v1/reset | {"key":"a","limits":"1/s"} | unknown field `limits`, expected `key` or `limit`
/v1/reset | {"key":"a","limit":"1/min"} | unknown unit "min"
/v1/release | {"permit":"x"} | send the "permit" of an answer of /v1/take
/v1/renew | {"permit":1} | invalid type: integer `1`, expected a string
"#;

#[test]
fn an_unexpected_body_is_an_error_with_its_reason() {
    let (_running, mut talk) = Running::start().with_http();
    for [path, body, said] in conformance::rows(WRONG) {
        let answer = talk.post(path, body);
        answer.is_problem_of((path, body), 400, said);
    }
}

#[test]
fn unknown_paths_and_unsupported_methods_have_different_errors() {
    let (_running, mut talk) = Running::start().with_http();
    for path in ["/", "/v1/tkae", "/v1/take/", "/V1/take", "/v1", "//livez"] {
        let answer = talk.get(path);
        answer.is_problem_of(path, 404, "/openapi.json");
    }
    let answer = talk.get("/v1/take");
    assert_eq!((answer.status, answer.field("allow")), (405, Some("POST")));
    assert_eq!(answer.detail(), "/v1/take takes POST, not GET");
    let answer = talk.post("/metrics", "{}");
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD")));
    let answer = talk.ask("OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(answer.status, 404);
    let answer = talk.ask("BREW /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(answer.status, 405);
}

#[test]
fn a_body_needs_the_content_type_of_json() {
    let running = Running::start();
    let body = r#"{"key":"ana","limit":"1/s"}"#;
    for kind in
        ["text/plain", "application/jsonp", "application/x-www-form-urlencoded", "application/json-seq", ""]
    {
        let answer = Talk::to(&running).ask(post("/v1/take", body).replace("application/json", kind));
        answer.is_problem_of(kind, 415, "send content-type: application/json");
    }
    let nothing = post("/v1/take", body).replace("content-type: application/json\r\n", "");
    assert_eq!(Talk::to(&running).ask(nothing).status, 415);
    for kind in ["application/json;charset=UTF-8", "APPLICATION/JSON ; x=y", "application/json"] {
        let answer = Talk::to(&running).ask(post("/v1/take", "{}").replace("application/json", kind));
        assert_eq!(answer.status, 400, "{kind}");
    }
}

#[test]
fn without_the_token_only_livez_is_answered() {
    let running = Running::guarded();
    let with = |message: &str, authorization: &str| {
        let message = message.replacen(
            "host: localhost",
            &format!("host: localhost\r\nauthorization: {authorization}"),
            1,
        );
        Talk::to(&running).ask(message)
    };
    let take = post("/v1/take", r#"{"key":"ana","limit":"9/h"}"#);
    let verbs = ["peek", "adjust", "reset", "release", "renew", "admit", "admit/batch", "explain"]
        .map(|verb| post(&format!("/v1/{verb}"), "{}"));
    let pages = ["/metrics", "/openapi.json", "/v1/rules", "/v1/overrides", "/v1/top"].map(get);
    let keepers = ["PUT", "DELETE"].map(|method| with_json(method, "/v1/overrides", "{}"));
    let put_rules = with_json("PUT", "/v1/rules", "");
    let all = verbs.iter().chain(&pages).chain(&keepers).chain([&take, &put_rules]);
    for message in all {
        for wrong in [
            "Bearer",
            "Bearer ",
            "Bearer sesam",
            "Bearer sesame2",
            "Bearer  sesame",
            "Basic sesame",
            "sesame",
        ] {
            let answer = with(message, wrong);
            assert_eq!(
                (answer.status, answer.field("www-authenticate")),
                (401, Some("Bearer realm=\"tidegate\""))
            );
            assert!(answer.detail().contains("Authorization: Bearer TOKEN"), "{wrong}");
        }
        assert_eq!(Talk::to(&running).ask(message).status, 401);
        assert_ne!(with(message, "Bearer sesame").status, 401);
    }
    assert_eq!(with(&take, "bearer sesame").json()["remaining"], 7);
    assert_eq!(Talk::to(&running).get("/livez").status, 200);
    assert_eq!(Talk::to(&running).get("/readyz").status, 200);
    assert_eq!(Talk::to(&running).get("/").status, 404);
}

#[test]
fn an_invalid_request_is_answered_and_the_connection_closed() {
    let running = Running::start();
    for garbage in [
        "garbage\r\n\r\n",
        "GET /livez HTTP/3.0\r\n\r\n",
        "GET /livez HTTP/1.1\r\nno colon\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST /v1/take HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}",
    ] {
        let mut talk = Talk::to(&running);
        let answer = talk.ask(garbage);
        assert_eq!((answer.status, answer.field("connection")), (400, Some("close")), "{garbage:?}");
        assert!(answer.detail().contains("no HTTP/1.1 request"));
        talk.is_over();
    }
}

#[test]
fn a_body_with_broken_chunks_is_a_bad_request() {
    let (_running, mut talk) = Running::start().with_http();
    let head = "POST /v1/take HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let answer = talk.ask(format!("{head}zz\r\n"));
    assert_eq!((answer.status, answer.field("connection")), (400, Some("close")));
    assert!(answer.detail().contains("chunks"));
}

#[test]
fn a_name_that_leads_here_is_no_way_in_without_a_token() {
    let running = Running::start();
    let guarded = Running::guarded();
    let take = post("/v1/take", r#"{"key":"ana","limit":"9/h"}"#);
    let named = |message: &str, host: &str| message.replacen("host: localhost", host, 1);
    for message in [take.clone(), get("/metrics"), get("/v1/rules"), get("/openapi.json")] {
        for host in [
            "host: evil.example",
            "host: localhost.evil.example:8380",
            "host: ::1",
            "host: localhost\r\nhost: x",
        ] {
            let answer = Talk::to(&running).ask(named(&message, host));
            answer.is_problem_of(host, 403, "use the address, or start the server with TIDEGATE_TOKEN");
        }
        for host in ["host: 127.0.0.1:8380", "host: [::1]:8380", "Host: LOCALHOST", "host: 192.0.2.7"] {
            assert_eq!(Talk::to(&running).ask(named(&message, host)).status, 200, "{host}");
        }
        let known = by("sesame", &message).replacen("localhost", "evil.example", 1);
        assert_eq!(Talk::to(&guarded).ask(known).status, 200, "any user name is valid with the token");
    }
    let absolute = get("http://evil.example/metrics");
    assert_eq!(Talk::to(&running).ask(absolute).status, 403);
    let old = "GET /metrics HTTP/1.0\r\n\r\n";
    assert!(Talk::to(&running).send(old).rest().starts_with("HTTP/1.0 200"));
    for path in ["/livez", "/readyz"] {
        assert_eq!(Talk::to(&running).ask(named(&get(path), "host: evil.example")).status, 200);
    }
}
