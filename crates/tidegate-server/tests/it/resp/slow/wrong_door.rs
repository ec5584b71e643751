//! Tests of clients that speak another protocol. They are disconnected, and nothing after their first line is executed.

use std::io::Write;

use super::PATIENT;
use crate::resp::raw::{Talk, address, connect, rest_of};
use crate::wire::Running;

/// Commands that an attacker wants to execute.
const WISH: &[u8] = b"CL.THROTTLE victim 0 1 60\r\n*5\r\n$11\r\nCL.THROTTLE\r\n$6\r\nvictim\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n60\r\n";

/// The start of a TLS 1.2 handshake.
const CLIENT_HELLO: &[u8] =
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\x20\x14\x9d\x5c\n\x00\r\n\x00\x02\x00\x2f";

/// Sends `start` and [`WISH`], waits until the server closes the connection, and returns the reply. The client never
/// closes it.
fn answer(start: &[u8]) -> String {
    let running = Running::bounded(PATIENT);
    let stream = connect(address(&running));
    // The server may close the connection before everything is sent.
    let _ = (&stream).write_all(&[start, WISH].concat());
    let reply = rest_of(&stream);
    let mut witness = Talk::new(&running);
    assert_eq!(witness.say("DEL victim"), ":0\r\n", "{} was done", start.escape_ascii());
    String::from_utf8(reply).expect("text")
}

#[test]
fn a_request_of_http_is_answered_in_http_and_nothing_of_it_is_done() {
    for start in [
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:6380\r\n\r\n",
        "GET /x?y=z HTTP/1.0\r\n",
        "POST / HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 300\r\n\r\n",
        "POST /\r\n",
        "post / \n",
        "PUT \"/ HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "Host: 127.0.0.1\r\n",
        "hOsT:x\r\n",
        "\r\nGET / HTTP/1.1\r\n",
    ] {
        let reply = answer(start.as_bytes());
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
        assert!(
            head.starts_with("HTTP/1.1 400 Bad Request\r\n") && head.contains("\r\nconnection: close"),
            "{head}"
        );
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{reply}");
    }
}

#[test]
fn requests_before_it_are_answered() {
    let reply = answer(b"PING\r\nECHO hello\r\nGET / HTTP/1.1\r\n");
    assert!(reply.starts_with("+PONG\r\n$5\r\nhello\r\nHTTP/1.1 400 "), "{reply}");
}

#[test]
fn a_handshake_of_tls_is_ended_without_a_word() {
    assert_eq!(answer(CLIENT_HELLO), "");
    assert_eq!(answer(b"\x16"), "");
    assert_eq!(answer(&[b"PING\r\n", CLIENT_HELLO].concat()), "+PONG\r\n");
}

#[test]
fn a_request_within_an_array_is_no_word() {
    let reply = answer(b"*1\r\nPOST / HTTP/1.1\r\n");
    assert_eq!(reply, "-ERR Protocol error: expected '$', got 'P'\r\n");
}

#[test]
fn words_that_only_look_like_http_are_words() {
    let (_running, mut talk) = Running::bounded(PATIENT).with_raw();
    assert_eq!(talk.ask(&["ECHO", "POST / HTTP/1.1"]), "$15\r\nPOST / HTTP/1.1\r\n");
    assert!(talk.say("POST /").starts_with("-ERR unknown command 'POST'"));
    assert!(talk.say("Host: here").starts_with("-ERR unknown command 'Host:'"));
}
