//! Tests that a state belongs to one limit: other limits on the same key, old and new numbers of a rule, and other
//! processes.

use std::time::Duration;

use testbed::Redis;
use tidegate::{
    Adjustment, Ask, Cost, HOUR, Key, Limit, ManualClock, PreparedLimit, SECOND, Store as _, Subject,
};
use tidegate_redis::RedisStore;

use crate::setup::{Someone, forgetful, given_time, options, redis, store, wait};

/// A small limit and a fast limit of one, for each algorithm that counts.
const PAIRS: [(&str, &str); 6] = [
    ("5/h", "1000/s burst 1"),
    ("5/h queue 4 delay-after all leaky-bucket", "1000/s queue 0 leaky-bucket"),
    ("5/h fixed-window", "1/1ms fixed-window"),
    ("5/h sliding-log", "1/1ms sliding-log"),
    ("5/h sliding-window", "1/1ms sliding-window slots 1"),
    ("5/h sliding-window mode estimate", "1/1ms sliding-window mode estimate"),
];

fn limit(text: &str) -> Limit {
    text.parse().expect(text)
}

fn of_rule(text: &str) -> PreparedLimit {
    PreparedLimit::of_rule("rule", limit(text))
}

fn remaining(store: &RedisStore, subject: Subject<'_>) -> u64 {
    wait(store.peek(subject, Ask::ONE)).expect("the server answers").remaining()
}

fn take(store: &RedisStore, subject: Subject<'_>, units: u64) -> bool {
    let asks = [(subject, Ask::new(Cost::of(units)))];
    wait(store.take(&asks)).expect("the server answers").is_allowed()
}

/// Opens a store on a server with a given time, a thousand hours after the epoch.
fn at_noon() -> (Redis, RedisStore, std::sync::Arc<ManualClock>) {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    (redis, store, clock)
}

/// Opens another process's store on the same server, with the same clock.
fn other_process(redis: &Redis, clock: &std::sync::Arc<ManualClock>) -> RedisStore {
    RedisStore::with_given_time(options(&redis.url()), clock.clone()).expect("a store")
}

/// Regression: a denied ask under small numbers erased the debt under large ones.
#[test]
fn two_limits_on_one_key_never_interfere() {
    let redis = redis();
    let store = forgetful(&redis.url());
    for (few, fast) in PAIRS {
        let (slow, fast) = (Someone::new(few, few), Someone::new(few, fast));
        let mut passed = 0;
        for _ in 0..60 {
            passed += u32::from(slow.is_allowed(&store));
            let _ = fast.is_allowed(&store);
        }
        assert_eq!(passed, 5, "{few} beside {}", fast.subject().limit());
    }
}

#[test]
fn two_limits_on_one_key_in_one_request_are_two_states() {
    let redis = redis();
    let store = store(&redis.url());
    let (few, many) = (Someone::new("ana", "2/h"), Someone::new("ana", "9/h"));
    let asks = [(few.subject(), Ask::ONE), (many.subject(), Ask::ONE)];
    let left = wait(store.take(&asks)).expect("the server answers");
    assert_eq!(left.each().iter().map(tidegate::Decision::remaining).collect::<Vec<_>>(), [1, 8]);
}

#[test]
fn old_and_new_numbers_of_a_rule_each_keep_their_bound() {
    let (redis, old_store, clock) = at_noon();
    let (new_store, key) = (other_process(&redis, &clock), Key::new("ana"));
    let (old, new) = (of_rule("1000/d"), of_rule("100/h"));
    assert!(take(&old_store, old.subject(&key), 60));
    assert_eq!(remaining(&new_store, new.subject(&key)), 40, "it begins with what was used");
    let (mut of_old, mut of_new) = (60, 0);
    for _ in 0..300 {
        of_old += u64::from(take(&old_store, old.subject(&key), 4)) * 4;
        of_new += u64::from(take(&new_store, new.subject(&key), 1));
    }
    assert_eq!((of_old, of_new), (1000, 36), "64 were used when the new limit admitted its first");
    assert_eq!(remaining(&old_store, old.subject(&key)), 0, "the old state was left alone");
}

