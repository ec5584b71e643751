//! Tests of one key twice in one request.

use std::time::Duration;

use tidegate::{Ask, Cost, Decision, Decisions, HOUR, Key, Limit, Store as _, Subject};
use tidegate_redis::RedisStore;

use crate::setup::{given_time, redis, wait};

fn both(store: &RedisStore, subject: Subject<'_>, asks: [Ask; 2]) -> Decisions {
    wait(store.take(&asks.map(|ask| (subject, ask)))).expect("the server answers")
}

fn units(units: [u64; 2]) -> [Ask; 2] {
    units.map(|units| Ask::new(Cost::of(units)))
}

fn given() -> (testbed::Redis, RedisStore, std::sync::Arc<tidegate::ManualClock>) {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    (redis, store, clock)
}

#[test]
fn twice_under_one_limit_is_one_ask_of_the_summed_cost() {
    let (_redis, store, clock) = given();
    for text in ["5/h", "5/h fixed-window", "5/h sliding-log", "5/h sliding-window"] {
        let (limit, key): (Limit, _) = (text.parse().expect(text), Key::new(text));
        let subject = Subject::new("user", &key, &limit);
        let taken = both(&store, subject, units([1, 2]));
        assert!(taken.is_allowed(), "{text}");
        assert_eq!(taken.each().iter().map(Decision::remaining).collect::<Vec<_>>(), [2, 2], "{text}");
        let denied = both(&store, subject, units([1, 2]));
        let alone = wait(store.peek(subject, Ask::new(Cost::of(3)))).unwrap();
        assert_eq!(denied.each(), [alone, alone], "{text}");
        assert_eq!(both(&store, subject, units([3, 3])).verdict(), tidegate::Verdict::Impossible, "{text}");
        assert_eq!(
            both(&store, subject, units([u64::MAX, u64::MAX])).verdict(),
            tidegate::Verdict::Impossible,
            "{text}"
        );
        clock.advance(denied.retry_after().expect("a wait"));
        assert!(both(&store, subject, units([1, 2])).is_allowed(), "{text}");
    }
}

#[test]
fn each_of_two_has_a_receipt_of_its_own() {
    let (_redis, store, _clock) = given();
    for text in ["5/h", "5/h fixed-window", "5/h sliding-log", "5/h sliding-window"] {
        let (limit, key): (Limit, _) = (text.parse().expect(text), Key::new(text));
        let subject = Subject::new("user", &key, &limit);
        let asks = units([1, 3]).map(|ask| (subject.tracked(), ask));
        let mut receipts = wait(store.take(&asks)).unwrap().take_receipts();
        for (receipt, (units, left)) in receipts.iter_mut().zip([(1, 2), (3, 5)]) {
            let receipt = receipt.as_mut().expect("a receipt");
            let refunded = wait(store.refund(subject, receipt, Cost::of(units + 1))).unwrap();
            assert_eq!(refunded, tidegate::Adjusted::Capped, "{text}: no more than its own part");
            assert_eq!(wait(store.peek(subject, Ask::ONE)).unwrap().remaining(), left, "{text}");
        }
    }
}

#[test]
fn where_asks_are_decided_one_after_the_other_the_wait_is_that_of_all() {
    let (_redis, store, clock) = given();
    for (text, max_wait) in [
        ("4/h queue 3 delay-after all leaky-bucket", Duration::ZERO),
        ("4/h queue 3 leaky-bucket", HOUR),
        ("4/60s concurrency", Duration::ZERO),
        ("4/h pacer burst 1h", Duration::ZERO),
    ] {
        let (limit, key): (Limit, _) = (text.parse().expect(text), Key::new(text));
        let subject = Subject::new("user", &key, &limit);
        let asks = units([1, 2]).map(|ask| ask.max_wait(max_wait));
        assert!(both(&store, subject, asks).is_allowed(), "{text}");
        let last = (0..3).map(|_| both(&store, subject, asks)).find(|taken| !taken.is_allowed());
        let last = last.expect(text);
        let wait_for = last.retry_after().expect("a wait");
        assert_eq!(last.each()[0].verdict(), last.each()[1].verdict(), "{text}");
        clock.advance(wait_for - Duration::from_micros(1));
        assert!(!both(&store, subject, asks).is_allowed(), "{text}: too early");
        clock.advance(Duration::from_micros(1));
        assert!(both(&store, subject, asks).is_allowed(), "{text} after {wait_for:?}");
    }
}

#[test]
fn permits_of_one_request_are_permits_of_their_own() {
    let (_redis, store, _clock) = given();
    let (limit, key) = (Limit::concurrency(4, Duration::from_secs(60)), Key::new("ana"));
    let subject = Subject::new("user", &key, &limit);
    let taken = both(&store, subject, units([1, 2]));
    let permits: Vec<_> = taken.each().iter().map(|decision| decision.permit().expect("a permit")).collect();
    assert_ne!(permits[0], permits[1]);
    for (permit, left) in permits.into_iter().zip([2, 4]) {
        assert!(wait(store.release(subject, permit)).unwrap());
        assert_eq!(wait(store.peek(subject, Ask::ONE)).unwrap().remaining(), left);
    }
}
