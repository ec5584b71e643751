//! Limits that come with each request.

use std::sync::Arc;

use http::{Request, StatusCode};
use tidegate::{Limit, ManualClock, SECOND, Zone};
use tidegate_tower::{RateLimitLayer, key};
use tower::Service;

use super::{Counting, Task, field, now, of};

fn plan(plan: &str) -> Request<()> {
    Request::builder().uri("/x").header("x-user", "ana").header("x-plan", plan).body(()).unwrap()
}

/// Returns a layer whose limit is written in a header field, with a manual clock.
fn by_plan() -> (RateLimitLayer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let zone = Zone::with_clock(1 << 16, clock.clone());
    let layer = RateLimitLayer::each_on(&zone, key::header("x-user"), |head| {
        head.header("x-plan").map_or(Limit::per_hour(1), |plan| plan.to_str().unwrap().parse().unwrap())
    });
    (layer.with_clock(clock.clone()), clock)
}

#[test]
fn each_request_obeys_its_own_limit_and_a_caller_with_a_new_plan_starts_full() {
    let (layer, _) = by_plan();
    let mut service = Counting::default().behind(&layer.named("plan"));
    let response = now(&mut service, plan("10/h"));
    assert_eq!(field(&response, "ratelimit-policy"), Some("\"plan\";q=10;w=3600"));
    assert_eq!(field(&response, "ratelimit"), Some("\"plan\";r=9;t=360"));
    let response = now(&mut service, plan("100/h"));
    assert_eq!(field(&response, "ratelimit-policy"), Some("\"plan\";q=100;w=3600"));
    assert_eq!(field(&response, "ratelimit"), Some("\"plan\";r=99;t=36"), "nothing is owed under this one");
    assert_eq!(now(&mut service, plan("1/h")).status(), StatusCode::OK);
    assert_eq!(now(&mut service, plan("1/h")).status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&now(&mut service, plan("10/h")), "ratelimit"), Some("\"plan\";r=8;t=720"));
}

/// A request under a small limit used to cut the debt under a large one, which then admitted everything again.
#[test]
fn asking_under_one_limit_does_not_touch_what_is_owed_under_another() {
    for (seldom, often) in [
        ("100/h", "10/s"),
        ("5/h", "10/s burst 20"),
        ("5/m sliding-log", "100/s sliding-log"),
        ("5/m fixed-window", "100/s fixed-window"),
        ("5/m sliding-window", "100/s sliding-window"),
        ("5/h leaky-bucket queue 5", "100/s leaky-bucket queue 1"),
    ] {
        let (layer, _) = by_plan();
        let mut service = Counting::default().behind(&layer);
        let mut passed = |text: &str| now(&mut service, plan(text)).status() == StatusCode::OK;
        let (mut alone, mut between) = (0, 0);
        for _ in 0..200 {
            alone += usize::from(passed(seldom));
        }
        for _ in 0..20 {
            passed(often);
            between += (0..20).filter(|_| passed(seldom)).count();
        }
        assert!(alone > 0, "{seldom}");
        assert_eq!(between, 0, "{seldom}, with {often} in between");
    }
}

#[test]
fn more_limits_than_are_kept_are_held_to_as_well() {
    let (layer, _) = by_plan();
    let mut service = Counting::default().behind(&layer);
    for round in 0..3 {
        for amount in 1..=100 {
            let response = now(&mut service, plan(&format!("2/{amount}h")));
            assert_eq!(response.status() == StatusCode::OK, round < 2, "2/{amount}h, for the {round}th time");
        }
    }
    assert_eq!(now(&mut service, plan("2/101h concurrency")).status(), StatusCode::OK);
    assert_eq!(now(&mut service, plan("2/101h concurrency")).status(), StatusCode::OK, "the place went back");
}

