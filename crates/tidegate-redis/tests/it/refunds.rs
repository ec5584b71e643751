//! Tests of refunds by receipt: other processes share the counts, so the refund is the price minus the time since the
//! take.

use std::time::Duration;

use tidegate::{
    Adjusted, Adjustment, Ask, Cost, HOUR, MILLISECOND, ManualClock, OpenReceipt, SECOND, Store as _,
};
use tidegate_redis::RedisStore;

use crate::setup::{Someone, given_time, options, redis, store, wait};

impl Someone {
    fn take_tracked(&self, store: &RedisStore, units: u64) -> OpenReceipt {
        let ask = [(self.subject().tracked(), Ask::new(Cost::of(units)))];
        let mut taken = wait(store.take(&ask)).expect("the server answers");
        assert!(taken.is_allowed());
        taken.take_receipts().pop().flatten().expect("a receipt")
    }

    fn refund(&self, store: &RedisStore, receipt: &mut OpenReceipt, units: u64) -> Adjusted {
        wait(store.refund(self.subject(), receipt, Cost::of(units))).expect("the server answers")
    }

    fn remaining(&self, store: &RedisStore) -> u64 {
        wait(store.peek(self.subject(), Ask::ONE)).expect("the server answers").remaining()
    }
}

const LIMITS: [&str; 6] = [
    "20/h burst 20",
    "20/h queue 19 delay-after all leaky-bucket",
    "20/h fixed-window",
    "20/h sliding-log",
    "20/h sliding-window",
    "20/h sliding-window mode estimate",
];

#[test]
fn twenty_in_flight_come_back_in_any_order() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    wait(store.ready()).unwrap();
    clock.advance(1000 * HOUR);
    for limit in LIMITS {
        let ana = Someone::new(limit, limit);
        let mut receipts: Vec<_> = (0..20).map(|_| ana.take_tracked(&store, 1)).collect();
        assert_eq!(ana.passes(&store, 1), 0, "{limit}");
        for at in 0..20 {
            assert_eq!(ana.refund(&store, &mut receipts[at * 7 % 20], 1), Adjusted::Whole, "{limit}");
        }
        assert_eq!(ana.remaining(&store), 20, "{limit}");
        assert_eq!(
            ana.refund(&store, &mut receipts[3], 1),
            Adjusted::Capped,
            "{limit}: a unit comes back once"
        );
    }
}

#[test]
fn what_time_has_repaid_does_not_come_back() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    wait(store.ready()).unwrap();
    clock.advance(1000 * HOUR);
    for limit in LIMITS {
        let ana = Someone::new(limit, limit);
        let mut receipts: Vec<_> = (0..20).map(|_| ana.take_tracked(&store, 1)).collect();
        clock.advance(3 * HOUR);
        assert_eq!(ana.passes(&store, 40), 20, "{limit}");
        for receipt in &mut receipts {
            assert_eq!(ana.refund(&store, receipt, 1), Adjusted::Capped, "{limit}");
        }
        assert_eq!(ana.passes(&store, 40), 0, "{limit}");
    }
}

#[test]
fn of_a_bucket_the_price_less_the_time_since_comes_back() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    wait(store.ready()).unwrap();
    clock.advance(1000 * HOUR);
    let ana = Someone::new("ana", "1/s burst 5 max-debt 5");
    let reset_after = || wait(store.peek(ana.subject(), Ask::ONE)).unwrap().reset_after();
    let (mut one, mut three) = (ana.take_tracked(&store, 1), ana.take_tracked(&store, 3));
    clock.advance(SECOND / 4);
    assert_eq!((ana.refund(&store, &mut one, 1), reset_after()), (Adjusted::Capped, 3 * SECOND));
    assert_eq!((ana.refund(&store, &mut three, 1), reset_after()), (Adjusted::Whole, 2 * SECOND));
    clock.advance(SECOND * 3 / 2);
    assert_eq!((ana.refund(&store, &mut three, 2), reset_after()), (Adjusted::Capped, SECOND / 4));
    let patient = Ask::new(Cost::of(5)).max_wait(9 * SECOND);
    let mut last = wait(store.take(&[(ana.subject().tracked(), patient)])).unwrap().take_receipts();
    let last = last.first_mut().and_then(Option::as_mut).expect("a receipt");
    assert_eq!(ana.refund(&store, last, 5), Adjusted::Capped, "it waits, and others may do so");
    assert!(reset_after() > Duration::from_secs(5));
}

#[test]
fn after_a_restart_of_the_server_nothing_comes_back() {
    let redis = redis();
    let store = store(&redis.url());
    wait(store.ready()).unwrap();
    let ana = Someone::new("ana", "2/h");
    let mut receipt = ana.take_tracked(&store, 1);
    redis.kill();
    redis.restart();
    crate::setup::eventually("the server is back", || ana.take(&store).ok());
    assert_eq!(ana.refund(&store, &mut receipt, 1), Adjusted::Capped);
}

