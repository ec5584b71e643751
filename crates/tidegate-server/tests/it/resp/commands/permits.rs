//! Tests of `TG.TAKE` under a concurrency limit, of `TG.RELEASE` and of `TG.RENEW`.

use std::time::Duration;

use super::{map, pairs};
use crate::resp::raw::Talk;
use crate::wire::Running;

const LIMIT: &str = "2/30s concurrency";

fn take(talk: &mut Talk, key: &[u8]) -> String {
    talk.ask(&[b"TG.TAKE", key, b"LIMIT", LIMIT.as_bytes()])
}

/// Returns the permit at the end of a reply.
fn permit(reply: &str) -> String {
    let (_, behind) = reply.split_once("$6\r\npermit\r\n$").expect("a permit");
    behind.split("\r\n").nth(1).expect("its text").to_owned()
}

#[test]
fn a_take_returns_a_permit_that_releases_once() {
    let (_running, mut talk) = Running::start().with_raw();
    let first = take(&mut talk, b"ana");
    let text = permit(&first);
    assert!(text.ends_with(".2/30s_concurrency.616e61"), "{text}");
    let field = format!("$6\r\npermit\r\n${}\r\n{text}\r\n", text.len());
    assert_eq!(first, pairs([1, 2, 1, -1, 30_000, 0], &field));
    assert!(take(&mut talk, b"ana").contains("permit"));
    assert_eq!(take(&mut talk, b"ana"), pairs([0, 2, 0, 30_000, 30_000, -1], ""));

    assert_eq!(talk.ask(&["TG.RELEASE", &text]), ":1\r\n");
    assert_eq!(talk.ask(&["TG.RELEASE", &text]), ":0\r\n");
    assert!(take(&mut talk, b"ana").contains("permit"));
}

/// Permits must not be predictable. Otherwise one holder could release the permit of another, and a third would enter.
#[test]
fn a_permit_does_not_tell_the_next_one() {
    let (_running, mut talk) = Running::start().with_raw();
    let (mine, neighbours) = (permit(&take(&mut talk, b"ana")), permit(&take(&mut talk, b"ana")));
    let (number, behind) = mine.split_once('.').expect("a number first");
    let number = u64::from_str_radix(number, 16).expect("in hexadecimal");
    for step in 1..100 {
        for guess in [number.wrapping_add(step), number.wrapping_sub(step)] {
            assert_eq!(
                talk.ask(&["TG.RELEASE", &format!("{guess:x}.{behind}")]),
                ":0\r\n",
                "{mine} and {step}"
            );
        }
    }
    assert_eq!(take(&mut talk, b"ana"), pairs([0, 2, 0, 30_000, 30_000, -1], ""), "a third does not enter");
    assert_eq!(talk.ask(&["TG.RELEASE", &neighbours]), ":1\r\n");
}

#[test]
fn the_third_version_has_permits_in_its_map() {
    let running = Running::start();
    let mut talk = Talk::in_version_3(&running);
    let first = take(&mut talk, b"ana");
    let text = permit(&first);
    let field = format!("$6\r\npermit\r\n${}\r\n{text}\r\n", text.len());
    assert_eq!(first, map([1, 2, 1, -1, 30_000, 0], &field));
    assert_eq!(talk.ask(&["TG.RENEW", &text]), ":1\r\n");
    assert_eq!(talk.ask(&["TG.RELEASE", &text]), ":1\r\n");
    assert_eq!(talk.ask(&["TG.RENEW", &text]), ":0\r\n");
}

#[test]
fn a_lease_ends_unless_it_is_renewed() {
    let (running, mut talk) = Running::start().with_raw();
    let (kept, lost) = (permit(&take(&mut talk, b"ana")), permit(&take(&mut talk, b"ana")));
    running.clock.advance(Duration::from_secs(29));
    assert_eq!(talk.ask(&["TG.RENEW", &kept]), ":1\r\n");
    running.clock.advance(Duration::from_secs(1));
    assert_eq!(talk.ask(&["TG.RENEW", &lost]), ":0\r\n");
    assert_eq!(talk.ask(&["TG.RELEASE", &kept]), ":1\r\n");
}

#[test]
fn a_permit_of_the_longest_key_is_accepted() {
    let (_running, mut talk) = Running::start().with_raw();
    let text = permit(&take(&mut talk, &[b'k'; 64 << 10]));
    assert!(text.len() > 2 * (64 << 10));
    assert_eq!(talk.ask(&["TG.RELEASE", &text]), ":1\r\n");
}

#[test]
fn an_invalid_permit_is_an_error_with_readable_text() {
    let (_running, mut talk) = Running::start().with_raw();
    for (text, shown) in [
        (&b""[..], ""),
        (b"x", "x"),
        (b"1.2/30s.61", "1.2/30s.61"),
        (b"\r\n+OK\r\n", "\\r\\n+OK\\r\\n"),
        (b"\xff\0", "\\xff\\x00"),
    ] {
        for verb in [b"TG.RELEASE", &b"TG.RENEW"[..]] {
            let expected =
                format!("-ERR '{shown}' is no permit; TG.TAKE under a concurrency limit returns one\r\n");
            assert_eq!(talk.ask(&[verb, text]), expected);
        }
    }
}