#[test]
fn a_layer_that_gets_another_name_still_has_the_same_lines() {
    let (layer, clock) = by_plan();
    let layer = layer.wait(10 * SECOND);
    let (mut first, counting) = (Counting::default().behind(&layer), Counting::default());
    let mut waiting = Task::new((0..2).map(|_| first.call(plan("1/s"))));
    assert_eq!(waiting.run().len(), 1);
    let mut second = counting.behind(&layer.named("other"));
    let mut behind = Task::new([second.call(plan("1/s"))]);
    assert!(behind.run().is_empty());
    clock.advance(SECOND);
    assert_eq!((waiting.run().len(), behind.run().len()), (1, 0), "first come, first served");
    clock.advance(SECOND);
    assert_eq!(behind.run().len(), 1);
}

#[test]
fn who_waits_has_its_time_and_who_goes_before_gives_it_back() {
    let (layer, clock) = by_plan();
    let counting = Counting::default();
    let mut service = counting.behind(&layer.wait(10 * SECOND));
    let mut task = Task::new((0..4).map(|_| service.call(plan("1/s"))));
    assert_eq!(task.run().len(), 1);
    assert!(task.forget(3), "the last one goes");
    let mut next = Task::new([service.call(plan("1/s"))]);
    assert!(next.run().is_empty());
    for passed in [2, 3] {
        clock.advance(SECOND);
        assert_eq!(task.run().len(), 1);
        assert_eq!(counting.asked(), passed);
    }
    assert!(next.run().is_empty());
    clock.advance(SECOND);
    assert_eq!(next.run().len(), 1, "it has the place of the one that went");
    assert_eq!(counting.asked(), 4);
}

#[test]
fn a_waiter_that_leaves_the_middle_of_the_queue_moves_up_all_behind_it() {
    let (layer, clock) = by_plan();
    let mut service = Counting::default().behind(&layer.wait(10 * SECOND));
    let mut task = Task::new((0..4).map(|_| service.call(plan("1/s"))));
    assert_eq!(task.run().len(), 1);
    assert!(task.forget(1));
    let mut times = Vec::new();
    let mut newcomer = Task::new([service.call(plan("1/s"))]);
    for second in 0..8 {
        times.extend(task.run().iter().map(|(number, _)| (second, *number)));
        times.extend(newcomer.run().iter().map(|_| (second, 4)));
        clock.advance(SECOND);
    }
    assert_eq!(times, [(1, 2), (2, 3), (3, 4)], "one a second, in the order in which they came");
}

#[test]
fn a_request_that_would_wait_too_long_is_denied_and_reserves_nothing() {
    let (layer, clock) = by_plan();
    let counting = Counting::default();
    let mut service = counting.behind(&layer.wait(SECOND));
    let mut task = Task::new((0..9).map(|_| service.call(plan("1/s"))));
    let over = task.run();
    let refused =
        over.iter().filter(|(_, answer)| answer.as_ref().unwrap().status() != StatusCode::OK).count();
    assert_eq!((over.len(), refused), (8, 7), "one passes, one waits");
    clock.advance(SECOND);
    assert_eq!(task.run().len(), 1);
    assert_eq!(counting.asked(), 2);
}

#[test]
fn without_a_zone_of_one_s_own_there_is_one() {
    let layer = RateLimitLayer::each(key::header("x-user"), |head| match head.path() {
        "/x" => Limit::per_hour(2),
        _ => Limit::per_hour(1),
    });
    let mut service = Counting::default().behind(&layer);
    let mut status = |request| now(&mut service, request).status().as_u16();
    assert_eq!(
        (status(of("ana")), status(of("ana")), status(of("ana")), status(of("bob"))),
        (200, 200, 429, 200)
    );
}

#[test]
fn places_in_flight_of_a_limit_that_came_along_go_back_to_it() {
    let (layer, _) = by_plan();
    let mut service = Counting::default().behind(&layer);
    let mut call = || super::at_once(service.call(plan("1/60s concurrency"))).unwrap().unwrap();
    let held = call();
    assert_eq!((held.status(), call().status()), (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS));
    drop(held);
    assert_eq!(call().status(), StatusCode::OK);
}