#[test]
fn counts_are_carried_through_each_change() {
    for (first, second, third, left) in [
        ("10/d", "20/d", "40/d", [12, 32]),
        ("10/d fixed-window", "20/d fixed-window", "40/d fixed-window", [12, 32]),
        ("10/d sliding-log", "20/d sliding-log", "40/d sliding-log", [12, 32]),
        ("10/d sliding-window", "20/d sliding-window", "40/d sliding-window", [12, 32]),
        ("10/d queue 9 leaky-bucket", "10/d queue 19 leaky-bucket", "10/d queue 39 leaky-bucket", [12, 32]),
    ] {
        let (_redis, store, _clock) = at_noon();
        let key = Key::new("ana");
        let patient = Ask::new(Cost::of(8)).max_wait(24 * HOUR);
        let (a, b, c) = (of_rule(first), of_rule(second), of_rule(third));
        assert!(wait(store.take(&[(a.subject(&key), patient)])).unwrap().is_allowed(), "{first}");
        assert_eq!(
            remaining(&store, b.subject(&key)),
            left[0],
            "a raised limit gives its difference at once"
        );
        assert_eq!(
            remaining(&store, c.subject(&key)),
            left[1],
            "{third}, although nothing was asked under {second}"
        );
    }
}

#[test]
fn a_lowered_limit_owes_no_more_than_a_full_one() {
    let (_redis, store, clock) = at_noon();
    let key = Key::new("ana");
    assert!(take(&store, of_rule("1000/d").subject(&key), 1000));
    let new = of_rule("10/h");
    let denied = wait(store.take(&[(new.subject(&key), Ask::new(Cost::of(10)))])).unwrap();
    assert_eq!(denied.retry_after(), Some(HOUR));
    clock.advance(HOUR - SECOND);
    assert!(!take(&store, new.subject(&key), 10));
    clock.advance(SECOND);
    assert!(take(&store, new.subject(&key), 10), "after the wait that was reported");
    assert!(!take(&store, new.subject(&key), 1));
}

#[test]
fn a_restart_with_other_numbers_carries_and_one_with_the_same_changes_nothing() {
    let (redis, store, clock) = at_noon();
    let key = Key::new("ana");
    assert!(take(&store, of_rule("10/d").subject(&key), 7));
    drop(store);
    assert_eq!(remaining(&other_process(&redis, &clock), of_rule("10/d").subject(&key)), 3);
    clock.advance(SECOND);
    assert_eq!(remaining(&other_process(&redis, &clock), of_rule("20/d").subject(&key)), 13);
}

#[test]
fn a_limit_for_single_keys_carries_from_the_rule() {
    let (_redis, store, _clock) = at_noon();
    let (rule, ana, bob) = (of_rule("10/d"), Key::new("ana"), Key::new("bob"));
    assert!(take(&store, rule.subject(&ana), 7));
    let instead = rule.instead(limit("100/d"));
    assert_eq!(remaining(&store, instead.subject(&ana)), 93);
    assert_eq!(remaining(&store, instead.subject(&bob)), 100);
    assert!(take(&store, instead.subject(&ana), 50));
    assert_eq!(remaining(&store, rule.subject(&ana)), 3, "the state of the rule was left alone");
}

#[test]
fn charges_and_refunds_begin_with_what_is_carried() {
    let (_redis, store, _clock) = at_noon();
    for text in ["10/d", "10/d fixed-window", "10/d sliding-log", "10/d sliding-window"] {
        let (charged, refunded) = (Key::new(("charged", text)), Key::new(("refunded", text)));
        let rule = |count: &str| PreparedLimit::of_rule(text, limit(&text.replace("10", count)));
        let (old, new) = (rule("10"), rule("20"));
        for key in [&charged, &refunded] {
            assert!(take(&store, old.subject(key), 5));
        }
        wait(store.adjust(new.subject(&charged), Adjustment::Charge(Cost::of(3)))).unwrap();
        wait(store.adjust(new.subject(&refunded), Adjustment::Refund(Cost::of(3)))).unwrap();
        assert_eq!(remaining(&store, new.subject(&charged)), 12, "{text}");
        assert_eq!(remaining(&store, new.subject(&refunded)), 18, "{text}");
        assert_eq!(remaining(&store, old.subject(&charged)), 5, "{text}");
    }
}

