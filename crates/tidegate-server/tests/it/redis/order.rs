//! Tests that replies come in the order of their requests, however many are in flight.

use rustix::process::Signal;
use testbed::until;

use super::place::{Node, TIMEOUT, decided_by, outline, redis, store};
use crate::wire::resp::{Value, request};

fn take(key: &str, limit: &str) -> Vec<u8> {
    request(&["TG.TAKE", key, "LIMIT", limit])
}

#[test]
fn takes_that_were_pipelined_are_answered_in_their_order() {
    let (_redis, _node, mut client) = Node::on_redis("pipelined");
    // Each take has its own limit, with other commands in between. More are pipelined than the server has in flight at
    // once.
    let said = |nth: i64| {
        let (limit, echoed) = (100 + nth, nth.to_string());
        let throttle = ["CL.THROTTLE", "eve", &limit.to_string(), "500", "3600"].map(str::to_owned);
        [take("ana", &format!("{limit}/h")), request(&["ECHO", &echoed]), request(&throttle)].concat()
    };
    client.send(&(0..150).flat_map(said).collect::<Vec<_>>());
    for nth in 0..150 {
        let [_, limit, _] = outline(&client.read());
        assert_eq!(limit, 100 + nth);
        assert_eq!(client.read(), Value::bulk(&nth.to_string()));
        let Value::Array(numbers) = client.read() else { panic!("five numbers") };
        assert_eq!(numbers[1], Value::Integer(101 + nth));
    }
}

#[test]
fn takes_of_one_key_that_were_pipelined_are_each_counted_once_in_their_order() {
    let (_redis, _node, mut client) = Node::on_redis("one_key");
    client.send(&take("bob", "200/h").repeat(150));
    let left: Vec<_> = (0..150).map(|_| client.read().number("remaining")).collect();
    assert_eq!(left, (50..200).rev().collect::<Vec<_>>(), "in their order, as one by one");
}

#[test]
fn a_change_of_a_key_stays_between_the_takes_around_it() {
    let (_redis, _node, mut client) = Node::on_redis("between");
    let said = [
        take("ana", "5/h"),
        take("ana", "5/h"),
        request(&["TG.PEEK", "ana", "LIMIT", "5/h"]),
        request(&["TG.ADJUST", "ana", "LIMIT", "5/h", "2"]),
        take("ana", "5/h"),
        request(&["PING"]),
        take("ana", "5/h"),
        request(&["DEL", "ana", "unused"]),
        take("ana", "5/h"),
    ];
    client.send(&said.concat());
    for expected in [[1, 5, 4], [1, 5, 3], [1, 5, 3], [1, 5, 1], [1, 5, 0]] {
        assert_eq!(outline(&client.read()), expected);
    }
    assert_eq!(client.read(), Value::Simple("PONG".to_owned()));
    assert_eq!(outline(&client.read()), [0, 5, 0]);
    assert_eq!(client.read(), Value::Integer(1));
    assert_eq!(outline(&client.read()), [1, 5, 4]);
}

#[test]
fn queued_commands_are_executed_in_order() {
    let (_redis, _node, mut client) = Node::on_redis("exec");
    let said = [
        take("ana", "5/h"),
        request(&["MULTI"]),
        take("ana", "5/h"),
        request(&["TG.PEEK", "ana", "LIMIT", "5/h"]),
        request(&["DEL", "ana"]),
        request(&["ECHO", "x"]),
        take("ana", "5/h"),
        request(&["EXEC"]),
        take("ana", "5/h"),
    ];
    client.send(&said.concat());
    assert_eq!(outline(&client.read()), [1, 5, 4]);
    assert_eq!(client.read(), Value::Simple("OK".to_owned()));
    for _ in 0..5 {
        assert_eq!(client.read(), Value::Simple("QUEUED".to_owned()));
    }
    let Value::Array(done) = client.read() else { panic!("all of them") };
    assert_eq!([0, 1, 4].map(|nth| outline(&done[nth])), [[1, 5, 3], [1, 5, 3], [1, 5, 4]]);
    assert_eq!(done[2..4], [Value::Integer(1), Value::bulk("x")]);
    assert_eq!(outline(&client.read()), [1, 5, 3]);
}

#[test]
fn a_client_that_shuts_down_its_write_side_still_gets_all_replies() {
    let (_redis, node, mut client) = Node::on_redis("said_all");
    client.send(&take("ana", "200/h").repeat(100));
    client.finish();
    let answers = client.read_to_end().expect("whole replies");
    assert_eq!(answers.len(), 100);
    assert_eq!(outline(&answers[99]), [1, 200, 100]);
    // After takes, an invalid command or `QUIT` closes the connection after their replies.
    for (last, answers) in [(&b"*x\r\n"[..], 4), (b"QUIT\r\n", 4)] {
        let mut client = node.resp();
        client.send(&[&take("bob", "9/h").repeat(3), last].concat());
        assert_eq!(client.read_to_end().expect("whole replies").len(), answers);
    }
}

#[test]
fn a_stopping_server_answers_requests_in_flight() {
    let redis = redis();
    let node = Node::start("stops", &store(&redis).replace("\"5s\"", "\"2s\""));
    let mut client = node.resp();
    assert_eq!(decided_by(&client.say("TG.TAKE ana LIMIT 9/h")), "redis");
    redis.stop();
    client.send(&take("ana", "9/h").repeat(3));
    until("three questions in flight", TIMEOUT, || {
        (node.metric("tidegate_store_in_flight") == 3).then_some(())
    });
    node.process.signal(Signal::TERM);
    node.process.says("stopping");
    let answers = client.read_to_end().expect("whole replies");
    assert_eq!(answers.iter().map(decided_by).collect::<Vec<_>>(), ["local"; 3]);
    node.process.says("stopped");
    redis.resume();
}
