//! Tests of the output of redis-cli.

use std::process::Command;

use super::place::{Place, TOKEN};
use super::tools::program;
use crate::process::{Ended, Process};
use crate::wire::resp;

const TAKEN: &str = "0\n16\n15\n-1\n2\n";

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(program("redis-cli"));
    command.args(["-p", &place.port()]).args(arguments);
    command
}

fn run(place: &Place, arguments: &[&str]) -> Ended {
    Process::run(&mut command(place, arguments), b"")
}

/// Returns the output. Asserts that the command succeeds.
fn printed(place: &Place, arguments: &[&str]) -> String {
    let ended = run(place, arguments);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    ended.out
}

#[test]
fn as_it_is() {
    let place = Place::open();
    assert_eq!(printed(&place, &["PING"]), "PONG\n");
    assert_eq!(printed(&place, &["CL.THROTTLE", "user123", "15", "30", "60"]), TAKEN);
    let pretty = printed(&place, &["--no-raw", "CL.THROTTLE", "user123", "15", "30", "60"]);
    assert_eq!(pretty, "1) (integer) 0\n2) (integer) 16\n3) (integer) 14\n4) (integer) -1\n5) (integer) 4\n");
}

#[test]
fn in_resp3_with_a_token() {
    let place = Place::guarded();
    let take = ["--no-raw", "-3", "TG.TAKE", "user456", "LIMIT", "30/60s burst 15"];
    let refused = run(&place, &[&["-e"], &take[..]].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");

    let map = printed(&place, &[&["--no-auth-warning", "-a", TOKEN], &take[..]].concat());
    let expected = [
        "1# \"allowed\" => (integer) 1",
        "2# \"limit\" => (integer) 15",
        "3# \"remaining\" => (integer) 14",
        "4# \"retry_after\" => (integer) -1",
        "5# \"reset_after\" => (integer) 2000",
        "6# \"delay\" => (integer) 0",
        "7# \"rule\" => (nil)",
        "8# \"decided_by\" => \"memory\"",
    ];
    assert_eq!(map.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_wrong_number_of_words_is_an_error() {
    let ended = run(&Place::open(), &["-e", "TG.TAKE", "user123"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let usage = "ERR wrong number of arguments for 'tg.take' command; usage: TG.TAKE key ";
    assert!(ended.err.starts_with(usage), "{ended:?}");
}

#[test]
fn of_a_thousand_in_a_pipe_a_hundred_pass() {
    let place = Place::open();
    let requests = resp::request(&["CL.THROTTLE", "pipelined", "99", "1", "3600"]).repeat(1000);
    let ended = Process::run(&mut command(&place, &["--pipe"]), &requests);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out.lines().last(), Some("errors: 0, replies: 1000"), "{ended:?}");
    assert_eq!(place.decided(), (100, 900));
}

#[test]
fn a_key_is_any_bytes() {
    let place = Place::open();
    let words = ["--quoted-input", "CL.THROTTLE", r#""\x00\xff\r\n\"""#, "4", "1", "3600"];
    assert_eq!(printed(&place, &words), "0\n5\n4\n-1\n3600\n");
    let of_the_same_key = place.connect().ask(&[b"CL.THROTTLE", &b"\0\xff\r\n\""[..], b"4", b"1", b"3600"]);
    assert_eq!(of_the_same_key, resp::Value::integers(&[0, 5, 3, -1, 7200]));
}

/// An interactive session survives a restart. Most versions lose the line that finds the connection closed.
#[test]
fn a_restart_is_survived() {
    const THROTTLE: &[u8] = b"CL.THROTTLE user123 15 30 60\n";
    let mut place = Place::guarded();
    let mut open = Process::start(&mut command(&place, &["-3", "--no-auth-warning", "-a", TOKEN]));
    open.tell(THROTTLE);
    assert_eq!(open.lines(5).join(" "), "0 16 15 -1 2");
    open.tell(THROTTLE);
    assert_eq!(open.lines(5).join(" "), "0 16 14 -1 4");

    place.restart();
    open.tell(b"ECHO lost\nECHO found\n");
    while open.line() != "found" {}
    open.tell(THROTTLE);
    assert_eq!(open.lines(5).join(" "), "0 16 15 -1 2");
    open.tell(b"CLIENT INFO\n");
    assert!(open.line().ends_with(" resp=3"));
    assert_eq!(open.end().code, Some(0));
}
