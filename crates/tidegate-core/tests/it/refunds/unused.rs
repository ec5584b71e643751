//! Tests of takes for waiters that leave, permits that are not picked up, and plain receipts.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{
    Adjusted, Ask, Clock, Cost, HOUR, Key, Limit, Limiter, ManualClock, Map, SECOND, Subject, Timestamp,
    Zone, ask,
};

use super::{Arm, EVERYWHERE, LIMITS, clock, limit, zone_in_file};

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns true if the permit of a waiter is released that was admitted and leaves before it is polled.
fn place_comes_back(is_tracked: bool, meanwhile: impl FnOnce(&Limiter, &ManualClock)) -> bool {
    let clock = clock();
    let limiter = Limiter::with_clock(Limit::concurrency(1, HOUR), clock.clone());
    let first = limiter.admit("ana").permit().expect("a place");
    let (mut plain, mut tracked) = (limiter.acquire("ana"), limiter.acquire("ana").tracked());
    let is_pending = if is_tracked { poll(&mut tracked).is_pending() } else { poll(&mut plain).is_pending() };
    assert!(is_pending && limiter.release("ana", first));
    meanwhile(&limiter, &clock);
    drop((plain, tracked));
    limiter.admit("ana").is_allowed()
}

#[test]
fn an_unclaimed_grant_comes_back_whatever_happens_meanwhile() {
    for is_tracked in [false, true] {
        assert!(place_comes_back(is_tracked, |_, _| {}));
        assert!(place_comes_back(is_tracked, |limiter, _| {
            assert_eq!(limiter.refund("ana"), Adjusted::NeedsPermit);
        }));
        assert!(place_comes_back(is_tracked, |_, clock| clock.step_back(SECOND)));
        assert!(place_comes_back(is_tracked, |limiter, _| limiter.reset("ana")));
        assert!(place_comes_back(is_tracked, |limiter, _| limiter.set_limit(Limit::concurrency(1, 2 * HOUR))));
    }
}

#[test]
fn any_number_of_unclaimed_grants_comes_back() {
    let limiter = Limiter::with_clock(Limit::concurrency(1, HOUR), clock());
    assert!(limiter.admit("ana").is_allowed());
    let mut waiting: Vec<_> = (0..1500).map(|_| limiter.acquire("ana")).collect();
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    limiter.set_limit(Limit::concurrency(2000, HOUR));
    drop(waiting);
    assert_eq!(limiter.peek("ana").remaining(), 1999);
}

/// A denied ask that has taken ahead gives its take back; the other takes keep their positions.
#[test]
fn a_denied_ask_costs_no_other_take_its_refund() {
    let zone = Zone::with_clock(1 << 14, clock());
    let limiter = Limiter::on(&zone, "", limit("20/m pacer burst 60s pay self"));
    let take = limiter.admit_tracked(ask("ana").cost(5)).1.expect("it is allowed");
    assert!(limiter.acquire(ask("ana").cost(17)).max_wait(Duration::ZERO).blocking().is_err());
    assert_eq!(take.refund(), Adjusted::Whole);
    for text in LIMITS {
        let limiter = Limiter::on(&zone, text, limit(text));
        let takes: Vec<_> = (0..1024).map_while(|_| limiter.admit_tracked(ask("ana").cost(1)).1).collect();
        for _ in 0..3000 {
            assert!(
                limiter.acquire(ask("ana").cost(20)).max_wait(Duration::ZERO).blocking().is_err(),
                "{text}"
            );
        }
        assert!(takes.into_iter().all(|take| take.refund() == Adjusted::Whole), "{text}");
    }
    assert_eq!(zone.receipt_counts().dropped, 0);
}

/// This includes stores that other processes use.
#[test]
fn a_take_ahead_of_a_waiter_that_leaves_comes_back() {
    for place in EVERYWHERE {
        let (clock, text) = (clock(), "1/h queue 5 leaky-bucket");
        let arm = Arm::new(place, limit(text), &clock);
        assert!(arm.take_untracked(1, Duration::ZERO).is_allowed());
        let owed = arm.rest();
        let mut waiting = arm.acquire(1).tracked();
        assert!(poll(&mut waiting).is_pending());
        drop(waiting);
        assert_eq!(arm.rest(), owed, "{place:?}");
    }
}

/// A plain receipt of a store is for a refund shortly after the take; a reset makes it void.
#[test]
fn a_plain_receipt_is_worthless_after_a_reset() {
    for text in LIMITS.into_iter().filter(|text| !text.contains("pacer")) {
        for is_reset in [false, true] {
            let (key, limit) = (Key::new("ana"), limit(text));
            let (map, zone, file) =
                (Map::with_clock(clock()), Zone::with_clock(1 << 14, clock()), zone_in_file(clock()));
            let (subject, all) = (Subject::new("test", &key, &limit), Ask::new(Cost::of(20)));
            macro_rules! check {
                ($store:expr) => {
                    let (_, receipt) = $store.take(subject, all);
                    if is_reset {
                        assert!($store.reset(subject).expect("its limits are listed"));
                        assert!($store.take(subject, all).0.is_allowed(), "{text}");
                    }
                    let adjusted = $store.give_back(subject, receipt.expect("it is allowed"));
                    assert_eq!(adjusted == Adjusted::Capped, is_reset, "{text}");
                    assert_eq!($store.take(subject, Ask::ONE).0.is_allowed(), !is_reset, "{text}");
                };
            }
            check!(map);
            check!(zone);
            check!(file);
        }
    }
}

/// A clock with other callers at one of its readings: they reset and spend the first limit, and spend the second.
#[derive(Debug)]
struct Meddling {
    clock: Arc<ManualClock>,
    limiters: OnceLock<[Limiter; 2]>,
    readings: AtomicU64,
}

impl Clock for Meddling {
    fn now(&self) -> Timestamp {
        if self.readings.fetch_sub(1, Ordering::SeqCst) == 1 {
            let [first, second] = self.limiters.get().expect("they are there");
            first.reset("ana");
            assert!(first.admit(ask("ana").cost(5)).is_allowed());
            let _ = second.admit("ana");
        }
        self.clock.now()
    }
}

/// Between two takes of one request, the key of the first is reset, and other callers spend all of it.
#[test]
fn a_take_of_several_is_not_undone_after_a_reset() {
    for text in ["5/h fixed-window", "5/h burst 5"] {
        for readings in 1..12 {
            let clock = clock();
            let (limiters, unread) = (OnceLock::new(), AtomicU64::new(0));
            let meddling = Arc::new(Meddling { clock: clock.clone(), limiters, readings: unread });
            let first = Limiter::on(&Zone::with_clock(1 << 14, clock), "first", limit(text));
            let second =
                Limiter::on(&Zone::with_clock(1 << 14, meddling.clone()), "second", limit("1/h burst 1"));
            meddling.limiters.set([first.clone(), second.clone()]).expect("it is set once");
            meddling.readings.store(readings, Ordering::SeqCst);
            let decisions = tidegate::admit_all([first.ask("ana"), second.ask("ana")]);
            let left = meddling.readings.load(Ordering::SeqCst);
            let is_met = left == 0 || left > readings;
            assert!(is_met || decisions.is_allowed(), "{text}");
            assert_eq!(first.admit("ana").is_allowed(), !is_met, "{text}, after {readings} readings");
        }
    }
}
