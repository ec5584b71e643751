//! Tests of `TG.TAKE`, `TG.PEEK` and `TG.ADJUST`: one key under one limit.

use std::time::Duration;

use super::{bulk, map, pairs};
use crate::resp::raw::{Talk, answers};
use crate::wire::Running;

const TAKE: [&str; 4] = ["TG.TAKE", "ana", "LIMIT", "30/60s burst 16"];

#[test]
fn a_decision_is_pairs_in_the_second_version_and_a_map_in_the_third() {
    let running = Running::start();
    let reply = answers(&running, b"TG.TAKE ana LIMIT \"30/60s burst 16\" COST 5\r\n");
    let expected = "*16\r\n$7\r\nallowed\r\n:1\r\n$5\r\nlimit\r\n:16\r\n$9\r\nremaining\r\n:11\r\n\
                    $11\r\nretry_after\r\n:-1\r\n$11\r\nreset_after\r\n:10000\r\n$5\r\ndelay\r\n:0\r\n\
                    $4\r\nrule\r\n$-1\r\n$10\r\ndecided_by\r\n$6\r\nmemory\r\n";
    assert_eq!(String::from_utf8_lossy(&reply), expected);
    let reply = Talk::in_version_3(&running).ask(&TAKE);
    let expected = "%8\r\n$7\r\nallowed\r\n:1\r\n$5\r\nlimit\r\n:16\r\n$9\r\nremaining\r\n:10\r\n\
                    $11\r\nretry_after\r\n:-1\r\n$11\r\nreset_after\r\n:12000\r\n$5\r\ndelay\r\n:0\r\n\
                    $4\r\nrule\r\n_\r\n$10\r\ndecided_by\r\n$6\r\nmemory\r\n";
    assert_eq!(reply, expected);
}

#[test]
fn a_denial_has_a_retry_after_unless_no_wait_would_help() {
    let (running, mut talk) = Running::start().with_raw();
    let mut cost = |cost: &str| talk.ask(&["TG.TAKE", "k", "LIMIT", "1/s burst 3", "COST", cost]);
    assert_eq!(cost("3"), pairs([1, 3, 0, -1, 3000, 0], ""));
    assert_eq!(cost("2"), pairs([0, 3, 0, 2000, 3000, -1], ""));
    running.clock.advance(Duration::from_nanos(1_999_999_001));
    assert_eq!(cost("2"), pairs([0, 3, 1, 1, 1001, -1], ""), "a part of a millisecond is a whole one");
    assert_eq!(cost("4"), pairs([0, 3, 1, -1, 1001, -1], ""), "never");
    assert_eq!(cost("18446744073709551615"), pairs([0, 3, 1, -1, 1001, -1], ""), "never");
}

#[test]
fn options_come_in_any_order_and_case() {
    let (_running, mut talk) = Running::start().with_raw();
    let limit = "1/s queue 5 leaky-bucket";
    let asks: [&[&str]; 4] = [
        &["TG.TAKE", "k", "LIMIT", limit, "COST", "1", "MAXWAIT", "9000"],
        &["tg.take", "k", "limit", limit, "maxwait", "9000", "cost", "1"],
        &["Tg.TaKe", "k", "LiMiT", limit, "MaXwAiT", "9000"],
        &["TG.take", "k", "Limit", limit, "MAXWAIT", "9000", "COST", "9", "COST", "1"],
    ];
    for (earlier, ask) in asks.iter().enumerate() {
        let (left, ms) = (5 - earlier as i64, 1000 * earlier as i64);
        assert_eq!(talk.ask(ask), pairs([1, 6, left, -1, ms + 1000, ms], ""), "{ask:?}");
    }
}

#[test]
fn max_wait_is_how_long_one_would_wait() {
    let (_running, mut talk) = Running::start().with_raw();
    let mut max_wait =
        |ms: &str| talk.ask(&["TG.TAKE", "k", "LIMIT", "1/s queue 5 leaky-bucket", "MAXWAIT", ms]);
    assert_eq!(max_wait("0"), pairs([1, 6, 5, -1, 1000, 0], ""));
    assert_eq!(max_wait("999"), pairs([0, 6, 5, 1, 1000, -1], ""));
    assert_eq!(max_wait("1000"), pairs([1, 6, 4, -1, 2000, 1000], ""));
}

#[test]
fn a_peek_reports_if_a_take_would_pass_and_spends_nothing() {
    let running = Running::start();
    let (mut second, mut third) = (Talk::new(&running), Talk::in_version_3(&running));
    let peek = ["TG.PEEK", "k", "LIMIT", "2/60s", "COST", "2"];
    for _ in 0..3 {
        assert_eq!(second.ask(&peek), pairs([1, 2, 2, -1, 0, 0], ""));
        assert_eq!(third.ask(&peek), map([1, 2, 2, -1, 0, 0], ""));
    }
    second.say("TG.TAKE k LIMIT 2/60s");
    assert_eq!(second.ask(&peek), pairs([0, 2, 1, 30_000, 30_000, -1], ""));
}

#[test]
fn an_adjustment_charges_what_was_more_and_gives_back_what_was_less() {
    let running = Running::start();
    let (mut second, mut third) = (Talk::new(&running), Talk::in_version_3(&running));
    let went = |word: &str| bulk("adjusted") + &bulk(word);
    let mut adjust = |by: &str| second.ask(&["TG.ADJUST", "k", "LIMIT", "4/60s", by]);
    assert_eq!(adjust("3"), pairs([1, 4, 1, -1, 45_000, 0], &went("whole")));
    assert_eq!(adjust("-1"), pairs([1, 4, 2, -1, 30_000, 0], &went("whole")));
    assert_eq!(adjust("-5"), pairs([1, 4, 4, -1, 0, 0], &went("capped")));
    let reply = third.ask(&["tg.adjust", "k", "limit", "4/60s", "4"]);
    assert_eq!(reply, map([0, 4, 0, 15_000, 60_000, -1], &went("whole")));
    let reply = second.ask(&["TG.ADJUST", "k", "LIMIT", "4/60s concurrency", "1"]);
    assert!(reply.ends_with(&went("needs-permit")), "{reply}");
}
