//! Tests of redis-benchmark: concurrent and pipelined requests, without errors.

use std::process::Command;

use super::place::{Place, TOKEN};
use super::tools::program;
use crate::process::{Ended, Process};

/// The number of requests, on ten connections with sixteen pipelined on each.
const REQUESTS: u64 = 10_000;
const MANY: [&str; 6] = ["-n", "10000", "-P", "16", "-c", "10"];

fn run(place: &Place, arguments: &[&str]) -> Ended {
    let mut command = Command::new(program("redis-benchmark"));
    Process::run(command.args(["-p", &place.port(), "--csv"]).args(MANY).args(arguments), b"")
}

/// Returns the names of the measured commands. Asserts that there are no errors.
fn measured(place: &Place, arguments: &[&str]) -> Vec<String> {
    let ended = run(place, arguments);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let rows = ended.out.lines().skip(1).filter_map(|row| row.strip_prefix('"')?.split_once('"'));
    rows.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn as_it_is() {
    let place = Place::open();
    assert_eq!(measured(&place, &["PING"]), ["PING"]);
    assert_eq!(measured(&place, &["-t", "ping"]), ["PING_INLINE", "PING_MBULK"]);
}

#[test]
fn every_take_is_decided_before_and_after_a_restart() {
    let mut place = Place::open();
    let take = ["-r", "1000", "CL.THROTTLE", "key:__rand_int__", "15", "30", "60"];
    for _ in 0..2 {
        assert_eq!(measured(&place, &take), ["CL.THROTTLE key:__rand_int__ 15 30 60"]);
        let (allowed, denied) = place.decided();
        assert_eq!(allowed + denied, REQUESTS);
        place.restart();
    }
}

#[test]
fn of_all_takes_of_one_key_as_many_pass_as_may() {
    let place = Place::open();
    assert_eq!(measured(&place, &["CL.THROTTLE", "key", "99", "1", "3600"]).len(), 1);
    assert_eq!(place.decided(), (100, REQUESTS - 100));
}

#[test]
fn in_resp3_with_a_token() {
    let place = Place::guarded();
    let take = ["-3", "-a", TOKEN, "TG.TAKE", "key", "LIMIT", "100/3600s"];
    assert_eq!(measured(&place, &take), ["TG.TAKE key LIMIT 100/3600s"]);
    assert_eq!(place.decided(), (100, REQUESTS - 100));
}

#[test]
fn a_wrong_number_of_words_is_an_error() {
    let ended = run(&Place::open(), &["TG.TAKE", "key"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let usage = "Error from server: ERR wrong number of arguments for 'tg.take' command; usage: TG.TAKE key ";
    assert!(ended.err.starts_with(usage), "{ended:?}");
}
