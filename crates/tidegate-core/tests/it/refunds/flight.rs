//! Tests of requests in flight that finish in any order.

use std::time::Duration;

use conformance::random::Random;
use tidegate::{Adjusted, MILLISECOND, SECOND};

use super::{Arm, IN_PROCESS, LIMITS, Place, clock, limit};

fn shuffled<T>(mut all: Vec<T>, random: &mut Random) -> Vec<T> {
    for last in (1..all.len()).rev() {
        all.swap(last, random.between(0, last as u64) as usize);
    }
    all
}

/// Returns the rest after a series of takes at this distance was refunded in a random order.
fn rest_after(place: Place, text: &str, between: Duration, random: &mut Random) -> (u64, Duration) {
    let clock = clock();
    let arm = Arm::new(place, limit(text), &clock);
    let mut takes = Vec::new();
    for _ in 0..20 {
        let (decision, take) = arm.take(1, Duration::ZERO);
        assert!(decision.is_allowed(), "{text} ({place:?})");
        takes.extend(take);
        clock.advance(between);
    }
    let denied = arm.take(20, Duration::ZERO);
    assert!(!denied.0.is_allowed() && denied.1.is_none(), "{text}: a denied ask has no take");
    for take in shuffled(takes, random) {
        let adjusted = take.refund();
        assert!(adjusted == Adjusted::Whole || !between.is_zero(), "{text} ({place:?})");
    }
    arm.rest()
}

#[test]
fn twenty_takes_are_refunded_in_any_order() {
    let mut random = Random::new(Random::seed_from_environment());
    for (place, text) in IN_PROCESS.into_iter().flat_map(|place| LIMITS.map(|text| (place, text))) {
        for between in [Duration::ZERO, MILLISECOND, 100 * MILLISECOND, SECOND] {
            for _ in 0..5 {
                let (remaining, reset_after) = rest_after(place, text, between, &mut random);
                assert_eq!((remaining, reset_after), (20, Duration::ZERO), "{text} ({place:?}, {between:?})");
            }
        }
    }
}

#[test]
fn refunds_at_the_same_instant_leave_what_was_owed_before() {
    let mut random = Random::new(Random::seed_from_environment());
    for (place, text) in IN_PROCESS.into_iter().flat_map(|place| LIMITS.map(|text| (place, text))) {
        let clock = clock();
        let arm = Arm::new(place, limit(text), &clock);
        let (_, kept) = arm.take(5, Duration::ZERO);
        clock.advance(1700 * MILLISECOND);
        let before = arm.rest();
        let takes = (0..10).filter_map(|_| arm.take(1, Duration::ZERO).1).collect();
        for take in shuffled(takes, &mut random) {
            assert_eq!(take.refund(), Adjusted::Whole, "{text} ({place:?})");
        }
        assert_eq!(arm.rest(), before, "{text} ({place:?})");
        drop(kept);
    }
}

#[test]
fn a_unit_is_refunded_once() {
    for (place, text) in IN_PROCESS.into_iter().flat_map(|place| LIMITS.map(|text| (place, text))) {
        let arm = Arm::new(place, limit(text), &clock());
        let (_, kept) = arm.take(10, Duration::ZERO);
        let (_, take) = arm.take(3, Duration::ZERO);
        let mut take = take.expect("it is allowed");
        assert_eq!(take.refund_units(2), Adjusted::Whole, "{text}");
        assert_eq!((take.refund_units(2), take.units()), (Adjusted::Capped, 0), "{text}: one was left");
        assert_eq!(take.refund_units(2), Adjusted::Capped, "{text}");
        assert_eq!(arm.rest().0, 10, "{text} ({place:?})");
        drop(kept);
    }
}

#[test]
fn what_time_has_repaid_does_not_come_back() {
    for (place, text) in IN_PROCESS.into_iter().flat_map(|place| LIMITS.map(|text| (place, text))) {
        let clock = clock();
        let arm = Arm::new(place, limit(text), &clock);
        let held: Vec<_> = (0..20).filter_map(|_| arm.take(1, Duration::ZERO).1).collect();
        // Two periods, because estimates count the previous period for a while.
        clock.advance(121 * SECOND);
        let kept = (0..40).filter(|_| arm.take_untracked(1, Duration::ZERO).is_allowed()).count();
        for take in held {
            assert_eq!(take.refund(), Adjusted::Capped, "{text} ({place:?})");
        }
        assert_eq!((kept, arm.rest().0), (20, 0), "{text} ({place:?})");
    }
}

#[test]
fn a_refund_moves_later_waiters_forward() {
    let clock = clock();
    let arm = Arm::new(Place::Zone, limit("1/s burst 3"), &clock);
    let takes: Vec<_> = (0..3).filter_map(|_| arm.take(1, Duration::ZERO).1).collect();
    let [first, second, third] = <[_; 3]>::try_from(takes).expect("three are allowed");
    clock.advance(500 * MILLISECOND);
    assert_eq!(first.refund(), Adjusted::Capped, "half of it was repaid");
    assert_eq!(arm.rest(), (1, 2 * SECOND));
    // The second take is repaid from now on, and not from the end of the first.
    clock.advance(500 * MILLISECOND);
    assert_eq!(second.refund(), Adjusted::Capped);
    assert_eq!(arm.rest(), (2, SECOND));
    assert_eq!(third.refund(), Adjusted::Whole);
    assert_eq!(arm.rest(), (3, Duration::ZERO));
}

#[test]
fn in_a_shared_file_the_price_less_the_elapsed_time_comes_back() {
    for (text, after, rest) in [
        ("1/h burst 5", 36 * SECOND, (4, 3600 * SECOND)),
        ("1/s burst 5", 100 * MILLISECOND, (4, 1000 * MILLISECOND)),
        ("1/s burst 5", SECOND, (4, SECOND)),
        ("5/m fixed-window", 30 * SECOND, (4, 30 * SECOND)),
    ] {
        let clock = clock();
        let arm = Arm::new(Place::File, limit(text), &clock);
        let (_, take) = arm.take(1, Duration::ZERO);
        let (_, kept) = arm.take(1, Duration::ZERO);
        clock.advance(after);
        take.expect("it is allowed").refund();
        assert_eq!(arm.rest(), rest, "{text}");
        drop(kept);
    }
}
