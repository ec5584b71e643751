//! Waiters: their max wait and their order.

use std::time::Duration;

use tidegate_core::SECOND;

use super::*;

#[test]
fn after_a_refusal_nothing_leaves_until_its_time_is_over_and_then_in_order() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(429, &[("retry-after", "30")]);
    let mut calls: Vec<_> = (0..5).map(|_| bench.call()).collect();
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(30 * SECOND - Duration::from_nanos(1));
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    assert_eq!(bench.layer.waiting(), 5);
    bench.clock.advance(Duration::from_nanos(1));
    assert_eq!(bench.arrived(&mut calls), [1]);
    bench.server.answer(1, 200, &[]);
    assert_eq!(bench.arrived(&mut calls[..1]), [0_u32; 0]);
    assert_eq!(bench.arrived(&mut calls[1..]), [2, 3]);
    bench.server.answer(2, 200, &[]);
    bench.server.answer(3, 200, &[]);
    assert_eq!(bench.arrived(&mut calls[1..3]), [0_u32; 0]);
    assert_eq!(bench.arrived(&mut calls[3..]), [4, 5]);
    assert_eq!(bench.layer.waiting(), 0);
}

#[test]
fn a_call_that_would_be_held_for_too_long_fails_at_once_with_the_length_of_the_hold() {
    let mut bench = Bench::new(OutboundLimitLayer::new().max_wait(10 * SECOND));
    bench.call_answered(503, &[("retry-after", "30")]);
    let failed = held(&mut bench.call());
    assert!(failed.is_reported());
    assert_eq!(failed.retry_after(), Some(30 * SECOND));
    bench.clock.advance(20 * SECOND);
    let mut calls = [bench.call()];
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(10 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [2], "ten seconds are not too long");
}

#[test]
fn what_waits_already_fails_at_once_when_it_turns_out_to_be_too_long() {
    let mut bench = Bench::new(OutboundLimitLayer::new().max_wait(10 * SECOND));
    let mut slow = bench.call();
    bench.call_answered(429, &[("retry-after", "5")]);
    let mut waits = bench.call();
    assert!(poll(&mut waits).is_pending());
    bench.server.answer(0, 429, &[("retry-after", "60")]);
    answer(&mut slow);
    assert_eq!(held(&mut waits).retry_after(), Some(60 * SECOND));
    assert_eq!(bench.layer.waiting(), 0);
}

#[test]
fn of_a_quota_as_many_leave_as_are_left_and_those_on_their_way_count() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut on_their_way = [bench.call(), bench.call()];
    assert_eq!(bench.arrived(&mut on_their_way), [0, 1]);
    bench.call_answered(200, &[("ratelimit", "\"api\";r=5;t=30")]);
    let mut calls: Vec<_> = (0..6).map(|_| bench.call()).collect();
    assert_eq!(bench.arrived(&mut calls), [3, 4, 5]);
    bench.clock.advance(30 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [6], "one, to hear how much is left now");
    for number in 3..6 {
        bench.server.answer(number, 200, &[]);
    }
    assert_eq!(bench.arrived(&mut calls[..3]), [0_u32; 0]);
    bench.server.answer(6, 200, &[("ratelimit", "\"api\";r=2;t=30")]);
    assert_eq!(bench.arrived(&mut calls[3..4]), [0_u32; 0]);
    assert_eq!(bench.arrived(&mut calls[4..]), [7, 8]);
}

#[test]
fn calls_on_their_way_are_taken_off_by_every_answer_for_answers_may_cross() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut on_their_way = [bench.call(), bench.call(), bench.call()];
    assert_eq!(bench.arrived(&mut on_their_way), [0, 1, 2]);
    bench.call_answered(200, &[("ratelimit", "\"api\";r=10;t=30")]);
    // The server has counted this call before the three.
    bench.call_answered(200, &[("ratelimit", "\"api\";r=9;t=30")]);
    let mut calls: Vec<_> = (0..9).map(|_| bench.call()).collect();
    assert_eq!(bench.arrived(&mut calls).len(), 6);
}

