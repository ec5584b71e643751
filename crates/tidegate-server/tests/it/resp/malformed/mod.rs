//! Tests of malformed input: the server replies with valid RESP, and keeps running.

mod cases;
mod class;
mod echoed;
mod heavy;
mod redis;

use crate::wire::Running;
use cases::Case;
use class::Hearing;

/// Sends each case, and checks its replies. Afterwards the server still has to answer.
fn are_survived(cases: &[Case]) {
    let running = Running::start();
    let hearing = Hearing::of(running.server.resp().expect("it speaks RESP"));
    let mut witness = running.resp();
    for case in cases {
        let heard = hearing.hear(&case.input);
        let lines = case.input.iter().filter(|byte| **byte == b'\n').count();
        assert!(heard.replies.len() <= lines + 1, "more replies than requests: {heard:?} by {case}");
        if let Some(replies) = case.replies {
            assert_eq!(heard.replies.len(), replies, "{heard:?} to {case}");
        }
        if let Some(class) = case.class {
            assert_eq!(heard.class, class, "{heard:?} to {case}");
        }
        assert_eq!(witness.say("PING"), crate::wire::resp::Value::Simple("PONG".to_owned()), "after {case}");
    }
    assert_eq!(running.resp().say("ECHO alive"), crate::wire::resp::Value::bulk("alive"));
    println!("malformed: {} inputs", cases.len());
}

#[test]
fn lengths_that_are_none() {
    let cases = cases::lengths();
    assert!(cases.len() >= 500, "{}", cases.len());
    are_survived(&cases);
}

#[test]
fn bytes_that_begin_nothing() {
    are_survived(&cases::beginnings());
}

#[test]
fn requests_that_stop_anywhere() {
    are_survived(&cases::truncated());
}

#[test]
fn requests_whose_parts_do_not_fit_together() {
    are_survived(&cases::shapes());
}

#[test]
fn lines_that_are_no_words() {
    are_survived(&cases::lines());
}

#[test]
fn words_that_come_back_within_an_answer() {
    are_survived(&echoed::cases());
}

#[test]
fn more_than_anybody_needs() {
    are_survived(&heavy::cases());
}

#[test]
fn the_class_of_an_answer_is_that_of_redis_but_for_what_is_listed() {
    redis::compare();
}

#[test]
fn of_hundreds_it_is_known_how_they_are_answered() {
    let groups =
        [cases::lengths(), cases::beginnings(), cases::truncated(), cases::shapes(), echoed::cases()];
    let known = groups.iter().flatten().filter(|case| case.replies.is_some() && case.class.is_some());
    assert!(known.count() >= 500);
}
