//! `TG.RESET key` and `DEL key …`: a key is forgotten, whatever its limits.

use super::{integers, pairs};
use crate::resp::raw::Talk;
use crate::wire::Running;

/// A limit of each algorithm, of which one may pass.
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
        let running = Running::start();
        let mut talk = Talk::new(&running);
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
    let running = Running::start();
    let mut talk = Talk::new(&running);
    let told =
        talk.send(b"CL.THROTTLE k 0 1 60\r\nDEL k\r\nTG.TAKE k LIMIT 1/60s\r\nTG.TAKE k LIMIT 1/60s\r\n");
    let expected = [
        integers(&[0, 1, 0, -1, 60]),
        ":1\r\n".to_owned(),
        pairs([1, 1, 0, -1, 60_000, 0], ""),
        pairs([0, 1, 0, 60_000, 60_000, -1], ""),
    ];
    assert_eq!(told, expected.concat());
}
