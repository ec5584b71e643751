//! Tests of `THROTTLE key max_burst count_per_period period [quantity]`, as in throttlecrab.

use std::time::Duration;

use super::{integers, pairs};
use crate::resp::raw::{Talk, answers};
use crate::wire::Running;

#[test]
fn the_burst_is_the_total_and_the_reply_has_the_order_of_throttlecrab() {
    let (running, mut talk) = Running::start().with_raw();
    for left in (0..3).rev() {
        assert_eq!(talk.say("THROTTLE k 3 30 60"), integers(&[1, 3, left, 2 * (3 - left), 0]));
    }
    assert_eq!(talk.say("throttle k 3 30 60"), integers(&[0, 3, 0, 6, 2]));
    running.clock.advance(Duration::from_millis(1999));
    assert_eq!(talk.say("THROTTLE k 3 30 60"), integers(&[0, 3, 0, 5, 1]));
    running.clock.advance(Duration::from_millis(1));
    assert_eq!(talk.say("THROTTLE k 3 30 60"), integers(&[1, 3, 0, 6, 0]));
}

#[test]
fn both_versions_get_the_same_reply() {
    let running = Running::start();
    assert_eq!(Talk::new(&running).say("THROTTLE k 10 100 60"), integers(&[1, 10, 9, 1, 0]));
    assert_eq!(Talk::in_version_3(&running).say("THROTTLE k 10 100 60"), integers(&[1, 10, 8, 2, 0]));
}

#[test]
fn a_quantity_is_spent_whole_or_not_at_all_and_none_spends_nothing() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("THROTTLE k 10 10 60 4"), integers(&[1, 10, 6, 24, 0]));
    assert_eq!(talk.say("THROTTLE k 10 10 60 7"), integers(&[0, 10, 6, 24, 6]));
    assert_eq!(talk.say("THROTTLE k 10 10 60 0"), integers(&[1, 10, 6, 24, 0]));
    assert_eq!(talk.say("THROTTLE k 10 10 60 6"), integers(&[1, 10, 0, 60, 0]));
    assert_eq!(talk.say("THROTTLE k 10 10 60 0"), integers(&[1, 10, 0, 60, 0]));
    // No wait helps above the burst.
    assert_eq!(talk.say("THROTTLE other 10 10 60 11"), integers(&[0, 10, 10, 0, -1]));
    assert_eq!(talk.say(&format!("THROTTLE other 10 10 60 {}", i64::MAX)), integers(&[0, 10, 10, 0, -1]));
}

#[test]
fn equal_limits_are_one_state_whichever_command_names_them() {
    let (_running, mut talk) = Running::start().with_raw();
    assert_eq!(talk.say("THROTTLE k 10 100 60"), integers(&[1, 10, 9, 1, 0]));
    assert_eq!(talk.say("CL.THROTTLE k 9 100 60"), integers(&[0, 10, 8, -1, 2]));
    let take = talk.ask(&["TG.TAKE", "k", "LIMIT", "100/60s burst 10"]);
    assert_eq!(take, pairs([1, 10, 7, -1, 1800, 0], ""));
    assert_eq!(talk.say("DEL k"), ":1\r\n");
    assert_eq!(talk.say("THROTTLE k 10 100 60"), integers(&[1, 10, 9, 1, 0]));
}

/// The limit of the last request is not parsed again if its words are the same. Equal words of both commands are
/// different limits.
#[test]
fn equal_words_of_both_commands_are_their_own_limits_in_one_pipeline() {
    let (_running, mut talk) = Running::start().with_raw();
    let words = "k 1 1 60\r\n";
    let replies = talk.send(
        format!("THROTTLE {words}CL.THROTTLE {words}THROTTLE {words}CL.THROTTLE {words}CL.THROTTLE {words}")
            .as_bytes(),
    );
    let expected = [
        integers(&[1, 1, 0, 60, 0]),
        integers(&[0, 2, 1, -1, 60]),
        integers(&[0, 1, 0, 60, 60]),
        integers(&[0, 2, 0, -1, 120]),
        integers(&[1, 2, 0, 60, 120]),
    ];
    assert_eq!(replies, expected.concat());
    // Again, each by itself.
    assert_eq!(talk.say("THROTTLE k 1 1 60 0"), integers(&[1, 1, 0, 60, 0]));
    assert_eq!(talk.say("CL.THROTTLE k 1 1 60 0"), integers(&[0, 2, 0, -1, 120]));
}

#[test]
fn pipelines_and_transactions_decide_each_by_itself() {
    let running = Running::start();
    let line = "THROTTLE k 2 1 60\r\n";
    let [one, two, denied] =
        [[1, 2, 1, 60, 0], [1, 2, 0, 120, 0], [0, 2, 0, 120, 60]].map(|reply| integers(&reply));
    let replies = answers(&running, line.repeat(3).as_bytes());
    assert_eq!(String::from_utf8_lossy(&replies), [&*one, &two, &denied].concat());
    let queued = format!("MULTI\r\n{}EXEC\r\n", line.replace('k', "other").repeat(3));
    let replies = answers(&running, queued.as_bytes());
    let expected = format!("+OK\r\n{}*3\r\n{one}{two}{denied}", "+QUEUED\r\n".repeat(3));
    assert_eq!(String::from_utf8_lossy(&replies), expected);
}

#[test]
fn an_error_names_the_word_and_the_usage_and_spends_nothing() {
    let (_running, mut talk) = Running::start().with_raw();
    let usage = "usage: THROTTLE key max_burst count_per_period period [quantity]";
    let arity = format!("-ERR wrong number of arguments for 'throttle' command; {usage}\r\n");
    assert_eq!(talk.say("THROTTLE"), arity);
    assert_eq!(talk.say("THROTTLE k 1 1"), arity);
    assert_eq!(talk.say("THROTTLE k 1 1 60 1 1"), arity);
    assert_eq!(talk.say("THROTTLE k 1 1 1m"), format!("-ERR '1m' is not an integer; {usage}\r\n"));
    assert_eq!(talk.say("THROTTLE k 1 1 60 1.5"), format!("-ERR '1.5' is not an integer; {usage}\r\n"));
    assert_eq!(talk.say("THROTTLE k 1 -1 60"), "-ERR -1 is negative; numbers of THROTTLE are 0 or more\r\n");
    assert_eq!(talk.say("THROTTLE k 0 1 60"), "-ERR max_burst 0 never allows a request; write 1 or more\r\n");
    for zero in ["THROTTLE k 1 0 60", "THROTTLE k 1 1 0"] {
        let expected = "-ERR count_per_period and period are 1 or more, as in THROTTLE user123 10 100 60\r\n";
        assert_eq!(talk.say(zero), expected, "{zero}");
    }
    let most = i64::MAX;
    assert!(talk.say(&format!("THROTTLE k {most} 1 {most}")).starts_with("-ERR "));
    assert_eq!(talk.say("THROTTLE k 1 1 60"), integers(&[1, 1, 0, 60, 0]));
}

#[test]
fn any_bytes_are_a_key() {
    let (_running, mut talk) = Running::start().with_raw();
    let keys: [&[u8]; 5] = [b"", b"\0", b"\r\n", b"\xff\xfe", b"*5\r\n:0\r\n"];
    for key in keys {
        let words = [b"THROTTLE", key, b"1", b"1", b"60"];
        assert_eq!(talk.ask(&words), integers(&[1, 1, 0, 60, 0]), "{}", key.escape_ascii());
        assert_eq!(talk.ask(&words), integers(&[0, 1, 0, 60, 60]), "{}", key.escape_ascii());
    }
}