#[test]
fn several_limits_that_carry_stand_or_fall_together() {
    let (_redis, store, _clock) = at_noon();
    let (ana, old) = (Key::new("ana"), of_rule("10/d"));
    let other = |text: &str| PreparedLimit::of_rule("other", limit(text));
    assert!(take(&store, old.subject(&ana), 9));
    assert!(take(&store, other("5/d").subject(&ana), 5));
    let (wide, narrow) = (of_rule("20/d"), other("6/d"));
    let asks = |units| [(wide.subject(&ana), Ask::new(Cost::of(units))), (narrow.subject(&ana), Ask::ONE)];
    assert!(!wait(store.take(&asks(12))).unwrap().is_allowed());
    assert_eq!((remaining(&store, wide.subject(&ana)), remaining(&store, narrow.subject(&ana))), (11, 1));
    let tracked = asks(11).map(|(subject, ask)| (subject.tracked(), ask));
    let mut taken = wait(store.take(&tracked)).unwrap();
    assert!(taken.is_allowed());
    assert_eq!((remaining(&store, wide.subject(&ana)), remaining(&store, narrow.subject(&ana))), (0, 0));
    let mut receipts = taken.take_receipts();
    let receipt = receipts[0].as_mut().expect("a receipt");
    wait(store.refund(wide.subject(&ana), receipt, Cost::of(4))).unwrap();
    assert_eq!(remaining(&store, wide.subject(&ana)), 4);
}

/// Regression: one denied ask with a short lease ended the leases of all others.
#[test]
fn a_short_lease_ends_no_other() {
    let (_redis, store, clock) = at_noon();
    let key = Key::new("ana");
    let (long, short) = (limit("2/60s concurrency"), limit("1/1ms concurrency"));
    let dynamic = [PreparedLimit::dynamic("dynamic", long), PreparedLimit::dynamic("dynamic", short)];
    let rule = [of_rule("2/60s concurrency"), of_rule("1/1ms concurrency")];
    for [long, short] in [&dynamic, &rule] {
        assert!(take(&store, long.subject(&key), 2));
        let _ = take(&store, short.subject(&key), 1);
        clock.advance(Duration::from_secs(1));
        assert!(!take(&store, long.subject(&key), 1), "{long:?}");
        clock.advance(Duration::from_secs(59));
        assert!(take(&store, long.subject(&key), 1));
    }
}

#[test]
fn holders_of_a_rule_are_one_set_whatever_the_numbers() {
    let (redis, store, clock) = at_noon();
    let (key, other) = (Key::new("ana"), other_process(&redis, &clock));
    let (few, more) = (of_rule("2/60s concurrency"), of_rule("5/10s concurrency"));
    let asks = [(few.subject(&key), Ask::new(Cost::of(2)))];
    let permit = wait(store.take(&asks)).unwrap().each()[0].permit().expect("a permit");
    assert_eq!(remaining(&other, more.subject(&key)), 3);
    let denied = wait(other.take(&[(more.subject(&key), Ask::new(Cost::of(4)))])).unwrap();
    assert_eq!(denied.retry_after(), Some(60 * SECOND), "each keeps the lease that it was given");
    assert!(wait(other.renew(more.subject(&key), permit)).unwrap());
    let denied = wait(other.take(&[(more.subject(&key), Ask::new(Cost::of(4)))])).unwrap();
    assert_eq!(denied.retry_after(), Some(10 * SECOND), "a renewed one has that of the limit that renews");
    assert!(wait(store.release(few.subject(&key), permit)).unwrap());
    assert_eq!(remaining(&other, more.subject(&key)), 5);
}

/// Apart from the eleven letters in the name of a state, nothing is added to a decision outside a change.
#[test]
fn a_decision_is_one_call_before_and_after_a_change() {
    let (_redis, store, clock) = at_noon();
    let (ana, bob) = (Key::new("ana"), Key::new("bob"));
    let calls = |limit: &PreparedLimit, key: &Key| {
        let before = store.status().answered;
        assert!(take(&store, limit.subject(key), 1));
        store.status().answered - before
    };
    let (old, new) = (of_rule("10/m"), of_rule("20/m"));
    assert_eq!(
        [calls(&old, &ana), calls(&old, &ana), calls(&old, &bob)],
        [2, 1, 1],
        "it is put in force once"
    );
    assert_eq!(calls(&new, &ana), 4, "put in force, asked, states read, asked again");
    assert_eq!(calls(&new, &ana), 1, "there is a live state");
    clock.advance(121 * SECOND);
    assert_eq!(calls(&new, &bob), 2, "the first that is too late finds out");
    assert_eq!(calls(&new, &Key::new("cy")), 1);
}
