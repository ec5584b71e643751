//! Tests of `CL.THROTTLE key max_burst count period [quantity]`.

use std::time::Duration;

use super::{integers, pairs};
use crate::resp::raw::{Talk, answers};
use crate::wire::Running;

const ASK: &str = "CL.THROTTLE user123 15 30 60";

#[test]
fn a_new_key_gets_the_reply_of_redis_cell() {
    let running = Running::start();
    let array = b"*5\r\n$11\r\nCL.THROTTLE\r\n$7\r\nuser123\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n";
    assert_eq!(
        answers(&running, array).escape_ascii().to_string(),
        r"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"
    );
    let line = b"cl.throttle user456 15 30 60\n";
    assert_eq!(
        answers(&running, line).escape_ascii().to_string(),
        r"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"
    );
}

#[test]
fn both_versions_get_the_same_reply() {
    let running = Running::start();
    assert_eq!(Talk::new(&running).say(ASK), integers(&[0, 16, 15, -1, 2]));
    assert_eq!(Talk::in_version_3(&running).say(ASK), integers(&[0, 16, 14, -1, 4]));
}

#[test]
fn pipelined_takes_of_a_new_key_get_its_whole_burst() {
    for burst in [1, 2, 5, 16] {
        let running = Running::start();
        // Every reading of the clock advances it.
        running.ticking.tick(conformance::ticks(1));
        let request = format!("CL.THROTTLE new {} {burst} 60\r\n", burst - 1);
        let expected = (1..=burst + 2).map(|ask| match burst - ask {
            left @ 0.. => {
                format!("*5\r\n:0\r\n:{burst}\r\n:{left}\r\n:-1\r\n:{}\r\n", rounded_up(60 * ask, burst))
            }
            _ => format!("*5\r\n:1\r\n:{burst}\r\n:0\r\n:{}\r\n:60\r\n", rounded_up(60, burst)),
        });
        let replies = answers(&running, request.repeat(burst as usize + 2).as_bytes());
        assert_eq!(String::from_utf8_lossy(&replies), expected.collect::<String>(), "a burst of {burst}");
    }
}

fn rounded_up(seconds: i64, parts: i64) -> i64 {
    (seconds + parts - 1) / parts
}

#[test]
fn a_drained_key_is_limited_until_it_has_earned_one_and_waits_are_rounded_up() {
    let (running, mut talk) = Running::start().with_raw();
    for left in (0..16).rev() {
        assert_eq!(talk.say(ASK), integers(&[0, 16, left, -1, 2 * (16 - left)]));
    }
    assert_eq!(talk.say(ASK), integers(&[1, 16, 0, 2, 32]));
    running.clock.advance(Duration::from_millis(999));
    assert_eq!(talk.say(ASK), integers(&[1, 16, 0, 2, 32]));
    running.clock.advance(Duration::from_millis(1));
    assert_eq!(talk.say(ASK), integers(&[1, 16, 0, 1, 31]));
    running.clock.advance(Duration::from_millis(999));
    assert_eq!(talk.say(ASK), integers(&[1, 16, 0, 1, 31]));
    running.clock.advance(Duration::from_millis(1));
    assert_eq!(talk.say(ASK), integers(&[0, 16, 0, -1, 32]));
}

#[test]
fn a_pipeline_is_answered_in_order_and_spends_once_each() {
    let running = Running::start();
    let line = format!("{ASK}\r\n").repeat(17);
    let expected: String = (0..16).map(|spent| integers(&[0, 16, 15 - spent, -1, 2 * (spent + 1)])).collect();
    let limited = integers(&[1, 16, 0, 2, 32]);
    assert_eq!(String::from_utf8_lossy(&answers(&running, line.as_bytes())), expected + &limited);
}

#[test]
fn a_quantity_is_spent_at_once_or_not_at_all() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 5"), integers(&[0, 16, 11, -1, 10]));
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 12"), integers(&[1, 16, 11, 2, 10]));
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 11"), integers(&[0, 16, 0, -1, 32]));
}

