//! Each fault, with a real server behind it.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use testbed::{
    Admission, Afterwards, Connection, Direction, Flavour, Flow, Proxy, Redis, Reply, Settings, until,
};

/// Longer than any reply takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a test waits for a reply that does not come.
const A_WHILE: Duration = Duration::from_millis(300);

fn start() -> (Redis, Proxy) {
    let redis = Redis::start(Flavour::Redis7);
    let proxy = Proxy::start(redis.address());
    (redis, proxy)
}

fn connect(proxy: &Proxy) -> Connection {
    Connection::with_timeout(proxy.address(), TIMEOUT).expect("the proxy listens")
}

/// Whether no reply comes to this question.
fn is_mute(connection: &mut Connection, words: &[&str]) -> bool {
    let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
    connection.send(&words).expect("the proxy reads");
    is_silent(connection)
}

/// Whether no reply comes.
fn is_silent(connection: &mut Connection) -> bool {
    connection.set_timeout(A_WHILE).expect("a socket option can be set");
    let reply = connection.receive();
    connection.set_timeout(TIMEOUT).expect("a socket option can be set");
    reply.is_err_and(|error| [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()))
}

fn is_end(reply: std::io::Result<Reply>) -> bool {
    let ends = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    reply.is_err_and(|error| ends.contains(&error.kind()))
}

fn number(redis: &Redis) -> String {
    redis.command(&["GET", "n"])
}

/// Waits until the server has counted so far, of which it sends no notice.
fn counts_to(redis: &Redis, expected: &str) {
    until(&format!("a count of {expected}"), TIMEOUT, || (number(redis) == expected).then_some(()));
}

#[test]
fn everything_passes_and_is_counted() {
    let (_redis, proxy) = start();
    let (mut one, mut other) = (connect(&proxy), connect(&proxy));
    for expected in 1..=100 {
        let connection = if expected % 2 == 0 { &mut one } else { &mut other };
        assert_eq!(connection.call(&["INCR", "n"]).unwrap(), Reply::Integer(expected));
    }
    let large = "x".repeat(1_000_000);
    assert_eq!(one.call(&["ECHO", &large]).unwrap().text(), large);
    let counters = proxy.counters();
    assert_eq!((counters.opened, counters.open, counters.requests, counters.replies), (2, 2, 101, 101));

    drop((one, other));
    until("the end of both connections", Duration::from_secs(30), || {
        (proxy.counters().open == 0).then_some(())
    });
}

#[test]
fn an_eaten_reply_was_executed_and_the_connection_stays_silent() {
    let (redis, proxy) = start();
    let mut connection = connect(&proxy);
    proxy.only_for(&["INCR"]);
    proxy.eat_replies(1, Afterwards::Silence);
    assert_eq!(connection.call(&["PING"]).unwrap().text(), "PONG");
    assert!(is_mute(&mut connection, &["INCR", "n"]));
    assert!(is_mute(&mut connection, &["INCR", "n"]));
    counts_to(&redis, "2");
    assert_eq!(proxy.counters().eaten, 1);
    assert_eq!(connect(&proxy).call(&["INCR", "n"]).unwrap(), Reply::Integer(3));
}

#[test]
fn an_eaten_reply_may_cut_its_connection() {
    let (redis, proxy) = start();
    proxy.eat_replies(2, Afterwards::Cut);
    for expected in ["1", "2"] {
        assert!(is_end(connect(&proxy).call(&["INCR", "n"])));
        assert_eq!(number(&redis), expected);
    }
    assert_eq!(connect(&proxy).call(&["INCR", "n"]).unwrap(), Reply::Integer(3));
}

#[test]
fn errors_are_given_in_turn_and_the_server_does_not_see_the_request() {
    let (redis, proxy) = start();
    let mut connection = connect(&proxy);
    let errors = [
        "-READONLY You can't write against a read only replica.",
        "-LOADING Redis is loading the dataset in memory",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "-CLUSTERDOWN The cluster is down",
        "-TRYAGAIN Multiple keys request during rehashing of slot",
        "-BUSY Redis is busy running a script.",
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-NOAUTH Authentication required.",
        "-NOREPLICAS Not enough good replicas to write.",
        "-MISCONF Errors writing to the AOF file",
        "-NOSCRIPT No matching script.",
        "-MOVED 1 127.0.0.1:1",
    ];
    proxy.only_for(&["INCR"]);
    for (before, error) in errors.iter().enumerate() {
        proxy.answer(2, error);
        for _ in 0..3 {
            connection.send(&[b"GET", b"n"]).unwrap();
            connection.send(&[b"INCR", b"n"]).unwrap();
        }
        let expected = if before == 0 { "(nil)".to_owned() } else { before.to_string() };
        for _ in 0..2 {
            assert_eq!(connection.receive().unwrap().text(), expected);
            assert_eq!(connection.receive().unwrap().text(), *error);
        }
        assert_eq!(connection.receive().unwrap().text(), expected);
        assert_eq!(connection.receive().unwrap(), Reply::Integer(before as i64 + 1));
    }
    assert_eq!(number(&redis), errors.len().to_string());
    assert_eq!(proxy.counters().answered, 2 * errors.len() as u64);
}

