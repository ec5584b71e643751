//! The built-in time constants, one step before and one step after each.

use std::time::Duration;

use tidegate_core::{MILLISECOND, SECOND};

use super::*;

/// Returns a client that was just denied for 30 seconds.
fn held_for_thirty_seconds() -> Bench {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.clock.advance(100 * SECOND);
    bench.call_answered(429, &[("retry-after", "30")]);
    bench
}

#[test]
fn a_call_that_hangs_after_a_hold_keeps_the_next_one_for_a_second() {
    let mut bench = held_for_thirty_seconds();
    let mut calls = [bench.call(), bench.call()];
    bench.clock.advance(30 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [1]);
    bench.clock.advance(SECOND - MILLISECOND);
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(2 * MILLISECOND);
    assert_eq!(bench.arrived(&mut calls), [2]);
}

#[test]
fn calls_leave_one_at_a_time_after_a_hold_until_none_has_left_for_a_minute() {
    for (idle, expected) in [(60 * SECOND - MILLISECOND, 1), (60 * SECOND + MILLISECOND, 3)] {
        let mut bench = held_for_thirty_seconds();
        bench.clock.advance(30 * SECOND);
        let mut hanging = [bench.call()];
        assert_eq!(bench.arrived(&mut hanging).len(), 1);
        bench.clock.advance(idle);
        let mut calls = [bench.call(), bench.call(), bench.call()];
        assert_eq!(bench.arrived(&mut calls).len(), expected, "after {idle:?}");
    }
}

#[test]
fn a_clock_steps_back_from_a_millisecond_on() {
    // A hold moves with a step of the clock, and not with less: many small steps would end it too early.
    let just_less = MILLISECOND - Duration::from_nanos(1);
    for (back, early) in [(MILLISECOND, 0), (2 * MILLISECOND, 0), (just_less, 1), (Duration::ZERO, 0)] {
        let mut bench = held_for_thirty_seconds();
        let mut calls = [bench.call()];
        bench.clock.step_back(back);
        assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
        bench.clock.advance(30 * SECOND);
        assert_eq!(bench.arrived(&mut calls).len(), 1 - early, "after a step of {back:?}");
        bench.clock.advance(back);
        assert_eq!(bench.arrived(&mut calls).len(), early, "after a step of {back:?}");
    }
}

#[test]
fn a_call_on_its_way_is_taken_off_a_quota_for_ten_seconds() {
    for (hangs, expected) in [(10 * SECOND - MILLISECOND, 0), (10 * SECOND + MILLISECOND, 1)] {
        let mut bench = Bench::new(OutboundLimitLayer::new());
        let mut hanging = [bench.call()];
        assert_eq!(bench.arrived(&mut hanging), [0]);
        bench.clock.advance(hangs);
        bench.call_answered(200, &[("ratelimit", "\"api\";r=1;t=60")]);
        let mut calls = [bench.call()];
        assert_eq!(bench.arrived(&mut calls).len(), expected, "after {hangs:?}");
    }
}

#[test]
fn a_call_that_leaves_late_moves_the_pace_if_it_is_late_by_more_than_ten_milliseconds() {
    for late in [9, 11] {
        let mut bench = Bench::new(OutboundLimitLayer::new().pace("10/s burst 1".parse().unwrap()));
        let mut calls = [bench.call(), bench.call(), bench.call()];
        assert_eq!(bench.arrived(&mut calls), [0]);
        bench.clock.advance(100 * MILLISECOND); // the next one is let go, and has not looked
        bench.clock.advance(late * MILLISECOND);
        assert_eq!(bench.arrived(&mut calls), [1]);
        bench.clock.advance((100 - late) * MILLISECOND);
        let is_moved = late > 10;
        assert_eq!(bench.arrived(&mut calls).len(), usize::from(!is_moved), "late by {late} ms");
        bench.clock.advance(late * MILLISECOND);
        assert_eq!(bench.arrived(&mut calls).len(), usize::from(is_moved), "late by {late} ms");
    }
}
