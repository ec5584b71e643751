//! Departures after a hold, and the effects of responses on slow start.

use tidegate_core::SECOND;

use super::*;

fn refused(bench: &mut Bench) -> Vec<Call> {
    bench.call_answered(429, &[("retry-after", "30")]);
    let calls = (0..1000).map(|_| bench.call()).collect();
    bench.clock.advance(30 * SECOND);
    calls
}

#[test]
fn after_a_hold_twice_as_many_leave_each_time_as_were_answered() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut calls = refused(&mut bench);
    let mut rounds = Vec::new();
    while !calls.is_empty() {
        let arrived = bench.arrived(&mut calls);
        rounds.push(arrived.len());
        for (number, mut call) in arrived.iter().zip(calls.drain(..arrived.len())) {
            bench.server.answer(*number, 200, &[]);
            answer(&mut call);
        }
    }
    assert_eq!(rounds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 489]);
}

#[test]
fn after_a_hold_a_refusal_without_a_time_lets_one_leave_at_a_time_again() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut calls = refused(&mut bench);
    assert_eq!(bench.arrived(&mut calls), [1]);
    bench.server.answer(1, 200, &[]);
    answer(&mut calls[0]);
    assert_eq!(bench.arrived(&mut calls[1..]), [2, 3]);
    for number in [2, 3] {
        bench.server.answer(number, 429, &[]);
        answer(&mut calls[number as usize - 1]);
    }
    assert_eq!(bench.arrived(&mut calls[3..]), [4]);
}

#[test]
fn a_call_that_hangs_after_a_hold_delays_no_other_for_more_than_a_second() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut calls = refused(&mut bench);
    for number in 1..10 {
        assert_eq!(bench.arrived(&mut calls), [number]);
        bench.clock.advance(SECOND);
    }
}

#[test]
fn a_call_that_is_given_up_after_a_hold_lets_the_next_one_leave() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut calls = refused(&mut bench);
    assert_eq!(bench.arrived(&mut calls), [1]);
    drop(calls.remove(0));
    assert_eq!(bench.arrived(&mut calls), [2]);
}

#[test]
fn after_a_hold_max_wait_ends_when_it_ends() {
    let mut bench = Bench::new(OutboundLimitLayer::new().max_wait(30 * SECOND));
    bench.call_answered(429, &[("retry-after", "30")]);
    let mut calls = [bench.call(), bench.call(), bench.call()];
    bench.clock.advance(30 * SECOND);
    assert_eq!(bench.arrived(&mut calls[..1]), [1]);
    assert!(held(&mut calls[1]).is_reported());

    let mut bench = Bench::new(OutboundLimitLayer::new().max_wait(31 * SECOND));
    bench.call_answered(429, &[("retry-after", "30")]);
    let mut calls = [bench.call(), bench.call()];
    bench.clock.advance(30 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [1]);
    bench.server.answer(1, 200, &[]);
    answer(&mut calls[0]);
    assert_eq!(bench.arrived(&mut calls[1..]), [2], "an answer came in time");
}

#[test]
fn calls_that_hang_are_taken_off_a_quota_once() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let hanging: Vec<_> = (0..10).map(|_| bench.call()).collect();
    let fields = [("ratelimit", "\"a\";r=8;t=60")];
    bench.call_answered(200, &fields);
    let mut waits = [bench.call()];
    assert_eq!(bench.arrived(&mut waits), [0_u32; 0], "ten may still come, and eight are left");
    bench.clock.advance(60 * SECOND);
    bench.server.answer(11, 200, &fields);
    answer(&mut waits[0]);
    bench.server.arrived();
    let mut calls: Vec<_> = (0..9).map(|_| bench.call()).collect();
    assert_eq!(bench.arrived(&mut calls).len(), 8);
    drop(hanging);
}

#[test]
fn answers_out_of_a_cache_tell_nothing_about_what_is_left() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(200, &[("age", "3600"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "60")]);
    let mut calls = [bench.call()];
    assert_eq!(bench.arrived(&mut calls), [1]);

    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(503, &[("age", "20"), ("retry-after", "30")]);
    let mut calls = [bench.call()];
    bench.clock.advance(9 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(SECOND);
    assert_eq!(bench.arrived(&mut calls), [1]);
}
