//! The table of the limits that a namespace has had: resets, its bound, and its end.

use tidegate::{Ask, Cost, HOUR, Key, Limit, PreparedLimit, Store as _, Subject};
use tidegate_redis::RedisStore;

use crate::setup::{forgetful, given_time, reason, redis, store, wait};

/// The most limits that a table lists.
const MAX_LIMITS: u64 = 1024;

fn take(store: &RedisStore, subject: Subject<'_>, units: u64) -> bool {
    let asks = [(subject, Ask::new(Cost::of(units)))];
    wait(store.take(&asks)).expect("the server answers").is_allowed()
}

#[test]
fn a_reset_by_key_removes_the_states_under_all_limits() {
    let redis = redis();
    let (one, other) = (store(&redis.url()), store(&redis.url()));
    let (ana, bob) = (Key::new("ana"), Key::new("bob"));
    let limits =
        ["3/h", "4/h", "3/h leaky-bucket queue 2 delay-after all", "3/h fixed-window", "3/h sliding-log"];
    let limits = limits.map(|text| text.parse::<Limit>().expect(text));
    for limit in &limits {
        for key in [&ana, &bob] {
            assert!(take(&one, Subject::new("user", key, limit), 3));
        }
        assert!(take(&one, Subject::new("other", &ana, limit), 3));
        assert!(!take(&one, Subject::new("user", &ana, limit), 2), "and the refusal is remembered");
    }
    assert!(wait(other.reset(Subject::new("user", &ana, &limits[0]))).unwrap(), "by another process");
    one.forget_refusals();
    for limit in &limits {
        assert!(take(&one, Subject::new("user", &ana, limit), 3), "{limit}");
        assert!(!take(&one, Subject::new("user", &bob, limit), 3), "{limit}");
        assert!(!take(&one, Subject::new("other", &ana, limit), 3), "{limit}");
    }
    assert!(!wait(other.reset(Subject::new("user", &Key::new("cy"), &limits[0]))).unwrap());
}

#[test]
fn a_reset_of_one_limit_leaves_the_others() {
    let redis = redis();
    let (store, key) = (store(&redis.url()), Key::new("ana"));
    let (few, many) = (Limit::per_hour(1), Limit::per_hour(2));
    let [few, many] = [&few, &many].map(|limit| Subject::new("user", &key, limit));
    assert!(take(&store, few, 1) && take(&store, many, 2));
    assert!(!take(&store, few, 1) && !take(&store, many, 1));
    assert!(wait(store.reset_limit(few)).unwrap());
    assert!(take(&store, few, 1) && !take(&store, many, 1));
    assert!(wait(store.reset_limit(few)).unwrap() && !wait(store.reset_limit(few)).unwrap());
}

#[test]
fn a_reset_also_removes_permits_of_a_rule() {
    let redis = redis();
    let (store, key) = (store(&redis.url()), Key::new("ana"));
    let rule = |text: &str| PreparedLimit::of_rule("rule", text.parse().expect(text));
    assert!(take(&store, rule("2/60s concurrency").subject(&key), 2));
    assert!(wait(store.reset(rule("3/9s concurrency").subject(&key))).unwrap());
    assert!(take(&store, rule("3/9s concurrency").subject(&key), 3));
}

#[test]
fn a_table_that_is_full_lists_no_more_and_a_reset_says_so() {
    let redis = redis();
    let (store, key) = (forgetful(&redis.url()), Key::new("ana"));
    let limits: Vec<_> = (1..=MAX_LIMITS + 1).map(Limit::per_day).collect();
    let (fitting, last) = limits.split_at(MAX_LIMITS as usize);
    for limit in fitting {
        assert!(take(&store, Subject::new("user", &key, limit), 1));
    }
    assert_eq!(redis.command(&["HLEN", "tg:limits:user"]), MAX_LIMITS.to_string());
    assert!(wait(store.reset(Subject::new("user", &key, &limits[0]))).unwrap());
    for limit in fitting {
        assert!(take(&store, Subject::new("user", &key, limit), limit.numbers()[2] / limit.numbers()[1]));
    }
    let last = Subject::new("user", &key, &last[0]);
    assert!(take(&store, last, 1), "one that does not fit decides as usual");
    let error = wait(store.reset(last)).expect_err("its states are not known");
    assert!(error.is_unfit() && reason(&error).contains("name the limit"), "{}", reason(&error));
    assert!(wait(store.reset_limit(last)).unwrap());
    assert!(
        wait(store.reset(Subject::new("others", &key, last.limit()))).is_ok(),
        "each namespace has its own"
    );
}

#[test]
fn a_limit_that_no_state_can_matter_under_makes_room() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let key = Key::new("ana");
    for count in 1..=MAX_LIMITS + 1 {
        assert!(take(&store, Subject::new("user", &key, &Limit::per_second(count)), 1));
    }
    assert!(wait(store.reset(Subject::new("user", &key, &Limit::per_second(1)))).is_err());
    clock.advance(HOUR);
    assert!(take(&store, Subject::new("user", &key, &Limit::per_minute(7)), 1));
    assert_eq!(redis.command(&["HLEN", "tg:limits:user"]), "1");
    assert!(wait(store.reset(Subject::new("user", &key, &Limit::per_second(1)))).unwrap());
}

#[test]
fn a_table_lives_as_long_as_states_under_its_limits_can_matter() {
    let redis = redis();
    let (store, key) = (store(&redis.url()), Key::new("ana"));
    for (limit, hours) in [(Limit::per_minute(5), 0), (Limit::per_day(5), 24), (Limit::per_hour(5), 24)] {
        assert!(take(&store, Subject::new("user", &key, &limit), 5));
        let left: u64 = redis.command(&["PTTL", "tg:limits:user"]).parse().expect("a time to live");
        assert!(left > hours * 3_600_000 && left > 60_000, "{limit}: {left} ms");
    }
}

#[test]
fn a_limit_is_listed_once_in_about_two_refills() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let (limit, key) = (PreparedLimit::dynamic("user", Limit::per_hour(5)), Key::new("ana"));
    let mut calls = Vec::new();
    for _ in 0..10 {
        let before = store.status().answered;
        let _ = take(&store, limit.subject(&key), 1);
        calls.push(store.status().answered - before);
        clock.advance(HOUR / 2);
    }
    assert_eq!(calls, [2, 1, 1, 1, 1, 1, 1, 1, 1, 2], "a debt of two hours, which max-debt allows");
}
