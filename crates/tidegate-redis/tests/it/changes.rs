//! Tests of a rule whose numbers change, where more than one call is needed: across slots, with cached denials, in
//! order, and while calls fail.

use testbed::{Cluster, Flavour, Proxy};
use tidegate::{Adjusted, Adjustment, Ask, Cost, Key, Map, PreparedLimit, Store, Subject, Zone};
use tidegate_redis::RedisStore;

use crate::setup::{cluster_url, forgetful, open, options, redis, store, wait, wait_for_all};

fn of_rule(text: &str) -> PreparedLimit {
    PreparedLimit::of_rule("rule", text.parse().expect(text))
}

fn remaining(store: &RedisStore, subject: Subject<'_>) -> u64 {
    wait(store.peek(subject, Ask::ONE)).expect("the server answers").remaining()
}

fn take(store: &RedisStore, subject: Subject<'_>, units: u64) -> tidegate::Decisions {
    wait(store.take(&[(subject, Ask::new(Cost::of(units)))])).expect("the server answers")
}

#[test]
fn keys_of_many_slots_that_carry_stand_or_fall_together() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let (old, new) = (of_rule("5/d"), of_rule("9/d"));
    let keys: Vec<_> = (0..20_u64).map(Key::new).collect();
    for (key, units) in keys.iter().zip((0..=5).cycle()).filter(|(_, units)| *units > 0) {
        assert!(take(&store, old.subject(key), units).is_allowed());
    }
    let asks =
        |units| -> Vec<_> { keys.iter().map(|key| (new.subject(key), Ask::new(Cost::of(units)))).collect() };
    let used: Vec<_> = (0..=5).cycle().take(20).collect();
    let left = |store: &RedisStore| -> Vec<_> {
        keys.iter().zip(&used).map(|(key, used)| remaining(store, new.subject(key)) + used).collect()
    };
    assert_eq!(left(&store), [9; 20]);
    let denied = wait(store.take(&asks(5))).unwrap();
    let denying = denied.each().iter().filter(|decision| !decision.is_allowed()).count();
    assert_eq!(denying, 3, "three have used five");
    assert_eq!(left(&store), [9; 20], "nothing was spent");
    assert!(wait(store.take(&asks(4))).unwrap().is_allowed());
    assert_eq!(left(&store), [5; 20]);
    assert!(wait(store.reset(old.subject(&keys[1]))).unwrap());
    assert_eq!(remaining(&store, new.subject(&keys[1])), 9, "reset under both limits");
}

#[test]
fn more_keys_than_one_script_decides_carry_too() {
    let redis = redis();
    let store = forgetful(&redis.url());
    let (old, new) = (of_rule("5/d"), of_rule("9/d"));
    let keys: Vec<_> = (0..300_u64).map(Key::new).collect();
    assert!(take(&store, old.subject(&keys[7]), 5).is_allowed());
    let asks =
        |units| -> Vec<_> { keys.iter().map(|key| (new.subject(key), Ask::new(Cost::of(units)))).collect() };
    let denied = wait(store.take(&asks(5))).unwrap();
    assert_eq!((denied.is_allowed(), denied.binding()), (false, Some(7)));
    assert!(wait(store.take(&asks(4))).unwrap().is_allowed());
    assert_eq!((remaining(&store, new.subject(&keys[7])), remaining(&store, new.subject(&keys[8]))), (0, 5));
}

/// A carried state ends with the one that it comes from, long before a debt under the new limit would.
#[test]
fn a_remembered_refusal_ends_with_the_wait_that_was_reported() {
    let redis = redis();
    let (store, key) = (store(&redis.url()), Key::new("ana"));
    assert!(take(&store, of_rule("5/400ms max-debt 0").subject(&key), 5).is_allowed());
    let new = of_rule("5/h");
    let denied = take(&store, new.subject(&key), 5).retry_after().expect("five were used");
    assert!(denied <= std::time::Duration::from_millis(400), "{denied:?}");
    let answered = store.status().answered;
    assert!(!take(&store, new.subject(&key), 5).is_allowed());
    assert_eq!(store.status().answered, answered, "the refusal is remembered");
    testbed::pause(denied);
    assert!(take(&store, new.subject(&key), 5).is_allowed(), "after the wait that was reported");
}

