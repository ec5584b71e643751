//! Tests that days begin at midnight UTC in every store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value as Json;

use super::place::redis;
use crate::command::call::{Call, address};
use crate::process::Process;
use crate::wire::resp::Client;

const DAY: i64 = 24 * 3600 * 1000;
/// The tolerated clock drift, in milliseconds.
const DRIFT: i64 = 5000;

/// Returns the milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the day of the wall clock is what is compared")]
fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).expect("a time of this age")
}

fn client(ready: &Json) -> Client {
    Client::connect(address(ready, "resp"))
}

/// Asserts that a window of this many days ends at midnight, and a window of seven days on a Monday. Returns the
/// remaining quota.
fn ends_at_midnight((_process, ready): &(Process, Json), days: i64, what: &str) -> i64 {
    let limit = if days == 7 { "5/w fixed-window" } else { "5/d fixed-window" };
    let before = wall();
    let reply = client(ready).ask(&["TG.TAKE", "ana", "LIMIT", limit]);
    let after = wall();
    // 2024-01-01 was a Monday.
    let period = days * DAY;
    let end = reply.number("reset_after") - 1_704_067_200_000;
    let (earliest, latest) =
        ((before + end + DRIFT).rem_euclid(period), (after + end + DRIFT).rem_euclid(period));
    assert!(
        earliest <= 2 * DRIFT || latest <= 2 * DRIFT,
        "{what}, {days} days: {earliest} to {latest} ms after midnight"
    );
    reply.number("remaining")
}

#[test]
fn days_begin_at_midnight_and_weeks_on_monday_in_memory_in_a_file_and_on_redis() {
    let (redis, call) = (redis(), Call::from("midnight"));
    let url = redis.url();
    // The longest accepted deadline, so that Redis decides even on a busy machine.
    let on_redis = ["--store-kind", "redis", "--store-url", &url, "--store-deadline", "5s"];
    let in_a_file = ["--store-file", "zone.tg", "--store-size", "64KiB"];
    for (arguments, what, survives) in
        [(&[][..], "memory", false), (&in_a_file, "a file", true), (&on_redis, "redis", true)]
    {
        let node = call.serve(arguments);
        assert_eq!(ends_at_midnight(&node, 1, what), 4);
        assert_eq!(ends_at_midnight(&node, 7, what), 4);
        node.0.signal(Signal::KILL);
        drop(node);
        let again = call.serve(arguments);
        let left = if survives { 3 } else { 4 };
        assert_eq!(ends_at_midnight(&again, 7, what), left, "{what}, after a restart");
    }
}