#[test]
fn with_nothing_left_even_an_answer_that_is_no_refusal_holds() {
    for fields in [
        vec![("ratelimit", "\"a\";r=0;t=4, \"b\";r=0;t=9")],
        vec![("ratelimit", "limit=5, remaining=0, reset=9")],
        vec![("ratelimit-remaining", "0"), ("ratelimit-reset", "9")],
        vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9")],
    ] {
        let mut bench = Bench::new(OutboundLimitLayer::new());
        bench.call_answered(200, &fields);
        let mut calls = [bench.call()];
        bench.clock.advance(9 * SECOND - Duration::from_nanos(1));
        assert_eq!(bench.arrived(&mut calls), [0_u32; 0], "{fields:?}");
        bench.clock.advance(Duration::from_nanos(1));
        assert_eq!(bench.arrived(&mut calls), [1], "{fields:?}");
    }
}

#[test]
fn invalid_fields_hold_no_call() {
    for fields in [
        [("retry-after", "-5"), ("ratelimit", "\"a\";r=-1;t=5")],
        [("retry-after", "soon"), ("ratelimit", "\"a\";r=0;t=-5")],
        [("retry-after", "1.5"), ("ratelimit", "a b c")],
        [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "")],
        [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000000000")],
    ] {
        let mut bench = Bench::new(OutboundLimitLayer::new());
        bench.call_answered(429, &fields);
        let mut calls = [bench.call()];
        assert_eq!(bench.arrived(&mut calls), [1], "{fields:?}");
    }
}

#[test]
fn no_server_holds_longer_than_is_believed() {
    let mut bench = Bench::new(OutboundLimitLayer::new().longest_hold(60 * SECOND));
    bench.call_answered(429, &[("retry-after", "99999999999999999999")]);
    let mut calls = [bench.call()];
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(60 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [1]);
}

#[test]
fn jitter_never_lets_anybody_leave_before_and_everybody_before_its_bound() {
    let mut releases = std::collections::BTreeSet::new();
    for _ in 0..32 {
        let mut bench = Bench::new(OutboundLimitLayer::new().jitter(50));
        bench.call_answered(429, &[("retry-after", "10")]);
        let mut calls = [bench.call()];
        bench.clock.advance(10 * SECOND - Duration::from_nanos(1));
        assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
        let mut steps = 0;
        while bench.arrived(&mut calls).is_empty() {
            bench.clock.advance(SECOND / 10);
            steps += 1;
            assert!(steps <= 51, "held for more than half as long again");
        }
        releases.insert(steps);
    }
    assert!(releases.len() > 5, "they all came back at {releases:?}");
}

#[test]
fn a_call_that_goes_away_gives_its_place_to_those_behind() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    bench.call_answered(200, &[("ratelimit", "\"a\";r=0;t=5")]);
    let mut calls: Vec<_> = (0..4).map(|_| bench.call()).collect();
    drop(calls.remove(1));
    drop(calls.remove(0));
    assert_eq!(bench.layer.waiting(), 2);
    bench.clock.advance(5 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [3]);
    drop(calls.remove(0));
    assert_eq!(bench.arrived(&mut calls), [4]);
}

#[test]
fn what_was_let_go_and_went_away_unseen_takes_nothing_of_a_quota() {
    let mut bench = Bench::new(OutboundLimitLayer::new().pace(Limit::per_second(1)));
    bench.call_answered(200, &[]);
    let mut calls: Vec<_> = (0..3).map(|_| bench.call()).collect();
    bench.clock.advance(SECOND);
    drop(calls.remove(0)); // it was let go, and has not looked
    assert_eq!(bench.arrived(&mut calls), [2], "the next one leaves in its place");
    bench.clock.advance(SECOND);
    assert_eq!(bench.arrived(&mut calls), [3]);
}

#[test]
fn what_was_let_go_stays_when_a_refusal_comes_before_it_has_left() {
    let mut bench = Bench::new(OutboundLimitLayer::new());
    let mut slow = bench.call();
    bench.call_answered(429, &[("retry-after", "5")]);
    let mut calls = [bench.call(), bench.call()];
    bench.clock.advance(5 * SECOND); // one is let go, and has not looked
    bench.server.answer(0, 429, &[("retry-after", "7")]);
    answer(&mut slow);
    bench.server.arrived();
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(7 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [2], "in the order in which they stood");
    bench.server.answer(2, 200, &[]);
    answer(&mut calls[0]);
    assert_eq!(bench.arrived(&mut calls[1..]), [3]);
}

