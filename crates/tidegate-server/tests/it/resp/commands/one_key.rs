//! Tests of one key under several limits: each limit has its own state.

use tidegate::MILLISECOND;

use crate::wire::Running;
use crate::wire::resp::{Client, Value};

/// A limit, another one that denies and refills quickly, and the number of requests that the first allows per hour.
const PAIRS: [(&str, &str, u32); 6] = [
    ("5/h", "1000/s burst 1", 5),
    ("5/h fixed-window", "1/s fixed-window", 5),
    ("5/h sliding-log", "1/s sliding-log", 5),
    ("5/h sliding-window", "1/s sliding-window", 5),
    ("5/h queue 4 delay-after all leaky-bucket", "1000/s queue 0 delay-after all leaky-bucket", 5),
    ("5/h pacer", "1000/s pacer", 1),
];

fn take(client: &mut Client, key: &str, limit: &str) -> Value {
    client.ask(&["TG.TAKE", key, "LIMIT", limit])
}

fn is_allowed(client: &mut Client, key: &str, limit: &str) -> bool {
    take(client, key, limit).number("allowed") == 1
}

fn take_both(client: &mut Client, key: &str, limits: [&str; 2]) -> Value {
    client.ask(&["TG.TAKEALL", "2", key, "LIMIT", limits[0], key, "LIMIT", limits[1]])
}

#[test]
fn denials_under_one_limit_forgive_nothing_under_another() {
    let (running, mut client) = Running::start().with_resp();
    for (large, small, most) in PAIRS {
        let mut admitted = 0;
        for _ in 0..60 {
            admitted += u32::from(is_allowed(&mut client, "mixed", large));
            is_allowed(&mut client, "mixed", small);
            running.clock.advance(55 * MILLISECOND);
        }
        assert_eq!(admitted, most, "{large} beside {small}");
    }
    let admitted = (0..500).filter(|_| {
        let is_admitted = is_allowed(&mut client, "ana", "100/h burst 100");
        is_allowed(&mut client, "ana", "1000000/s burst 1");
        is_admitted
    });
    assert_eq!(admitted.count(), 100);
}

#[test]
fn a_denial_with_a_short_lease_ends_no_other() {
    let (running, mut client) = Running::start().with_resp();
    let limit = "2/60s concurrency";
    let held: Vec<_> = (0..2).map(|_| take(&mut client, "ana", limit)).collect();
    for _ in 0..3 {
        take(&mut client, "ana", "2/1ms concurrency");
    }
    running.clock.advance(150 * MILLISECOND);
    assert!(!is_allowed(&mut client, "ana", limit));
    for taken in held {
        assert_eq!(client.ask(&["TG.RENEW", &taken.text("permit")]), Value::Integer(1));
    }
}

#[test]
fn one_key_under_two_limits_is_taken_all_or_none_and_the_wait_is_true() {
    for limits in [["100/h burst 100", "10/s burst 10"], ["10/s burst 10", "100/h burst 100"]] {
        let (running, mut client) = Running::start().with_resp();
        let mut admitted = 0;
        for second in 0..12 {
            for _ in 0..10 {
                admitted += take_both(&mut client, "ana", limits).number("allowed");
            }
            let denied = take_both(&mut client, "ana", limits);
            let left = client.ask(&["TG.PEEK", "ana", "LIMIT", "100/h burst 100"]).number("remaining");
            assert_eq!(
                (denied.number("allowed"), left),
                (0, 100 - admitted),
                "{limits:?} in second {second}"
            );
            if admitted < 100 {
                assert_eq!(denied.number("retry_after"), 100, "{limits:?} in second {second}");
            }
            running.clock.advance(1000 * MILLISECOND);
        }
        assert_eq!(admitted, 100, "{limits:?}");
    }
}

#[test]
fn one_key_under_two_windows_is_admitted_as_often_as_the_longer_allows() {
    for word in ["sliding-log", "fixed-window", "sliding-window", "token-bucket"] {
        let (long, short) = (format!("20/h {word}"), format!("5/s {word}"));
        for limits in [[&*long, &*short], [&*short, &*long]] {
            let (running, mut client) = Running::start().with_resp();
            let mut admitted = 0;
            for _ in 0..600 {
                admitted += take_both(&mut client, "ana", limits).number("allowed");
                running.clock.advance(20 * MILLISECOND);
            }
            assert_eq!(admitted, 20, "{limits:?}");
        }
    }
}

#[test]
fn one_key_twice_under_one_limit_counts_twice() {
    let (_running, mut client) = Running::start().with_resp();
    for word in ["sliding-log", "fixed-window", "sliding-window", "token-bucket"] {
        let limit = format!("5/h {word}");
        let admitted = (0..9).filter(|_| take_both(&mut client, "ana", [&*limit; 2]).number("allowed") == 1);
        assert_eq!(admitted.count(), 2, "{limit}");
        assert_eq!(client.ask(&["TG.PEEK", "ana", "LIMIT", &*limit]).number("remaining"), 1, "{limit}");
    }
}