/// The units of a request after the flush are not those of the receipt.
#[test]
fn after_a_flush_nothing_comes_back() {
    let redis = redis();
    let store = store(&redis.url());
    let ana = Someone::new("ana", "2/h");
    let mut receipt = ana.take_tracked(&store, 1);
    redis.command(&["FLUSHALL"]);
    assert!(ana.is_allowed(&store), "the news of the flush come before this answer");
    assert_eq!(ana.refund(&store, &mut receipt, 1), Adjusted::Capped);
    assert_eq!(ana.passes(&store, 2), 1);
}

/// Calls `check` for each limit with two stores on one server, and the clock of the first.
fn with_two_stores(check: impl Fn(&Someone, [&RedisStore; 2], &ManualClock, &str)) {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let other = RedisStore::with_given_time(options(&redis.url()), clock.clone()).expect("good options");
    wait(store.ready()).expect("the server answers");
    wait(other.ready()).expect("the server answers");
    for limit in LIMITS {
        check(&Someone::new(limit, limit), [&store, &other], &clock, limit);
        clock.advance(10 * HOUR);
    }
}

#[test]
fn after_a_reset_through_any_store_nothing_comes_back() {
    with_two_stores(|ana, [store, other], clock, limit| {
        for resets in [store, other] {
            let mut before = ana.take_tracked(store, 20);
            clock.advance(MILLISECOND);
            assert!(wait(resets.reset(ana.subject())).unwrap(), "{limit}");
            clock.advance(MILLISECOND);
            let mut after = ana.take_tracked(store, 20);
            assert_eq!(ana.refund(store, &mut before, 20), Adjusted::Capped, "{limit}");
            assert_eq!(ana.passes(store, 1), 0, "{limit}: the units of another came back");
            assert_eq!(
                ana.refund(other, &mut after, 20),
                Adjusted::Capped,
                "{limit}: not its own connection"
            );
            assert!(wait(resets.reset_limit(ana.subject())).unwrap(), "{limit}");
            clock.advance(MILLISECOND);
            let mut last = ana.take_tracked(store, 20);
            assert_eq!(ana.refund(store, &mut last, 20), Adjusted::Whole, "{limit}: it came after the reset");
        }
    });
}

#[test]
fn after_a_refund_without_a_receipt_nothing_comes_back() {
    with_two_stores(|ana, [store, other], clock, limit| {
        let mut before = ana.take_tracked(store, 1);
        clock.advance(MILLISECOND);
        wait(other.adjust(ana.subject(), Adjustment::Refund(Cost::ONE))).unwrap();
        clock.advance(MILLISECOND);
        assert_eq!(ana.passes(store, 20), 20, "{limit}");
        assert_eq!(ana.refund(store, &mut before, 1), Adjusted::Capped, "{limit}");
        assert_eq!(ana.passes(store, 1), 0, "{limit}: the unit of another came back");
    });
}

#[test]
fn after_the_clock_stepped_back_nothing_comes_back() {
    with_two_stores(|ana, [store, _], clock, limit| {
        let mut before = ana.take_tracked(store, 1);
        clock.step_back(SECOND);
        assert_eq!(ana.refund(store, &mut before, 1), Adjusted::Capped, "{limit}");
    });
}

/// By the server's own clock: a mark lasts as long as the longest of the takes that it concerns.
#[test]
fn a_second_reset_does_not_shorten_the_mark_of_the_first() {
    let redis = redis();
    let store = store(&redis.url());
    for limit in ["20/h burst 20", "20/h sliding-window", "20/h sliding-window mode estimate"] {
        let ana = Someone::new(limit, limit);
        let mut before = ana.take_tracked(&store, 20);
        wait(store.adjust(ana.subject(), Adjustment::Refund(Cost::of(20)))).unwrap();
        wait(store.adjust(ana.subject(), Adjustment::Refund(Cost::ONE))).unwrap();
        assert!(ana.is_allowed(&store));
        wait(store.reset(ana.subject())).unwrap();
        let least = "local least = 1e9
            for _, mark in ipairs(redis.call('KEYS', '*}r*')) do least = math.min(least, redis.call('PTTL', mark)) end
            return least";
        let least: u64 = redis.command(&["EVAL", least, "0"]).parse().expect("a number");
        assert!((1_800_000..1_000_000_000).contains(&least), "{limit}: a mark lasts {least} ms");
        assert_eq!(ana.refund(&store, &mut before, 20), Adjusted::Capped, "{limit}");
    }
}
