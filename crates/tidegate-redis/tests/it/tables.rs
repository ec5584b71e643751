//! Tests of the table of the limits that a namespace has had: resets, maximum size, expiry and loss.

use std::collections::BTreeMap;

use testbed::{Cluster, Direction, Flavour, Flow, Proxy, Redis};
use tidegate::{Adjustment, Ask, Cost, HOUR, Key, Limit, PreparedLimit, Store as _, Subject};
use tidegate_redis::RedisStore;

use crate::setup::{cluster_url, eventually, forgetful, given_time, options, reason, redis, store, wait};

/// The maximum number of limits in a table.
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

fn of_rule(text: &str) -> PreparedLimit {
    PreparedLimit::of_rule("rule", text.parse().expect(text))
}

fn remaining(store: &RedisStore, subject: Subject<'_>) -> u64 {
    wait(store.peek(subject, Ask::ONE)).expect("the server answers").remaining()
}

/// Returns the order and the time of each limit of a rule, from the table.
fn places(redis: &Redis) -> BTreeMap<String, String> {
    let reply = redis.try_command(&["HGETALL", "tg:limits:rule"]).expect("the server answers");
    let entry = |pair: &[testbed::Reply]| {
        let value = pair[1].text();
        (pair[0].text(), value.rsplit_once(':').expect("it ends with a time").0.to_owned())
    };
    reply.parts().chunks_exact(2).map(entry).collect()
}

/// Regression: the process that wrote the states assumed for about two refills that its limits were listed.
#[test]
fn after_a_flush_a_reset_by_key_removes_the_states_written_since() {
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        let (one, other) = (forgetful(&redis.url()), forgetful(&redis.url()));
        let (key, few) = (Key::new("ana"), Limit::per_hour(1));
        let few = Subject::new("user", &key, &few);
        let many = ["2/h", "2/h leaky-bucket queue 1 delay-after all", "2/h fixed-window", "2/h sliding-log"];
        for text in many {
            let many = text.parse::<Limit>().expect(text);
            let many = Subject::new("user", &key, &many);
            assert!(take(&one, many, 2));
            for flush in ["FLUSHALL", "FLUSHDB", "FLUSHALL"] {
                redis.command(&[flush]);
                assert!(take(&one, many, 2), "{text}: nothing is owed after {flush}");
                assert!(wait(other.reset(few)).unwrap(), "{text}: a state was written after {flush}");
                assert!(take(&one, many, 2), "{text}: it was reset");
            }
            redis.command(&["FLUSHALL"]);
            wait(one.adjust(many, Adjustment::Charge(Cost::of(2)))).expect("the server answers");
            assert!(wait(other.reset(few)).unwrap(), "{text}: a state was charged after the flush");
        }
    }
}

/// The limit was listed when the take was sent, and no longer when it was decided.
#[test]
fn a_flush_that_is_reported_with_the_answer_counts_too() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let (store, key, old) = (forgetful(&proxy.url()), Key::new("ana"), of_rule("10/d"));
    assert!(take(&store, old.subject(&key), 3));
    proxy.flow(Direction::Replies, Flow::Hold);
    redis.command(&["FLUSHALL"]);
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| take(&store, old.subject(&key), 7));
        eventually("the take is decided", || (redis.command(&["DBSIZE"]) == "1").then_some(()));
        assert!(places(&redis).is_empty(), "only the state is there");
        proxy.clear();
        assert!(taking.join().expect("an answer"));
    });
    assert_eq!(places(&redis).len(), 1, "the take is answered when its limit is listed again");
    assert_eq!(remaining(&forgetful(&redis.url()), of_rule("20/d").subject(&key)), 13);
}

