//! Tests of `MULTI … EXEC`: `EXEC` returns one reply per queued command, whatever the commands.

use super::integers;
use crate::resp::raw::answers;
use crate::wire::Running;

const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.\r\n";

#[test]
fn a_line_of_more_words_than_an_array_may_have_does_not_wait() {
    let running = Running::start();
    let line = |words: usize| format!("DEL{}\r\n", " a".repeat(words - 1));
    let most = format!("MULTI\r\n{}PING\r\nEXEC\r\nPING\r\n", line(16_384));
    let replies = String::from_utf8(answers(&running, most.as_bytes())).expect("text");
    assert_eq!(replies, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:0\r\n+PONG\r\n+PONG\r\n");
    let more = format!("MULTI\r\n{}PING\r\nEXEC\r\nPING\r\n", line(16_385));
    let replies = String::from_utf8(answers(&running, more.as_bytes())).expect("text");
    assert!(
        replies.starts_with("+OK\r\n-ERR ") && replies.ends_with(&format!("{ABORTED}+PONG\r\n")),
        "{replies}"
    );
}

#[test]
fn an_error_within_exec_is_a_reply_in_its_place() {
    let (_running, mut talk) = Running::start().with_raw();
    let replies = talk.send(
        b"MULTI\r\nCL.THROTTLE k 1 1 60\r\nTG.TAKE k LIMIT bad\r\nCL.THROTTLE k 1 1 60\r\nTG.PEEK k LIMIT 1/s COST 0\r\n\
          CL.THROTTLE k x 1 60\r\nSELECT 7\r\nECHO \"a\\r\\nb\"\r\nEXEC\r\n",
    );
    let answers = replies.split_once("*7\r\n").expect("seven answers").1;
    let (first, rest) = answers.split_at(integers(&[0, 2, 1, -1, 60]).len());
    assert_eq!(first, integers(&[0, 2, 1, -1, 60]));
    assert!(rest.starts_with("-ERR limit \"bad\": "), "{rest}");
    assert!(rest.contains(&integers(&[0, 2, 0, -1, 120])), "{rest}");
    assert!(rest.ends_with("-ERR DB index is out of range\r\n$4\r\na\r\nb\r\n"), "{rest}");
}

#[test]
fn nothing_is_spent_before_exec_nor_after_discard_or_a_mistake() {
    let (running, mut talk) = Running::start().with_raw();
    talk.send(b"MULTI\r\nCL.THROTTLE k 0 1 60\r\nDISCARD\r\n");
    let replies = talk.send(b"MULTI\r\nCL.THROTTLE k 0 1 60\r\nNOTHING\r\nCL.THROTTLE k 0 1 60\r\nEXEC\r\n");
    assert!(replies.ends_with(&format!("+QUEUED\r\n{ABORTED}")), "{replies}");
    talk.send(b"MULTI\r\nCL.THROTTLE k 0 1 60\r\nRESET\r\nEXEC\r\n");
    assert_eq!(answers(&running, b"MULTI\r\nCL.THROTTLE k 0 1 60\r\nQUIT\r\n"), b"+OK\r\n+QUEUED\r\n+OK\r\n");
    assert_eq!(
        answers(&running, b"MULTI\r\nCL.THROTTLE k 0 1 60\r\n*x\r\nEXEC\r\n").len(),
        "+OK\r\n+QUEUED\r\n".len() + 47
    );
    assert_eq!(talk.say("DEL k"), ":0\r\n");
}