#[test]
fn a_quantity_of_nothing_looks_and_is_never_limited() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("CL.THROTTLE k 1 1 60 0"), integers(&[0, 2, 2, -1, 0]));
    assert_eq!(talk.say("CL.THROTTLE k 1 1 60 2"), integers(&[0, 2, 0, -1, 120]));
    assert_eq!(talk.say("CL.THROTTLE k 1 1 60 0"), integers(&[0, 2, 0, -1, 120]));
    assert_eq!(talk.say("CL.THROTTLE k 1 1 60 0"), integers(&[0, 2, 0, -1, 120]));
}

#[test]
fn a_quantity_that_never_fits_is_limited_without_a_wait_and_spends_nothing() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 17"), integers(&[1, 16, 16, -1, 0]));
    let most = i64::MAX;
    assert_eq!(talk.say(&format!("CL.THROTTLE k 15 30 60 {most}")), integers(&[1, 16, 16, -1, 0]));
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 16"), integers(&[0, 16, 0, -1, 32]));
}

#[test]
fn a_burst_of_nothing_lets_one_pass_at_a_time() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("CL.THROTTLE k 0 1 1"), integers(&[0, 1, 0, -1, 1]));
    assert_eq!(talk.say("CL.THROTTLE k 0 1 1"), integers(&[1, 1, 0, 1, 1]));
}

#[test]
fn it_spends_what_a_token_bucket_of_the_same_key_has() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 10"), integers(&[0, 16, 6, -1, 20]));
    let reply = talk.ask(&["TG.TAKE", "k", "LIMIT", "30/60s burst 16", "COST", "5"]);
    assert_eq!(reply, pairs([1, 16, 1, -1, 30_000, 0], ""));
    assert_eq!(talk.say("CL.THROTTLE k 15 30 60 2"), integers(&[1, 16, 1, 2, 30]));
    let reply = talk.ask(&["TG.TAKE", "k", "LIMIT", "30/60s fixed-window"]);
    assert_eq!(reply, pairs([1, 30, 29, -1, 60_000, 0], ""), "another algorithm is another state");
}

#[test]
fn takes_of_two_kinds_in_one_pipeline_get_replies_of_their_kind() {
    let (_running, mut talk) = Running::start().with_raw();
    let lines = "CL.THROTTLE a 1 1 60\r\nTG.TAKE a LIMIT 2/120s\r\nCL.THROTTLE b 4 1 60\r\nTG.TAKE b LIMIT 3/60s\r\n\
                 CL.THROTTLE a 1 1 60\r\nCL.THROTTLE b 2 3 60\r\n";
    let replies = talk.send(lines.as_bytes());
    let expected = [
        integers(&[0, 2, 1, -1, 60]),
        pairs([1, 2, 0, -1, 120_000, 0], ""),
        integers(&[0, 5, 4, -1, 60]),
        pairs([1, 3, 2, -1, 20_000, 0], ""),
        integers(&[1, 2, 0, 60, 120]),
        integers(&[0, 3, 1, -1, 40]),
    ];
    assert_eq!(replies, expected.concat());
}

#[test]
fn numbers_are_read_from_the_words_and_not_from_what_is_between_them() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("CL.THROTTLE k 1 1 60"), integers(&[0, 2, 1, -1, 60]));
    // The same bytes as in the array before, but split into other words.
    let reply = talk.send(b"CL.THROTTLE k \"1\" \"\\r\" \"\\n$1\\r\\n1\\r\\n$2\\r\\n60\"\r\n");
    assert_eq!(reply, "-Cell error: Store error: Couldn't parse as integer: \\r\r\n");
}

#[test]
fn any_bytes_are_a_key() {
    let (_running, mut talk) = Running::start().with_raw();
    let keys: [&[u8]; 7] = [b"", b"\0", b"\r\n", b"\xff\xfe", b" ", b"*5\r\n:0\r\n", b"\0\0"];
    for key in keys {
        let words = [b"CL.THROTTLE", key, b"0", b"1", b"60"];
        assert_eq!(talk.ask(&words), integers(&[0, 1, 0, -1, 60]), "{}", key.escape_ascii());
        assert_eq!(talk.ask(&words), integers(&[1, 1, 0, 60, 60]), "{}", key.escape_ascii());
    }
}