#[test]
fn a_rule_changed_after_a_flush_carries_what_was_used_since() {
    let redis = redis();
    let (store, key) = (forgetful(&redis.url()), Key::new("ana"));
    assert!(take(&store, of_rule("10/d").subject(&key), 3));
    for (old, new, left) in [("10/d", "20/d", 13), ("20/d", "40/d", 33)] {
        let old = of_rule(old);
        assert!(take(&store, old.subject(&key), 1));
        redis.command(&["FLUSHALL"]);
        assert!(take(&store, old.subject(&key), 7));
        assert_eq!(remaining(&store, of_rule(new).subject(&key)), left);
        assert_eq!(remaining(&forgetful(&redis.url()), of_rule(new).subject(&key)), left);
    }
}

#[test]
fn limits_that_are_listed_again_keep_their_time_and_their_order() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let key = Key::new("ana");
    let limits = ["10/d", "20/d", "40/d"].map(of_rule);
    for limit in &limits {
        assert!(take(&store, limit.subject(&key), 1));
        clock.advance(HOUR);
    }
    let before = places(&redis);
    assert_eq!(before.len(), 3);
    redis.command(&["FLUSHALL"]);
    for nth in [2, 0, 1] {
        assert!(take(&store, limits[nth].subject(&key), 1));
    }
    assert_eq!(places(&redis), before);
    let other = RedisStore::with_given_time(options(&redis.url()), clock.clone()).expect("a store");
    assert_eq!(remaining(&other, of_rule("40/d").subject(&key)), 39);
    assert_eq!(places(&redis), before, "the newest one stays in force");
}

/// The first process on an empty table starts its order anew; another one has a higher order.
#[test]
fn a_limit_that_is_listed_again_does_not_come_before_a_newer_one() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let other = || RedisStore::with_given_time(options(&redis.url()), clock.clone()).expect("a store");
    let (key, limits) = (Key::new("ana"), ["10/d", "20/d", "40/d"].map(of_rule));
    for limit in &limits {
        assert!(take(&store, limit.subject(&key), 1));
        clock.advance(HOUR);
    }
    redis.command(&["FLUSHALL"]);
    let newest = of_rule("80/d");
    assert!(take(&other(), newest.subject(&Key::new("bob")), 1));
    let listed = places(&redis);
    assert!(take(&store, limits[2].subject(&key), 30));
    clock.advance(HOUR);
    let left = remaining(&other(), of_rule("80/d").subject(&key));
    assert_eq!(left, 53, "30 were used when it came into force, and 3 came back since");
    let after = places(&redis);
    assert_eq!(after.len(), 2);
    assert!(listed.iter().all(|(field, place)| after.get(field) == Some(place)), "{listed:?}, {after:?}");
}

/// A dynamic limit, or an override, may have the numbers of a rule's limit.
#[test]
fn a_limit_beside_a_rule_does_not_take_its_place() {
    let redis = redis();
    let (store, other) = (forgetful(&redis.url()), forgetful(&redis.url()));
    let key = Key::new("ana");
    let (rule, beside) = (of_rule("10/d"), PreparedLimit::dynamic("rule", Limit::per_day(10)));
    for first in [&store, &other] {
        assert!(take(&store, rule.subject(&key), 1));
        redis.command(&["FLUSHALL"]);
        assert!(take(first, beside.subject(&key), 1));
        assert!(take(&store, rule.subject(&key), 6));
        let changed = forgetful(&redis.url());
        assert_eq!(remaining(&changed, of_rule("20/d").subject(&key)), 13);
        redis.command(&["FLUSHALL"]);
    }
}

#[test]
fn a_server_that_restarts_without_data_gets_its_tables_again() {
    let redis = redis();
    let (store, key) = (forgetful(&redis.url()), Key::new("ana"));
    let old = of_rule("10/d");
    assert!(take(&store, old.subject(&key), 3));
    redis.kill();
    redis.restart();
    let asks = [(old.subject(&key), Ask::new(Cost::of(7)))];
    eventually("the server is back", || wait(store.take(&asks)).ok());
    assert_eq!(remaining(&store, of_rule("20/d").subject(&key)), 13);
    let other = forgetful(&redis.url());
    assert!(wait(other.reset(of_rule("30/d").subject(&key))).unwrap(), "found by another process");
}