#[test]
fn takes_that_are_asked_together_keep_their_order() {
    let redis = redis();
    for round in 0..20 {
        let (store, key) = (forgetful(&redis.url()), Key::new(round));
        assert!(take(&store, of_rule("100/h").subject(&key), 30).is_allowed());
        let new = of_rule(if round % 2 == 0 { "200/h" } else { "150/h" });
        let asks = [(new.subject(&key), Ask::ONE)];
        let answers = wait_for_all((0..64).map(|_| store.take(&asks)));
        let left =
            answers.into_iter().map(|answer| answer.expect("the server answers").each()[0].remaining());
        let first = if round % 2 == 0 { 170 } else { 120 };
        assert_eq!(left.collect::<Vec<_>>(), (0..64).map(|taken| first - 1 - taken).collect::<Vec<_>>());
    }
}

/// Without its history a limit would start full.
#[test]
fn a_limit_that_could_not_be_put_in_force_decides_nothing() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let (direct, key) = (forgetful(&redis.url()), Key::new("ana"));
    assert!(take(&direct, of_rule("5/d").subject(&key), 5).is_allowed());
    proxy.only_for(&["EVALSHA", "EVAL"]);
    let proxied = open(options(&proxy.url()).caches_denials(false));
    let new = of_rule("6/d");
    for failing in 1..=3 {
        proxy.answer(1, "-OOM command not allowed when used memory > 'maxmemory'.");
        let asks = [(new.subject(&key), Ask::new(Cost::of(2)))];
        assert!(wait(proxied.take(&asks)).is_err(), "call {failing} fails");
        let denied = wait(proxied.take(&asks)).expect("the server answers");
        assert!(!denied.is_allowed(), "one is left");
    }
    assert!(take(&proxied, new.subject(&key), 1).is_allowed());
}

#[test]
fn a_limit_says_that_counts_are_older_than_those_that_it_carries() {
    let server = redis();
    let (store, key) = (store(&server.url()), Key::new("ana"));
    for amount in 10..=15 {
        let limit = of_rule(&format!("{amount}/d"));
        assert!(take(&store, limit.subject(&key), 1).is_allowed());
        assert_eq!(limit.dropped_counts().take(), amount == 15, "{amount}/d follows {}", amount - 10);
    }
    let log = of_rule("5/d sliding-log");
    assert!(take(&store, log.subject(&key), 1).is_allowed());
    assert!(!log.dropped_counts().take(), "nothing is carried to another algorithm");
}

#[test]
fn nothing_is_carried_through_permits() {
    let server = redis();
    let (store, key) = (store(&server.url()), Key::new("ana"));
    assert!(take(&store, of_rule("5/d").subject(&key), 5).is_allowed());
    assert!(take(&store, of_rule("3/h concurrency").subject(&key), 1).is_allowed());
    assert_eq!(
        remaining(&store, of_rule("6/d").subject(&key)),
        6,
        "another algorithm begins anew, and so does the next"
    );
}

/// Regression: a refund of all carried counts was reported as whole, and the same counts were carried again.
#[test]
fn a_refund_of_carried_counts_is_kept_or_capped() {
    let server = redis();
    let (redis, map, zone) = (forgetful(&server.url()), Map::new(), Zone::new(1 << 20));
    let key = Key::new("ana");
    for store in [&map as &dyn Store, &zone, &redis] {
        for (kind, keeps_nothing_owed) in [
            ("", false),
            (" sliding-log", false),
            (" sliding-window", false),
            (" fixed-window", true),
            (" leaky-bucket queue 5", false),
        ] {
            let of = |amount: u64| {
                let text = format!("{amount}/d{kind}");
                PreparedLimit::of_rule(&format!("refunds{kind}"), text.parse().expect(&text))
            };
            let take = |limit: &PreparedLimit, units| {
                let asks = [(limit.subject(&key), Ask::new(Cost::of(units)))];
                wait(store.take(&asks)).expect("an answer").is_allowed()
            };
            let refund = |limit: &PreparedLimit, units| {
                let adjusted = store.adjust(limit.subject(&key), Adjustment::Refund(Cost::of(units)));
                let adjusted = wait(adjusted).expect("an answer");
                let left = wait(store.peek(limit.subject(&key), Ask::ONE)).expect("an answer");
                (adjusted, left.remaining())
            };
            let (old, new) = (of(10), of(20));
            let peek = |limit: &PreparedLimit| {
                wait(store.peek(limit.subject(&key), Ask::ONE)).expect("an answer").remaining()
            };
            assert!(take(&old, 5), "{kind}");
            let before = peek(&new);
            let (all, left) = refund(&new, 5);
            if keeps_nothing_owed {
                assert_eq!((all, left), (Adjusted::Whole, before + 5), "{kind}");
                continue;
            }
            assert_eq!((all, left), (Adjusted::Capped, before), "{kind}: the counts would be carried again");
            assert_eq!(refund(&new, 4), (Adjusted::Whole, before + 4), "{kind}");
        }
    }
}
