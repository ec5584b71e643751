//! Tests of cached denials, which need no request to the server.

use tidegate::{Adjustment, Ask, Clock as _, Cost, CounterClock, Store as _};

use crate::setup::{Someone, forgetful, open, options, redis, scripts, store, wait};

#[test]
fn a_key_held_at_its_limit_costs_the_server_nothing() {
    let redis = redis();
    for limit in [
        "5/h",
        "5/h queue 4 delay-after all leaky-bucket",
        "5/h fixed-window",
        "5/h sliding-log",
        "5/h sliding-window",
    ] {
        let (store, ana) = (store(&redis.url()), Someone::new(limit, limit));
        assert_eq!(ana.passes(&store, 6), 5, "{limit}");
        let clock = CounterClock::new();
        let began = clock.now();
        let run = scripts(&redis, || assert_eq!(ana.passes(&store, 1000), 0, "{limit}"));
        // A denial is cached for at most ten seconds; a slow machine may take longer for the whole test.
        let most = clock.now().since(began).to_duration().as_secs() / 10;
        assert!(run as u64 <= most, "{limit}: the server was asked {run} times");
        assert_eq!(store.status().cached + run as u64, 1000, "{limit}");
    }
}

#[test]
fn when_the_time_is_over_the_server_is_asked_again() {
    let redis = redis();
    let (store, ana) = (store(&redis.url()), Someone::new("ana", "1/100ms"));
    assert!(ana.is_allowed(&store));
    let wait = ana.take(&store).unwrap().retry_after().expect("it was refused");
    testbed::pause(wait);
    assert!(ana.is_allowed(&store), "a retry after the reported wait is allowed");
}

#[test]
fn what_was_given_back_or_forgotten_here_is_noticed_at_once() {
    let redis = redis();
    let (store, ana) = (store(&redis.url()), Someone::new("ana", "2/h"));
    assert_eq!(ana.passes(&store, 3), 2);
    wait(store.adjust(ana.subject(), Adjustment::Refund(Cost::ONE))).unwrap();
    assert_eq!(ana.passes(&store, 3), 1);
    wait(store.reset(ana.subject())).unwrap();
    assert_eq!(ana.passes(&store, 3), 2);
    store.forget_refusals();
    let answered = store.status().answered;
    assert!(!ana.is_allowed(&store));
    assert_eq!(store.status().answered, answered + 1, "nothing is remembered any more");
}

#[test]
fn a_server_that_lost_its_data_is_asked_again() {
    let redis = redis();
    let (store, ana) = (store(&redis.url()), Someone::new("ana", "2/h"));
    assert_eq!(ana.passes(&store, 3), 2);
    redis.command(&["FLUSHALL"]);
    // The report of the flush precedes the reply about another key.
    assert!(Someone::new("bob", "2/h").is_allowed(&store));
    assert_eq!(ana.passes(&store, 3), 2, "after a flush");
    redis.restart();
    while Someone::new("carl", "1000/h").take(&store).is_err() {
        testbed::pause(tidegate::MILLISECOND);
    }
    assert_eq!(ana.passes(&store, 3), 2, "after a restart without data");
}

#[test]
fn places_in_flight_and_counted_refusals_are_always_asked_for() {
    let redis = redis();
    let store = store(&redis.url());
    for limit in ["2/30s concurrency", "2/h sliding-log count-denied"] {
        let ana = Someone::new(limit, limit);
        assert_eq!(ana.passes(&store, 2), 2);
        assert_eq!(scripts(&redis, || assert_eq!(ana.passes(&store, 10), 0)), 10, "{limit}");
    }
}

#[test]
fn several_limits_are_refused_from_memory_only_if_all_are_known_to_refuse() {
    let redis = redis();
    let (store, narrow, wide) = (store(&redis.url()), Someone::new("ana", "1/h"), Someone::new("all", "2/d"));
    let asks = [(wide.subject(), Ask::ONE), (narrow.subject(), Ask::ONE)];
    let take = || wait(store.take(&asks)).unwrap();
    assert!(take().is_allowed());
    for _ in 0..2 {
        assert_eq!(take().binding(), Some(1));
        assert_eq!(store.status().cached, 0, "of the other nothing is known");
    }
    assert_eq!(wide.passes(&store, 2), 1, "refusals of one spend nothing of the other");
    assert_eq!(take().binding(), Some(0), "the one that was not known has the longer wait");
    let cached = store.status().cached;
    let again = take();
    assert_eq!((again.binding(), store.status().cached), (Some(0), cached + 1), "both are known");
}

#[test]
fn an_allowed_take_ends_what_is_known_of_its_state() {
    let redis = redis();
    let (store, ana) = (store(&redis.url()), Someone::new("ana", "10/d burst 6"));
    let asks = |units| [(ana.subject(), Ask::new(Cost::of(units)))];
    let take = |units| wait(store.take(&asks(units))).unwrap();
    assert!(take(5).is_allowed() && !take(2).is_allowed() && take(1).is_allowed());
    let left = take(2).each()[0];
    assert_eq!(left.remaining(), 0);
    assert!(left.retry_after().unwrap() > 4 * tidegate::HOUR, "two are missing: {left:?}");
}

#[test]
fn it_can_be_switched_off() {
    let redis = redis();
    let store = open(options(&redis.url()).caches_denials(false));
    let ana = Someone::new("ana", "1/h");
    assert_eq!(ana.passes(&store, 10), 1);
    assert_eq!((store.status().answered, store.status().cached), (11, 0), "the limit is listed first");
    let other = forgetful(&redis.url());
    assert_eq!(ana.passes(&other, 10), 0, "another machine sees the same count");
}
