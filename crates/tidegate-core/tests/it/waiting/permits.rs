//! Tests of permits in flight: given back by a drop, by a release, or by the end of the lease.

use std::mem;

use tidegate::{Permits, SECOND, ask};

use super::{clock, over, poll};

#[test]
fn a_leaked_permit_ends_with_its_lease() {
    let clock = clock();
    let permits = Permits::builder(1).lease(30 * SECOND).clock(clock.clone()).build();
    mem::forget(permits.admit("ana").unwrap());
    clock.advance(30 * SECOND - std::time::Duration::from_nanos(1));
    let refused = permits.admit("ana").unwrap_err();
    assert_eq!(refused.retry_after(), Some(std::time::Duration::from_nanos(1)));
    clock.advance(std::time::Duration::from_nanos(1));
    assert!(permits.admit("ana").is_ok());
}

#[test]
fn a_late_release_frees_no_other_permit() {
    let clock = clock();
    let permits = Permits::builder(1).lease(SECOND).clock(clock.clone()).build();
    let late = permits.admit("ana").unwrap();
    let late_id = late.id().unwrap();
    clock.advance(SECOND);
    let next = permits.admit("ana").unwrap();
    assert_ne!(Some(late_id), next.id());
    assert!(!late.renew(), "an ended lease stays ended");
    assert!(!late.release());
    assert!(!permits.release("ana", late_id) && !permits.renew("ana", late_id));
    assert!(permits.admit("ana").is_err(), "the place is still held");
    assert!(next.renew());
    assert!(next.release());
    let by_number = permits.admit("ana").unwrap();
    let id = by_number.id().unwrap();
    mem::forget(by_number);
    assert!(permits.renew("ana", id) && permits.release("ana", id) && !permits.release("ana", id));
}

#[test]
fn dropping_gives_the_permit_to_the_longest_waiter() {
    let clock = clock();
    let permits = Permits::builder(2).lease(60 * SECOND).clock(clock.clone()).build();
    let first = permits.admit("ana").unwrap();
    let second = permits.admit("ana").unwrap();
    let mut third = permits.acquire("ana");
    let mut fourth = permits.acquire("ana");
    assert!(poll(&mut third).is_pending() && poll(&mut fourth).is_pending());
    assert!(permits.admit("ana").is_err());
    drop(first);
    assert!(poll(&mut fourth).is_pending(), "it is not its turn");
    let third = over(&mut third).unwrap();
    assert!(poll(&mut fourth).is_pending());
    assert!(second.release());
    let fourth = over(&mut fourth).unwrap();
    drop((third, fourth));
    assert_eq!(permits.peek("ana").remaining(), 2);
}

#[test]
fn a_waiter_gets_the_permit_of_a_holder_that_died() {
    let clock = clock();
    let permits = Permits::builder(1).lease(SECOND).clock(clock.clone()).build();
    mem::forget(permits.admit("ana").unwrap());
    let mut waiting = permits.acquire("ana");
    assert!(poll(&mut waiting).is_pending());
    clock.advance(SECOND);
    assert!(over(&mut waiting).is_ok());
}

#[test]
fn a_place_that_came_too_late_for_its_waiter_goes_to_the_next() {
    let clock = clock();
    let permits = Permits::builder(1).lease(60 * SECOND).clock(clock.clone()).build();
    let holder = permits.admit("ana").unwrap();
    let mut granted = permits.acquire("ana");
    let mut next = permits.acquire("ana");
    assert!(poll(&mut granted).is_pending() && poll(&mut next).is_pending());
    drop(holder);
    drop(granted);
    assert!(over(&mut next).is_ok());
}

#[test]
fn a_waiter_for_a_permit_waits_no_longer_than_its_max_wait() {
    let clock = clock();
    let permits = Permits::builder(1).lease(60 * SECOND).clock(clock.clone()).build();
    let holder = permits.admit("ana").unwrap();
    let mut hasty = permits.acquire("ana").max_wait(SECOND);
    let mut patient = permits.acquire("ana").max_wait(3 * SECOND);
    assert!(poll(&mut hasty).is_pending() && poll(&mut patient).is_pending());
    clock.advance(SECOND);
    let refused = over(&mut hasty).unwrap_err();
    assert!(refused.is_timed_out(), "{refused}");
    clock.advance(SECOND);
    drop(holder);
    assert!(over(&mut patient).is_ok());
}

#[test]
fn a_heavier_ask_takes_several_units() {
    let permits = Permits::builder(3).clock(clock()).build();
    let two = permits.admit(ask("ana").cost(2)).unwrap();
    assert!(permits.admit(ask("ana").cost(2)).is_err());
    let one = permits.admit("ana").unwrap();
    assert!(permits.admit(ask("ana").cost(4)).unwrap_err().is_impossible());
    drop(two);
    assert_eq!(permits.peek("ana").remaining(), 2);
    permits.set_limit(1, SECOND);
    assert!(permits.admit("ana").is_err());
    drop(one);
    assert!(permits.admit("ana").is_ok());
}
