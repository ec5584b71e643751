//! Tests of newest first, which applies only under overload.

use std::time::Duration;

use tidegate::{Class, ClassId, ConcurrencyLimiter, MILLISECOND, SECOND};

use super::{CRITICAL, bulk_class, classes, clock, fill, over, poll, ranked, refused, wait};

const BUSY: Duration = Duration::from_millis(100);

#[test]
fn the_newest_waiter_goes_first_once_the_queue_was_busy_for_the_set_time() {
    let clock = clock();
    let places =
        ConcurrencyLimiter::builder(2).max_waiters(10).newest_first_after(BUSY).clock(clock.clone()).build();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting = [(); 4].map(|()| wait(places.acquire(ClassId::FIRST)));
    clock.advance(BUSY - Duration::from_nanos(1));
    held.pop();
    let first = over(&mut waiting[0]).expect("the first waiter passes first without overload");
    clock.advance(Duration::from_nanos(1));
    held.pop();
    let last = over(&mut waiting[3]).expect("the last waiter passes first under overload");
    drop(last);
    assert!(over(&mut waiting[2]).is_ok());
    drop(first);
    assert!(over(&mut waiting[1]).is_ok());
}

#[test]
fn an_empty_queue_restarts_the_overload_timer() {
    let clock = clock();
    let places =
        ConcurrencyLimiter::builder(1).max_waiters(10).newest_first_after(BUSY).clock(clock.clone()).build();
    let mut held = fill(&places, ClassId::FIRST);
    for _ in 0..5 {
        let mut waiting = [(); 3].map(|()| wait(places.acquire(ClassId::FIRST)));
        clock.advance(BUSY - MILLISECOND);
        held.clear();
        for waiter in &mut waiting {
            held = vec![over(waiter).expect("in order")];
            clock.advance(MILLISECOND / 4);
            held.clear();
        }
        held = fill(&places, ClassId::FIRST);
    }
}

#[test]
fn by_default_the_queue_stays_fifo_for_ever() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1).max_waiters(2).clock(clock.clone()).build();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting = [(); 2].map(|()| wait(places.acquire(ClassId::FIRST)));
    clock.advance(3600 * SECOND);
    assert!(refused(&mut places.acquire(ClassId::FIRST)).is_queue_full());
    held.clear();
    assert!(over(&mut waiting[0]).is_ok());
}

#[test]
fn under_overload_a_full_queue_evicts_the_oldest_of_the_lowest_class() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1)
        .classes(classes(0, 0))
        .max_waiters(3)
        .newest_first_after(BUSY)
        .clock(clock.clone())
        .build();
    let _held = fill(&places, CRITICAL);
    let mut critical = wait(places.acquire(CRITICAL));
    let mut bulk = [(); 2].map(|()| wait(places.acquire(bulk_class(&places))));
    assert!(refused(&mut places.acquire(bulk_class(&places))).is_queue_full(), "there is no overload yet");
    clock.advance(BUSY);
    let mut newest = wait(places.acquire(bulk_class(&places)));
    assert!(refused(&mut bulk[0]).is_pushed_out());
    let mut second = wait(places.acquire(CRITICAL));
    assert!(refused(&mut bulk[1]).is_pushed_out());
    let third = wait(places.acquire(CRITICAL));
    assert!(refused(&mut newest).is_pushed_out());
    assert!(
        refused(&mut places.acquire(bulk_class(&places))).is_queue_full(),
        "no waiter leaves for a lesser class"
    );
    let _fourth = wait(places.acquire(CRITICAL));
    assert!(refused(&mut critical).is_pushed_out(), "now the oldest of all is of the least class");
    assert!(poll(&mut second).is_pending());
    assert_eq!(places.waiting(), 3);
    drop(third);
    assert_eq!(places.waiting(), 2);
}

#[test]
fn a_full_queue_evicts_the_newest_of_the_lowest_class_for_a_higher_one() {
    let places = ConcurrencyLimiter::builder(1).classes(classes(0, 0)).max_waiters(3).build();
    let _held = fill(&places, CRITICAL);
    let mut critical = wait(places.acquire(CRITICAL));
    let mut bulk = [(); 2].map(|()| wait(places.acquire(bulk_class(&places))));
    assert!(
        refused(&mut places.acquire(bulk_class(&places))).is_queue_full(),
        "its own class was there before"
    );
    let _second = wait(places.acquire(CRITICAL));
    assert!(refused(&mut bulk[1]).is_pushed_out());
    assert!(poll(&mut bulk[0]).is_pending());
    let _third = wait(places.acquire(CRITICAL));
    assert!(refused(&mut bulk[0]).is_pushed_out());
    assert!(refused(&mut places.acquire(CRITICAL)).is_queue_full(), "no waiter leaves for an equal class");
    assert!(poll(&mut critical).is_pending());
}

#[test]
fn a_waiter_entitled_to_its_reserve_is_never_pushed_out() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(10)
        .classes(classes(0, 20))
        .max_waiters(3)
        .newest_first_after(BUSY)
        .clock(clock.clone())
        .build();
    let mut held = fill(&places, CRITICAL);
    assert_eq!(held.len(), 8);
    assert!(places.set_limit(5));
    let mut bulk = [(); 2].map(|()| wait(places.acquire(bulk_class(&places))));
    let mut critical = wait(places.acquire(CRITICAL));
    clock.advance(BUSY);
    let _newer = wait(places.acquire(CRITICAL));
    assert!(refused(&mut bulk[0]).is_pushed_out(), "one place is kept for its class, and two wait");
    assert!(poll(&mut critical).is_pending());
    let _newest = wait(places.acquire(CRITICAL));
    assert!(refused(&mut critical).is_pushed_out());
    held.truncate(4);
    assert!(over(&mut bulk[1]).is_ok(), "it has what is kept for it");
}

#[test]
fn classes_keep_their_rank_under_overload() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1)
        .classes(["a", "b"].map(Class::from))
        .max_waiters(10)
        .newest_first_after(BUSY)
        .clock(clock.clone())
        .build();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting = [0, 1, 0, 1].map(|class| wait(places.acquire(ranked(&places, class))));
    clock.advance(BUSY);
    for expected in [2, 0, 3, 1] {
        held.clear();
        held.push(over(&mut waiting[expected]).unwrap_or_else(|_| panic!("the turn of {expected}")));
    }
}

#[test]
fn a_clock_that_steps_back_puts_overload_off_by_no_more_than_its_span() {
    let clock = clock();
    let places =
        ConcurrencyLimiter::builder(1).max_waiters(10).newest_first_after(BUSY).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let mut old = wait(places.acquire(ClassId::FIRST));
    clock.step_back(500 * SECOND);
    let mut new = wait(places.acquire(ClassId::FIRST));
    clock.advance(BUSY);
    drop(held);
    assert!(poll(&mut old).is_pending());
    assert!(over(&mut new).is_ok());
}
