//! Tests of the pages: health, metrics, and the `OpenAPI` document.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::wire::Running;
use crate::wire::http::{Talk, get, post};

/// Returns the values of a metrics page by series. Asserts that the page is well-formed.
pub(super) fn metrics(page: &str) -> BTreeMap<String, f64> {
    let mut numbers = BTreeMap::new();
    let mut family = String::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a name and its help");
            assert!(name.starts_with("tidegate_") && help.ends_with('.'), "{line}");
            family = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a name and its kind");
            assert_eq!((name, kind == "counter"), (&*family, name.ends_with("_total")), "{line}");
        } else {
            let (series, number) = line.rsplit_once(' ').expect("a series and its number");
            assert_eq!(series.split('{').next(), Some(&*family), "{line}");
            let before = numbers.insert(series.to_owned(), number.parse().expect("a number"));
            assert_eq!(before, None, "{line}");
        }
    }
    numbers
}

#[test]
fn events_are_counted() {
    let (_running, mut talk) = Running::start().with_http();
    for (cost, times) in [(1, 3), (3, 2), (9, 1)] {
        for _ in 0..times {
            talk.post("/v1/take", &format!(r#"{{"key":"ana","limit":"5/h","cost":{cost}}}"#));
        }
    }
    talk.post("/v1/take", "{}");
    let page = talk.get("/metrics");
    assert_eq!(page.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let numbers = metrics(&page.body);
    for (series, number) in [
        ("tidegate_decisions_total{verdict=\"allowed\"}", 3.0),
        ("tidegate_decisions_total{verdict=\"denied\"}", 2.0),
        ("tidegate_decisions_total{verdict=\"impossible\"}", 1.0),
        ("tidegate_decisions_total{verdict=\"store_full\"}", 0.0),
        ("tidegate_requests_total{front=\"http\"}", 8.0),
        ("tidegate_bad_requests_total", 1.0),
        ("tidegate_accepted_connections_total{front=\"http\"}", 1.0),
        ("tidegate_open_connections", 1.0),
        ("tidegate_cut_connections_total", 0.0),
        ("tidegate_zone_inserts_total", 1.0),
        ("tidegate_zone_bytes", 65_536.0),
    ] {
        assert_eq!(numbers.get(series), Some(&number), "{series} in {numbers:?}");
    }
}

#[test]
fn connections_that_end_and_those_that_are_cut_off_are_counted() {
    let running = Running::start();
    let mut garbage = Talk::to(&running);
    assert_eq!(garbage.ask("garbage\r\n\r\n").status, 400);
    garbage.hang_up();
    garbage.rest();
    let mut talk = Talk::to(&running);
    loop {
        let numbers = metrics(&talk.get("/metrics").body);
        assert_eq!(numbers["tidegate_cut_connections_total"], 1.0);
        assert_eq!(numbers["tidegate_accepted_connections_total{front=\"http\"}"], 2.0);
        // The close is counted a moment after the client sees it.
        if numbers["tidegate_open_connections"] == 1.0 {
            break;
        }
    }
}

#[test]
fn the_server_says_that_it_lives_and_is_ready() {
    let (_running, mut talk) = Running::start().with_http();
    for (path, body) in [("/livez", r#"{"live":true}"#), ("/readyz", r#"{"ready":true,"rules":"ok"}"#)] {
        let answer = talk.get(path);
        assert_eq!((answer.status, &*answer.body), (200, body));
    }
}

#[test]
fn a_head_has_the_fields_of_a_get() {
    let (_running, mut talk) = Running::start().with_http();
    for path in ["/livez", "/readyz", "/openapi.json"] {
        let got = talk.get(path);
        let head = talk.send(format!("HEAD {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).answer_to_head();
        assert_eq!((head.status, head.field("content-length")), (got.status, got.field("content-length")));
        assert_eq!(head.field("content-type"), got.field("content-type"));
    }
    assert_eq!(talk.send("HEAD /metrics HTTP/1.1\r\n\r\n").answer_to_head().status, 200);
    assert_eq!(talk.send("HEAD /v1/take HTTP/1.1\r\n\r\n").answer_to_head().status, 405);
}

#[test]
fn exactly_the_listed_routes_exist() {
    let (_running, mut talk) = Running::start().with_http();
    let document = talk.get("/openapi.json");
    assert_eq!(document.field("content-type"), Some("application/json"));
    let document = document.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    for (path, listed) in document["paths"].as_object().unwrap() {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            let message = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
            let is_head = method == "HEAD";
            let sent = talk.send(message);
            let status = if is_head { sent.answer_to_head().status } else { sent.answer().status };
            let is_listed = listed.get(method.to_lowercase()).is_some();
            assert_ne!(status, 404, "{method} {path}");
            assert_eq!(status != 405, is_listed, "{method} {path} -> {status}");
        }
    }
}

#[test]
fn the_examples_of_the_document_do_what_it_says() {
    let (_running, mut talk) = Running::start().with_http();
    let document = talk.get("/openapi.json").json();
    let examples =
        |schema: &str| document["components"]["schemas"][schema]["examples"].as_array().unwrap().clone();
    for (path, schema) in [
        ("/v1/take", "Take"),
        ("/v1/peek", "Take"),
        ("/v1/adjust", "Adjust"),
        ("/v1/reset", "Reset"),
        ("/v1/release", "OfPermit"),
        ("/v1/renew", "OfPermit"),
        ("/v1/admit", "Request"),
        ("/v1/explain", "Request"),
        ("/v1/admit/batch", "Batch"),
    ] {
        for example in examples(schema) {
            assert_eq!(talk.post(path, &example.to_string()).status, 200, "{path} {example}");
        }
    }
    for limit in document["components"]["schemas"]["Limit"]["examples"].as_array().unwrap() {
        assert_eq!(talk.post("/v1/peek", &format!(r#"{{"key":"","limit":{limit}}}"#)).status, 200, "{limit}");
    }
}

#[test]
fn replies_have_the_members_of_the_document() {
    let running = Running::under(
        "[[rule]]\nname = 'up'\nwhen = { path = '/up' }\nlimit = '1/30s concurrency'\n\
         [[rule]]\nname = 'never'\nwhen = { path = '/never' }\ndecision = 'deny'\n\
         [[rule]]\nname = 'bans'\nwhen = { path = '/banned' }\nlimit = '1/h'\n\
         penalty = { after = 1, within = '1h', for = '1h' }",
    );
    let mut talk = Talk::to(&running);
    let document = talk.get("/openapi.json").json();
    let ask = r#"{"key":"ana","limit":"1/30s concurrency"}"#;
    let plain = r#"{"key":"ana","limit":"1/h"}"#;
    for (schema, message) in [
        ("Decision", post("/v1/take", ask)),
        ("Refusal", post("/v1/take", ask)),
        ("Decision", post("/v1/peek", plain)),
        ("Adjusted", post("/v1/adjust", r#"{"key":"ana","limit":"1/h","amount":1}"#)),
        ("WasReset", post("/v1/reset", r#"{"key":"ana"}"#)),
        ("Released", post("/v1/release", r#"{"permit":"1.1/30s_concurrency.61"}"#)),
        ("Renewed", post("/v1/renew", r#"{"permit":"1.1/30s_concurrency.61"}"#)),
        ("Problem", post("/v1/take", "{}")),
        ("Admission", post("/v1/admit", r#"{"attributes":{"path":"/up"}}"#)),
        ("AdmitRefusal", post("/v1/admit", r#"{"attributes":{"path":"/up"}}"#)),
        ("Forbidden", post("/v1/admit", r#"{"attributes":{"path":"/never"}}"#)),
        ("Admissions", post("/v1/admit/batch", r#"{"requests":[]}"#)),
        (
            "BatchRefusal",
            post("/v1/admit/batch", r#"{"all":true,"requests":[{"attributes":{"path":"/up"}}]}"#),
        ),
        (
            "BatchForbidden",
            post("/v1/admit/batch", r#"{"all":true,"requests":[{"attributes":{"path":"/never"}}]}"#),
        ),
        ("Explanation", post("/v1/explain", r#"{"attributes":{"path":"/up"}}"#)),
        ("Rules", get("/v1/rules")),
        ("Overrides", get("/v1/overrides")),
        ("Top", get("/v1/top")),
        ("AdmitRefusal", post("/v1/admit", r#"{"attributes":{"path":"/banned"},"cost":2}"#)),
        ("Explanation", post("/v1/explain", r#"{"attributes":{"path":"/banned"}}"#)),
        ("Admission", post("/v1/peek", r#"{"rule":"bans","key":{}}"#)),
        ("Rules", get("/v1/rules")),
        ("Bans", get("/v1/bans")),
        ("Ready", get("/readyz")),
    ] {
        let said = talk.ask(message).json();
        has_members(&said, &document["components"]["schemas"][schema], &document);
    }
}

/// Asserts, recursively, that a reply has all members that a schema requires and no others.
fn has_members(said: &Value, schema: &Value, document: &Value) {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/schemas/")) {
        return has_members(said, &document["components"]["schemas"][name], document);
    }
    if let Some(items) = said.as_array() {
        return items.iter().for_each(|item| has_members(item, &schema["items"], document));
    }
    let (Some(members), Some(known)) = (said.as_object(), schema["properties"].as_object()) else { return };
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(members.contains_key(required.as_str().expect("a name")), "{required} in {said}");
    }
    for (name, value) in members {
        let of = known.get(name).unwrap_or_else(|| panic!("{name} in {said} is not in the document"));
        has_members(value, of, document);
    }
}
