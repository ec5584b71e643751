//! Tests of `MULTI` and `EXEC`: queued commands are executed by `EXEC`, or not at all.

use crate::wire::Running;
use crate::wire::resp::{Client, Value, request};

const TAKE: &str = "CL.THROTTLE ana 4 1 3600";

fn queued() -> Value {
    Value::Simple("QUEUED".to_owned())
}

/// Returns the remaining quota of ana, of five.
fn left(client: &mut Client) -> i64 {
    client.ask(&["TG.PEEK", "ana", "LIMIT", "1/h burst 5"]).number("remaining")
}

#[test]
fn everything_is_done_when_exec_comes_and_answered_in_its_order() {
    let (running, mut client) = Running::start().with_resp();
    assert_eq!(client.say("MULTI"), Value::Simple("OK".to_owned()));
    for words in [TAKE, TAKE, "PING", "CL.THROTTLE ana x 1 3600", TAKE, "DEL bob"] {
        assert_eq!(client.say(words), queued());
    }
    assert_eq!(left(&mut running.resp()), 5, "nothing was done yet");
    let Value::Array(answers) = client.say("EXEC") else { panic!("no array") };
    assert_eq!(answers[0], Value::integers(&[0, 5, 4, -1, 3600]));
    assert_eq!(answers[1], Value::integers(&[0, 5, 3, -1, 7200]));
    assert_eq!(answers[2], Value::Simple("PONG".to_owned()));
    assert_eq!(answers[3].error(), "Cell error: Store error: Couldn't parse as integer: x");
    assert_eq!(answers[4], Value::integers(&[0, 5, 2, -1, 10_800]));
    assert_eq!(answers[5], Value::Integer(0));
    assert_eq!((answers.len(), left(&mut client)), (6, 2));
}

#[test]
fn a_pipeline_with_all_of_it_is_answered_as_one_by_one() {
    let (_running, mut client) = Running::start().with_resp();
    let words = |text: &str| request(&text.split(' ').collect::<Vec<_>>());
    client.send(&["MULTI", TAKE, TAKE, "EXEC", TAKE].map(words).concat());
    let replies: Vec<_> = (0..5).map(|_| client.read()).collect();
    assert_eq!(replies[1..3], [queued(), queued()]);
    let both = [Value::integers(&[0, 5, 4, -1, 3600]), Value::integers(&[0, 5, 3, -1, 7200])];
    assert_eq!(replies[3], Value::Array(both.to_vec()));
    assert_eq!(replies[4], Value::integers(&[0, 5, 2, -1, 10_800]));
}

#[test]
fn nothing_is_executed_after_an_error_or_a_discard() {
    let (_running, mut client) = Running::start().with_resp();
    for broken in ["NOSUCH", "CL.THROTTLE ana", "INFO", "MULTI", "HELLO 3"] {
        client.say("MULTI");
        assert_eq!(client.say(TAKE), queued());
        client.say(broken).error();
        assert_eq!(client.say(TAKE), queued());
        assert!(client.say("EXEC").error().starts_with("EXECABORT"), "{broken}");
    }
    client.say("MULTI");
    assert_eq!(client.say(TAKE), queued());
    assert_eq!(client.say("DISCARD"), Value::Simple("OK".to_owned()));
    client.say("MULTI");
    assert_eq!(client.say(TAKE), queued());
    assert_eq!(client.say("RESET"), Value::Simple("RESET".to_owned()));
    assert_eq!(client.say("EXEC").error(), "ERR EXEC without MULTI");
    assert_eq!(client.say("DISCARD").error(), "ERR DISCARD without MULTI");
    assert_eq!(left(&mut client), 5);
}

#[test]
fn deletes_of_many_keys_are_answered_in_their_order_with_what_is_around_them() {
    let (_running, mut client) = Running::start().with_resp();
    let words = |text: &str| request(&text.split(' ').collect::<Vec<_>>());
    let delete = |keys: std::ops::Range<usize>| {
        request(&["DEL".to_owned()].into_iter().chain(keys.map(|key| format!("k{key}"))).collect::<Vec<_>>())
    };
    let takes = [0, 3999, 4000].map(|key| words(&format!("CL.THROTTLE k{key} 4 1 3600"))).concat();
    let deletes: Vec<_> = (0..20).map(|nth| delete(nth * 4000..(nth + 1) * 4000)).collect();
    client.send(&[takes, words("MULTI"), words(TAKE)].concat());
    deletes.iter().for_each(|delete| client.send(delete));
    client.send(&[words(TAKE), words("EXEC"), delete(0..16_383), words("PING")].concat());

    let replies: Vec<_> = (0..4 + 22 + 3).map(|_| client.read()).collect();
    assert!(replies[4..26].iter().all(|reply| *reply == queued()));
    let mut expected = vec![Value::integers(&[0, 5, 4, -1, 3600]), Value::Integer(2), Value::Integer(1)];
    expected.extend(vec![Value::Integer(0); 18]);
    expected.push(Value::integers(&[0, 5, 3, -1, 7200]));
    assert_eq!(replies[26], Value::Array(expected));
    assert_eq!(replies[27..], [Value::Integer(0), Value::Simple("PONG".to_owned())]);
}

#[test]
fn so_many_requests_wait_and_one_more_gives_all_up() {
    let (_running, mut client) = Running::start().with_resp();
    for (count, is_done) in [(4096, true), (4097, false)] {
        client.say("MULTI");
        let pings = request(&["PING"]).repeat(count);
        client.send(&pings);
        let refused = (0..count).filter(|_| client.read() != queued()).count();
        assert_eq!(refused, usize::from(!is_done));
        match client.say("EXEC") {
            Value::Array(answers) => assert!(is_done && answers.len() == count),
            other => assert!(!is_done && other.error().starts_with("EXECABORT")),
        }
    }
    let long = "x".repeat(200 << 10);
    client.say("MULTI");
    let replies: Vec<_> = (0..6).map(|_| client.ask(&["ECHO", &long])).collect();
    assert_eq!(replies.iter().position(|reply| *reply != queued()), Some(5), "a MiB waits, and no more");
    client.say("EXEC").error();
}