#[test]
fn a_pace_is_kept_also_after_a_hold() {
    let mut bench = Bench::new(OutboundLimitLayer::new().pace("2/s burst 1".parse().unwrap()));
    bench.call_answered(429, &[("retry-after", "3")]);
    let mut calls: Vec<_> = (0..3).map(|_| bench.call()).collect();
    bench.clock.advance(3 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [1]);
    bench.server.answer(1, 200, &[]);
    answer(&mut calls[0]);
    assert_eq!(bench.arrived(&mut calls[1..]), [0_u32; 0]);
    bench.clock.advance(SECOND / 2);
    assert_eq!(bench.arrived(&mut calls[1..]), [2]);
    bench.clock.advance(SECOND / 2);
    assert_eq!(bench.arrived(&mut calls[1..]), [3]);
}

#[test]
fn the_whole_line_before_it_counts_towards_a_call_s_max_wait() {
    let mut bench =
        Bench::new(OutboundLimitLayer::new().pace("1/s burst 1".parse().unwrap()).max_wait(3 * SECOND));
    let mut calls: Vec<_> = (0..4).map(|_| bench.call()).collect();
    assert_eq!(bench.arrived(&mut calls), [0]);
    let failed = held(&mut bench.call());
    assert!(failed.is_paced());
    assert_eq!(failed.retry_after(), Some(4 * SECOND));
    drop(calls.pop());
    let mut fits = bench.call();
    assert!(poll(&mut fits).is_pending(), "one went away, so there is room");
}

#[test]
fn what_was_foreseen_is_forgotten_when_the_line_is_empty() {
    let mut bench =
        Bench::new(OutboundLimitLayer::new().pace("1/s burst 1".parse().unwrap()).max_wait(SECOND / 2));
    let mut calls = vec![bench.call()];
    assert_eq!(held(&mut bench.call()).retry_after(), Some(SECOND));
    bench.clock.advance(SECOND);
    calls.push(bench.call());
    bench.clock.advance(SECOND * 6 / 10);
    calls.push(bench.call());
    assert_eq!(bench.arrived(&mut calls), [0, 2]);
    assert_eq!(held(&mut bench.call()).retry_after(), Some(SECOND * 14 / 10));
}

#[test]
fn every_kind_of_pace_lets_a_call_leave_now_and_then() {
    for limit in [
        "2/s",
        "2/s leaky-bucket",
        "2/s fixed-window",
        "2/s sliding-log",
        "2/s sliding-window",
        "2/s pacer",
        "2/s pacer pay self",
    ] {
        let mut bench = Bench::new(OutboundLimitLayer::new().pace(limit.parse().unwrap()));
        bench.clock.advance(100 * SECOND);
        let mut calls: Vec<_> = (0..8).map(|_| bench.call()).collect();
        let mut arrived = Vec::new();
        for _ in 0..100 {
            arrived.extend(bench.arrived(&mut calls));
            bench.clock.advance(SECOND / 10);
        }
        assert_eq!(arrived, (0..8).collect::<Vec<_>>(), "{limit}");
    }
}

#[test]
#[should_panic(expected = "places in flight are no pace")]
fn places_in_flight_are_no_pace() {
    let _ = OutboundLimitLayer::new().pace("5/s concurrency".parse().unwrap());
}

#[test]
fn a_clock_that_steps_back_holds_no_call_for_ever() {
    let mut bench = Bench::new(OutboundLimitLayer::new().longest_hold(60 * SECOND));
    bench.clock.advance(10_000 * SECOND);
    bench.call_answered(429, &[("retry-after", "30")]);
    let mut calls = [bench.call()];
    bench.clock.advance(20 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.step_back(9_000 * SECOND);
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(10 * SECOND - Duration::from_nanos(1));
    assert_eq!(bench.arrived(&mut calls), [0_u32; 0]);
    bench.clock.advance(Duration::from_nanos(1));
    assert_eq!(bench.arrived(&mut calls), [1], "as long as the server reported, and no longer");
}
