//! Tests of `TG.RESET key [LIMIT text]` and `DEL key …`: reset of a key under one limit, or under all.

use tidegate::SECOND;

use super::{integers, pairs};
use crate::resp::raw::Talk;
use crate::wire::Running;

/// A limit of each algorithm that allows one request.
const LIMITS: [&str; 7] = [
    "1/60s",
    "1/60s queue 0 leaky-bucket",
    "1/60s fixed-window",
    "1/60s sliding-log",
    "1/60s sliding-window",
    "1/60s pacer",
    "1/60s concurrency",
];

fn is_allowed(talk: &mut Talk, key: &str, limit: &str) -> bool {
    talk.ask(&["TG.TAKE", key, "LIMIT", limit]).contains("allowed\r\n:1\r\n")
}

#[test]
fn all_algorithms_of_a_key_are_dropped_and_no_other_key() {
    for verb in ["DEL", "TG.RESET"] {
        let (_running, mut talk) = Running::start().with_raw();
        for key in ["ana", "bob"] {
            assert!(LIMITS.iter().all(|limit| is_allowed(&mut talk, key, limit)), "{key}");
            assert!(!LIMITS.iter().any(|limit| is_allowed(&mut talk, key, limit)), "{key}");
        }
        assert_eq!(talk.ask(&[verb, "ana"]), ":1\r\n");
        assert!(!LIMITS.iter().any(|limit| is_allowed(&mut talk, "bob", limit)));
        assert!(LIMITS.iter().all(|limit| is_allowed(&mut talk, "ana", limit)));
    }
}

#[test]
fn a_reset_that_names_its_limit_leaves_the_others() {
    let (_running, mut talk) = Running::start().with_raw();
    for limit in LIMITS {
        assert!(LIMITS.iter().all(|limit| is_allowed(&mut talk, "ana", limit)));
        assert_eq!(talk.ask(&["TG.RESET", "ana", "LIMIT", limit]), ":1\r\n");
        assert_eq!(talk.ask(&["TG.RESET", "ana", "limit", limit]), ":0\r\n");
        let allowed = LIMITS.iter().filter(|limit| is_allowed(&mut talk, "ana", limit)).copied();
        assert_eq!(allowed.collect::<Vec<_>>(), [limit]);
        assert_eq!(talk.say("DEL ana"), ":1\r\n");
    }
    for (line, error) in [
        ("TG.RESET ana LIMIT", "a limit is missing; write key LIMIT \"30/60s burst 15\""),
        ("TG.RESET ana bob", "expected LIMIT behind the key, found 'bob'"),
        ("TG.RESET ana LIMIT 1/s bob", "unexpected 'bob'; write key [LIMIT text]"),
        ("TG.RESET ana LIMIT 1/min", "limit \"1/min\": unknown unit"),
    ] {
        let heard = talk.say(line);
        assert!(heard.starts_with(&format!("-ERR {error}")), "{line}: {heard}");
    }
}

#[test]
fn while_not_all_limits_are_listed_a_reset_by_key_is_an_error_that_says_what_to_do() {
    let (running, mut talk) = Running::start().with_raw();
    for amount in 1..=1025 {
        assert!(is_allowed(&mut talk, "ana", &format!("{amount}/h")));
    }
    for line in ["DEL ana", "DEL bob ana", "TG.RESET ana"] {
        assert_eq!(
            talk.say(line),
            "-ERR more than 1024 limits are in use, and a reset by key does not know all of them; name the limit to \
             reset: TG.RESET key LIMIT text\r\n"
        );
    }
    for limit in ["1/h", "1025/h"] {
        assert!(!is_allowed(&mut talk, "ana", "1/h") || limit != "1/h");
        assert_eq!(talk.ask(&["TG.RESET", "ana", "LIMIT", limit]), ":1\r\n");
    }
    // Once most of them are full again, all limits in use are listed again.
    running.clock.advance(5 * 3600 * SECOND);
    assert!(is_allowed(&mut talk, "ana", "1/h"));
    assert_eq!(talk.say("DEL ana"), ":1\r\n");
    assert!(is_allowed(&mut talk, "ana", "1/h"));
}

#[test]
fn how_many_were_known_is_counted() {
    let running = Running::start();
    let (mut second, mut third) = (Talk::new(&running), Talk::in_version_3(&running));
    assert_eq!(second.say("TG.RESET ana"), ":0\r\n");
    second.say("CL.THROTTLE ana 1 1 60");
    second.say("CL.THROTTLE bob 1 1 60");
    assert_eq!(second.say("DEL ana bob eve ana"), ":2\r\n");
    second.say("CL.THROTTLE ana 1 1 60");
    assert_eq!(third.say("tg.reset ana"), ":1\r\n");
    assert_eq!(third.say("del ana"), ":0\r\n");
    assert_eq!(second.say("CL.THROTTLE bob 1 1 60"), integers(&[0, 2, 1, -1, 60]));
}

#[test]
fn takes_before_it_in_the_pipeline_are_forgotten_and_those_behind_it_are_not() {
    let (_running, mut talk) = Running::start().with_raw();
    let replies =
        talk.send(b"CL.THROTTLE k 0 1 60\r\nDEL k\r\nTG.TAKE k LIMIT 1/60s\r\nTG.TAKE k LIMIT 1/60s\r\n");
    let expected = [
        integers(&[0, 1, 0, -1, 60]),
        ":1\r\n".to_owned(),
        pairs([1, 1, 0, -1, 60_000, 0], ""),
        pairs([0, 1, 0, 60_000, 60_000, -1], ""),
    ];
    assert_eq!(replies, expected.concat());
}