#[test]
fn another_server_behind_the_same_name_gets_the_tables_too() {
    let (full, empty) = (redis(), redis());
    let proxy = Proxy::start(full.address());
    let (store, key) = (forgetful(&proxy.url()), Key::new("ana"));
    let (old, listed) = (of_rule("10/d"), places(&full));
    assert!(listed.is_empty() && take(&store, old.subject(&key), 3));
    proxy.retarget(empty.address());
    proxy.cut();
    let asks = [(old.subject(&key), Ask::new(Cost::of(7)))];
    eventually("the other server answers", || wait(store.take(&asks)).ok());
    assert_eq!(places(&empty), places(&full), "with its time and its order");
    assert_eq!(remaining(&forgetful(&empty.url()), of_rule("20/d").subject(&key)), 13);
}

/// A server reports a flush, but not the deletion of a single key.
#[test]
fn a_table_that_was_deleted_is_written_again() {
    let redis = redis();
    let (store, key) = (forgetful(&redis.url()), Key::new("ana"));
    let limits = ["10/d", "20/d"].map(of_rule);
    for limit in &limits {
        assert!(take(&store, limit.subject(&key), 1));
    }
    let before = places(&redis);
    redis.command(&["DEL", "tg:limits:rule"]);
    for limit in &limits {
        assert!(take(&store, limit.subject(&key), 1));
    }
    eventually("both are listed again", || (places(&redis) == before).then_some(()));
}

#[test]
fn a_table_that_could_not_be_read_or_written_is_tried_again() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let (store, key, limit) = (forgetful(&proxy.url()), Key::new("ana"), of_rule("10/d"));
    assert!(take(&store, limit.subject(&key), 1));
    let before = places(&redis);
    // The limit was put in force, and never noted, so the script that notes it is sent as text.
    for (answered, command) in [(1, "EVAL"), (2, "HMGET")] {
        proxy.only_for(&[command]);
        proxy.answer(1, "-ERR something unheard of");
        redis.command(&["DEL", "tg:limits:rule"]);
        assert!(take(&store, limit.subject(&key), 1));
        eventually("it is listed again", || (places(&redis) == before).then_some(()));
        assert_eq!(proxy.counters().answered, answered, "{command} has failed once");
    }
}

#[test]
fn without_the_permission_to_hear_of_flushes_tables_are_looked_after_too() {
    let redis = redis();
    let user = ["on", ">PASSWORD", "~tg:*", "+@all", "-client"];
    redis.command(&[&["ACL", "SETUSER", "tidegate"], &user[..]].concat());
    let url = format!("redis://tidegate:PASSWORD@{}", redis.address());
    let (store, key, old) = (forgetful(&url), Key::new("ana"), of_rule("10/d"));
    assert!(take(&store, old.subject(&key), 3));
    let before = places(&redis);
    redis.command(&["FLUSHALL"]);
    assert!(take(&store, old.subject(&key), 7));
    eventually("it is listed again", || (places(&redis) == before).then_some(()));
    assert_eq!(remaining(&forgetful(&redis.url()), of_rule("20/d").subject(&key)), 13);
}

#[test]
fn nodes_of_a_cluster_that_were_flushed_get_their_tables_again() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let keys: Vec<_> = (0..20_u64).map(Key::new).collect();
    let old = of_rule("10/d");
    let take_all = |units| keys.iter().for_each(|key| assert!(take(&store, old.subject(key), units)));
    take_all(3);
    let node = cluster.primary_of(cluster.slot_of("tg:limits:rule"));
    let before = places(node);
    cluster.primaries().iter().for_each(|node| drop(node.command(&["FLUSHALL"])));
    take_all(7);
    eventually("it is listed again", || (places(node) == before).then_some(()));
    let (other, new) = (forgetful(&cluster_url(&cluster)), of_rule("20/d"));
    assert!(keys.iter().all(|key| remaining(&other, new.subject(key)) == 13));
}
