//! Tests of requests that are dropped at any moment: no permit stays held without an owner.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use conformance::random::Random;
use tidegate::{Ask, Store as _, StoreError, StoreFuture};
use tidegate_redis::RedisStore;

use crate::setup::{Someone, eventually, redis, store, wait};

/// Returns the number of free permits.
fn free(store: &RedisStore, who: &Someone) -> Option<u64> {
    wait(store.peek(who.subject(), Ask::ONE)).ok().map(|decision| decision.remaining())
}

/// Polls a take this many times and drops it. Returns its result if it completed before.
fn drop_after<T>(polls: u64, taking: StoreFuture<'_, T>) -> Option<T> {
    let (mut taking, mut context) = (pin!(taking), Context::from_waker(Waker::noop()));
    for _ in 0..polls {
        if let Poll::Ready(answer) = taking.as_mut().poll(&mut context) {
            return answer.ok();
        }
        std::thread::yield_now();
    }
    None
}

#[test]
fn a_take_that_is_dropped_while_it_is_asked_for_holds_no_place() {
    let (redis, mut random) = (redis(), Random::new(Random::seed_from_environment()));
    let store = store(&redis.url());
    wait(store.ready()).unwrap();
    let all = Someone::new("all", "20/1h concurrency");
    let mut answered = 0;
    for _ in 0..400 {
        let (asks, polls) = ([(all.subject(), Ask::ONE)], random.between(1, 200));
        let decisions = match random.percent(50) {
            true => drop_after(polls, store.take(&[(all.subject().tracked(), Ask::ONE)])),
            false => drop_after(polls, store.take(&asks)),
        };
        answered += u64::from(decisions.is_some());
        if let Some(permit) = decisions.and_then(|decisions| decisions.each()[0].permit()) {
            assert!(wait(store.release(all.subject(), permit)).unwrap());
        }
    }
    println!("{answered} of 400 takes were over before they were dropped");
    eventually("every place is free again", || free(&store, &all).filter(|free| *free == 20));
}

#[test]
fn a_place_that_is_given_back_later_comes_back_once_the_server_is_there_again() {
    let redis = redis();
    let store = store(&redis.url());
    let ana = Someone::new("ana", "1/1h concurrency");
    let permit = ana.take(&store).unwrap().each()[0].permit().expect("a permit");
    redis.stop();
    store.release_later(ana.subject(), permit);
    eventually("no server answers", || ana.take(&store).err());
    redis.resume();
    eventually("the place is free again", || free(&store, &ana).filter(|free| *free == 1));
    assert!(ana.is_allowed(&store));
}

#[test]
fn takes_that_fail_while_the_server_is_away_leave_room_for_places_that_are_held() {
    let redis = redis();
    let store = store(&redis.url());
    let ana = Someone::new("ana", "1/1h concurrency");
    let permit = ana.take(&store).unwrap().each()[0].permit().expect("a permit");
    redis.stop();
    eventually("no request is sent", || ana.take(&store).err().filter(StoreError::is_retryable));
    let in_doubt = store.status().returning;
    for _ in 0..6000 {
        assert!(ana.take(&store).is_err());
    }
    assert!(store.status().returning < in_doubt + 1000, "most of them were not sent: {:?}", store.status());
    store.release_later(ana.subject(), permit);
    redis.resume();
    eventually("the place is free again", || free(&store, &ana).filter(|free| *free == 1));
    assert_eq!(store.status().not_returned, 0);
}

#[test]
fn places_of_a_whole_batch_come_back() {
    let redis = redis();
    let store = store(&redis.url());
    let all = Someone::new("all", "10000/1h concurrency");
    let permits: Vec<_> =
        (0..9000).map(|_| all.take(&store).unwrap().each()[0].permit().expect("a permit")).collect();
    for permit in permits {
        store.release_later(all.subject(), permit);
    }
    eventually("every place is free again", || free(&store, &all).filter(|free| *free == 10_000));
}
