//! Effects of outcomes on an adaptive limit.

use super::*;

/// Returns the limit after 400 calls with this response.
fn adapted(
    layer: impl FnOnce(ConcurrencyLimitLayer) -> ConcurrencyLimitLayer,
    answer: &Result<u16, &'static str>,
) -> u64 {
    let clock = Arc::new(ManualClock::new());
    let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(1..=1000).starting_at(100))
        .clock(clock.clone())
        .build();
    let mut bench = Bench::new(&layer(ConcurrencyLimitLayer::new(places.clone())));
    for _ in 0..20 {
        let mut calls: Vec<_> = (0..20).map(|_| bench.call()).collect();
        clock.advance(SECOND / 100);
        for (call, number) in calls.iter_mut().zip(bench.shared.came()) {
            match answer {
                Ok(status) => bench.shared.answer(number, *status),
                Err(error) => bench.shared.answer_with(number, Err(error)),
            }
            assert_eq!(poll(call).map_ok(|answer| answer.status().as_u16()), Poll::Ready(*answer));
        }
    }
    places.limit()
}

/// Returns the limit after 400 calls that were dropped after 10 ms.
fn given_up(layer: impl FnOnce(ConcurrencyLimitLayer) -> ConcurrencyLimitLayer) -> u64 {
    let clock = Arc::new(ManualClock::new());
    let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(1..=1000).starting_at(100))
        .clock(clock.clone())
        .build();
    let mut bench = Bench::new(&layer(ConcurrencyLimitLayer::new(places.clone())));
    for _ in 0..20 {
        let calls: Vec<_> = (0..20).map(|_| bench.call()).collect();
        clock.advance(SECOND / 100);
        drop(calls);
    }
    assert_eq!(places.in_flight(), 0);
    places.limit()
}

#[test]
fn a_call_that_is_given_up_counts_only_after_the_time_that_was_said() {
    assert_eq!(given_up(|layer| layer), 100);
    assert_eq!(given_up(|layer| layer.overloaded_after(SECOND / 50)), 100);
    assert!(given_up(|layer| layer.overloaded_after(SECOND / 100)) < 100);
}

#[test]
fn what_another_layer_of_ours_refused_says_nothing_about_the_service() {
    let clock = Arc::new(ManualClock::new());
    let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(1..=1000).starting_at(100))
        .clock(clock.clone())
        .build();
    let inner = crate::RateLimitLayer::new(tidegate_core::Limit::per_hour(1), crate::key::everyone());
    let judged = ConcurrencyLimitLayer::new(places.clone()).outcome(|_| Outcome::Overloaded);
    for layer in [ConcurrencyLimitLayer::new(places.clone()), judged] {
        let mut service = layer.layer(inner.layer(Hand::new()));
        for round in 0..21 {
            let calls: Vec<_> = (0..20)
                .map(|_| {
                    let _ = service.poll_ready(&mut Context::from_waker(Waker::noop()));
                    Box::pin(service.call(Request::new(0)))
                })
                .collect();
            clock.advance(SECOND / 100);
            for mut call in calls {
                match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(answer) => assert_eq!(answer.unwrap().status(), 429),
                    Poll::Pending => assert_eq!(round, 0),
                }
            }
        }
    }
    assert_eq!(places.limit(), 100);
}

#[test]
fn places_that_adapt_learn_from_how_calls_went() {
    let as_it_is = |layer| layer;
    assert!(adapted(as_it_is, &Ok(200)) >= 100);
    assert!(adapted(as_it_is, &Ok(503)) < 100);
    assert!(adapted(as_it_is, &Ok(500)) >= 100, "an error that says nothing about load");
    assert!(adapted(as_it_is, &Ok(504)) < 100);
    assert!(adapted(as_it_is, &Ok(408)) >= 100, "a caller that was slow");
    assert!(adapted(as_it_is, &Ok(429)) >= 100, "a caller over its own quota");
    assert!(adapted(as_it_is, &Err("too late")) < 100, "an error of a service is a time-out, or shed load");
    let judged = |layer: ConcurrencyLimitLayer| {
        layer.outcome(|head| match head.status().as_u16() {
            418 => Outcome::Overloaded,
            _ => Outcome::Done,
        })
    };
    assert!(adapted(judged, &Ok(418)) < 100);
    assert!(adapted(judged, &Ok(503)) >= 100);
}
