//! Tests of every size limit, at the limit and beyond it.

use crate::wire::Running;
use crate::wire::http::{Answer, Talk, get, post};

const MAX_BODY_BYTES: usize = 160 << 10;
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_URI_BYTES: usize = 2 << 10;
const MAX_FIELDS: usize = 64;
const MAX_KEY_BYTES: usize = 64 << 10;
const MAX_LIMIT_BYTES: usize = 512;

const TAKE: &str = r#"{"key":"ana","limit":"1000/s"}"#;

/// Returns the body of a take with this many bytes.
fn body_of(bytes: usize) -> String {
    format!("{TAKE}{}", " ".repeat(bytes - TAKE.len()))
}

fn in_chunks(body: &str) -> String {
    let head = post("/v1/take", "").replace("content-length: 0", "transfer-encoding: chunked");
    let chunks = body
        .as_bytes()
        .chunks(10_000)
        .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)));
    format!("{head}{}0\r\n\r\n", chunks.collect::<String>())
}

/// Asserts that the server rejects a message, and closes the connection. Returns the reply.
fn refused(running: &Running, message: impl AsRef<[u8]>) -> Answer {
    let mut talk = Talk::to(running);
    let answer = talk.ask(message);
    assert_eq!(answer.field("connection"), Some("close"), "{answer:?}");
    talk.is_over();
    answer
}

#[test]
fn the_longest_body_is_taken_and_the_next_is_not() {
    let (running, mut talk) = Running::start().with_http();
    assert_eq!(talk.post("/v1/take", &body_of(MAX_BODY_BYTES)).status, 200);
    assert_eq!(talk.ask(in_chunks(&body_of(MAX_BODY_BYTES))).status, 200);
    for message in [post("/v1/take", &body_of(MAX_BODY_BYTES + 1)), in_chunks(&body_of(MAX_BODY_BYTES + 1))] {
        let answer = refused(&running, message);
        answer.is_problem(413, "more than 163840 bytes");
    }
}

#[test]
fn a_body_with_too_large_a_length_is_not_read() {
    let running = Running::start();
    let head =
        |length: u64| post("/v1/take", "").replace("content-length: 0", &format!("content-length: {length}"));
    assert_eq!(refused(&running, head(MAX_BODY_BYTES as u64 + 1)).status, 413);
    assert_eq!(refused(&running, head(10 << 30)).status, 413);
    assert_eq!(
        refused(&running, head(10 << 30).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")).status,
        413
    );
}

#[test]
fn a_body_without_an_end_is_cut_off_and_the_client_gets_to_see_why() {
    let (_running, mut talk) = Running::start().with_http();
    talk.send(post("/v1/take", "").replace("content-length: 0", "transfer-encoding: chunked"));
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    for _ in 0..32 {
        talk.send(&chunk);
    }
    let answer = talk.answer();
    assert_eq!((answer.status, answer.field("connection")), (413, Some("close")));
    while talk.try_send(&chunk).is_ok() {}
}

#[test]
fn the_longest_head_is_taken_and_the_next_is_not() {
    let running = Running::start();
    let head_of = |bytes: usize| {
        let empty = "GET /livez HTTP/1.1\r\nx: \r\n\r\n".len();
        format!("GET /livez HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(bytes - empty))
    };
    let mut talk = Talk::to(&running);
    assert_eq!(talk.ask(head_of(MAX_HEAD_BYTES)).status, 200);
    assert_eq!(talk.ask(head_of(MAX_HEAD_BYTES)).status, 200);
    for bytes in [MAX_HEAD_BYTES + 1, 10 * MAX_HEAD_BYTES] {
        let answer = refused(&running, head_of(bytes));
        answer.is_problem(431, "more than 16384 bytes");
    }
}

#[test]
fn so_many_header_fields_are_taken_and_no_more() {
    let running = Running::start();
    let fields = |count: usize| format!("GET /livez HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(count));
    let mut talk = Talk::to(&running);
    assert_eq!(talk.ask(fields(MAX_FIELDS)).status, 200);
    let answer = talk.ask(fields(MAX_FIELDS + 1));
    assert_eq!((answer.status, &*answer.detail()), (431, "65 header fields; send at most 64"));
    assert_eq!(refused(&running, fields(500)).status, 431);
}

#[test]
fn the_longest_uri_is_taken_and_the_next_is_not() {
    let running = Running::start();
    let uri_of = |bytes: usize| get(&format!("/livez?{}", "x".repeat(bytes - "/livez?".len())));
    let mut talk = Talk::to(&running);
    assert_eq!(talk.ask(uri_of(MAX_URI_BYTES)).status, 200);
    let answer = talk.ask(uri_of(MAX_URI_BYTES + 1));
    answer.is_problem(414, "more than 2048 bytes");
    assert_eq!(refused(&running, uri_of(MAX_HEAD_BYTES)).status, 414);
    assert_eq!(refused(&running, uri_of(1 << 19)).status, 414);
}

#[test]
fn the_longest_key_is_taken_and_the_next_is_not() {
    let running = Running::start();
    let take = |bytes: usize| format!(r#"{{"key":"{}","limit":"5/30s concurrency"}}"#, "k".repeat(bytes));
    let mut talk = Talk::to(&running);
    let allowed = talk.post("/v1/take", &take(MAX_KEY_BYTES));
    assert_eq!(allowed.status, 200);
    let permit = format!(r#"{{"permit":{}}}"#, allowed.json()["permit"]);
    assert_eq!(talk.post("/v1/release", &permit).body, r#"{"released":true}"#);
    let answer = talk.post("/v1/take", &take(MAX_KEY_BYTES + 1));
    assert_eq!(
        (answer.status, &*answer.detail()),
        (400, "key: 65537 bytes; at most 65536, so send a hash of longer ones")
    );
}

#[test]
fn the_longest_limit_is_taken_and_the_next_is_not() {
    let running = Running::start();
    let take = |bytes: usize| format!(r#"{{"key":"ana","limit":"9/s{}"}}"#, " ".repeat(bytes - 3));
    let mut talk = Talk::to(&running);
    assert_eq!(talk.post("/v1/take", &take(MAX_LIMIT_BYTES)).status, 200);
    let answer = talk.post("/v1/take", &take(MAX_LIMIT_BYTES + 1));
    answer.is_problem(400, "513 bytes are too long for a limit");
    let huge = talk.post("/v1/take", &take(100_000));
    assert_eq!((huge.status, huge.body.len() < 2000), (400, true), "{huge:?}");
}