#[test]
fn answers_from_here_keep_their_turn_among_those_of_the_server() {
    let (_redis, proxy) = start();
    let mut connection = Connection::open(proxy.address()).unwrap();
    proxy.only_for(&["INCR"]);
    proxy.answer(u64::MAX, "-BUSY");
    for round in 0..3_000 {
        // Sent one by one, so that replies come between them.
        for number in 0..4 {
            connection.send(&[b"INCR", b"n"]).unwrap();
            connection.send(&[b"ECHO", format!("{round} {number}").as_bytes()]).unwrap();
        }
        for number in 0..4 {
            assert_eq!(connection.receive().unwrap().text(), "-BUSY");
            assert_eq!(connection.receive().unwrap().text(), format!("{round} {number}"));
        }
    }
}

#[test]
fn a_cut_ends_all_connections_and_new_ones_pass() {
    let (_redis, proxy) = start();
    let (mut one, mut other) = (connect(&proxy), connect(&proxy));
    assert!(one.call(&["PING"]).is_ok() && other.call(&["PING"]).is_ok());
    proxy.cut();
    assert!(is_end(one.call(&["PING"])) && is_end(other.call(&["PING"])));
    assert!(connect(&proxy).call(&["PING"]).is_ok());
}

#[test]
fn a_connection_is_cut_in_the_middle_of_a_reply_or_a_request() {
    let (redis, proxy) = start();
    for (direction, executed) in [(Direction::Replies, "1"), (Direction::Requests, "1")] {
        let mut connection = connect(&proxy);
        assert!(connection.call(&["PING"]).is_ok());
        proxy.cut_after(direction, 3);
        assert!(is_end(connection.call(&["INCR", "n"])));
        assert_eq!(number(&redis), executed);
    }
    assert!(connect(&proxy).call(&["PING"]).is_ok());
}

#[test]
fn what_is_held_passes_later_and_what_is_swallowed_does_not() {
    let (redis, proxy) = start();
    let mut connection = connect(&proxy);
    proxy.flow(Direction::Replies, Flow::Hold);
    assert!(is_mute(&mut connection, &["INCR", "n"]));
    counts_to(&redis, "1");
    proxy.flow(Direction::Replies, Flow::Pass);
    assert_eq!(connection.receive().unwrap(), Reply::Integer(1));

    proxy.flow(Direction::Requests, Flow::Hold);
    assert!(is_mute(&mut connection, &["INCR", "n"]));
    assert_eq!(number(&redis), "1");
    proxy.flow(Direction::Requests, Flow::Pass);
    assert_eq!(connection.receive().unwrap(), Reply::Integer(2));

    for (direction, executed) in [(Direction::Replies, "3"), (Direction::Requests, "3")] {
        let mut connection = connect(&proxy);
        proxy.flow(direction, Flow::Swallow);
        assert!(is_mute(&mut connection, &["INCR", "n"]));
        counts_to(&redis, executed);
        proxy.clear();
        assert!(is_silent(&mut connection));
        assert_eq!(number(&redis), executed);
    }
    assert_eq!(connect(&proxy).call(&["INCR", "n"]).unwrap(), Reply::Integer(4));
}

#[test]
fn no_process_listens_where_connections_are_refused() {
    let (_redis, proxy) = start();
    let mut open = connect(&proxy);
    assert!(open.call(&["PING"]).is_ok());
    for _ in 0..3 {
        proxy.admit(Admission::Refuse);
        let refused = TcpStream::connect(proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert!(open.call(&["PING"]).is_ok());
        proxy.admit(Admission::Accept);
        assert!(connect(&proxy).call(&["PING"]).is_ok());
    }
    assert_eq!(proxy.counters().opened, 4);
}

#[test]
fn a_black_hole_takes_everything_and_gives_nothing() {
    let (redis, proxy) = start();
    proxy.admit(Admission::BlackHole);
    let mut lost = connect(&proxy);
    assert!(is_mute(&mut lost, &["INCR", "n"]));
    assert_eq!(number(&redis), "(nil)");
    proxy.clear();
    assert!(is_silent(&mut lost));
    assert!(connect(&proxy).call(&["PING"]).is_ok());
    proxy.cut();
    assert!(is_end(lost.receive()));
}

#[test]
fn new_connections_go_to_a_new_target() {
    let (redis, proxy) = start();
    let other = Redis::start(Flavour::Redis7);
    redis.command(&["SET", "name", "one"]);
    other.command(&["SET", "name", "other"]);
    let mut old = connect(&proxy);
    assert_eq!(old.call(&["GET", "name"]).unwrap().text(), "one");
    proxy.retarget(other.address());
    assert_eq!(connect(&proxy).call(&["GET", "name"]).unwrap().text(), "other");
    assert_eq!(old.call(&["GET", "name"]).unwrap().text(), "one");

    other.kill();
    assert!(is_end(connect(&proxy).call(&["PING"])));
}

#[test]
fn another_language_passes_as_bytes() {
    let redis = Redis::with(&Settings::new(Flavour::Redis7).tls());
    let proxy = Proxy::start(redis.tls_address().unwrap());
    let mut command = Command::new("redis-cli");
    command.args(["-h", "127.0.0.1", "-p", &proxy.address().port().to_string(), "--tls", "--cacert"]);
    let output =
        command.arg(redis.certificates().unwrap().authority()).args(["ECHO", "hello"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "hello");
}
