//! The function that receives each decision of a layer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, StatusCode};
use tidegate::{
    BreakerState, CircuitBreaker, ClassId, ConcurrencyLimiter, Limit, Limiter, ManualClock, Outcome, SECOND,
    Zone,
};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::key::Extract as _;
use tidegate_tower::{
    CircuitBreakerLayer, ConcurrencyLimitLayer, DecisionEvent, DecisionResult, RateLimitLayer, Reason, key,
};
use tower::Service as _;
use tower_layer::Layer as _;

use crate::limit::{Counting, Task, now, of};

/// An event without its request.
type Seen = (DecisionResult, Option<String>, Option<u64>, Option<Duration>);

/// The events of a layer, in their order.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Seen>>>);

impl Events {
    fn observer(&self) -> impl Fn(&DecisionEvent<'_>) + Send + Sync + 'static {
        let events = self.clone();
        move |event| {
            let limit = event.limit.map(str::to_owned);
            events.0.lock().unwrap().push((event.result, limit, event.remaining, event.retry_after));
        }
    }

    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn seen(result: DecisionResult, limit: &str, remaining: u64, retry_after: Option<u64>) -> Seen {
    (result, Some(limit.to_owned()), Some(remaining), retry_after.map(Duration::from_secs))
}

/// Returns a limiter of this limit, whose clock is set by hand.
fn limiter(limit: Limit) -> (Limiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Limiter::with_clock(limit, clock.clone()), clock)
}

#[test]
fn each_request_is_reported_once_with_its_limit() {
    let (events, (limiter, _)) = (Events::default(), limiter(Limit::per_hour(2)));
    let layer =
        RateLimitLayer::with(limiter, key::header("x-user")).named("api").on_decision(events.observer());
    let mut service = Counting::default().behind(&layer);
    for _ in 0..3 {
        now(&mut service, of("ana"));
    }
    assert_eq!(
        events.take(),
        [
            seen(DecisionResult::Allowed, "api", 1, None),
            seen(DecisionResult::Allowed, "api", 0, None),
            seen(DecisionResult::Denied(Reason::Quota), "api", 0, Some(1800)),
        ]
    );
}

#[test]
fn a_denial_without_a_limit_is_reported_with_its_reason() {
    let events = Events::default();
    let layer = RateLimitLayer::new(Limit::per_hour(2), key::header("x-user").or_deny())
        .on_decision(events.observer());
    let mut service = Counting::default().behind(&layer);
    assert_eq!(now(&mut service, Request::new(())).status(), StatusCode::BAD_REQUEST);
    assert_eq!(events.take(), [(DecisionResult::Denied(Reason::Missing), None, None, None)]);
}

#[test]
fn requests_that_are_not_limited_are_not_reported() {
    let events = Events::default();
    let layer = RateLimitLayer::new(Limit::per_hour(2), key::header("x-user").or_skip())
        .exempt(|head| head.path() == "/x")
        .on_decision(events.observer());
    let mut service = Counting::default().behind(&layer);
    assert_eq!(now(&mut service, of("ana")).status(), StatusCode::OK);
    assert_eq!(now(&mut service, Request::builder().uri("/y").body(()).unwrap()).status(), StatusCode::OK);
    assert_eq!(events.take(), []);
}

#[test]
fn a_request_that_waited_is_reported_when_its_wait_is_over() {
    let (events, (limiter, clock)) = (Events::default(), limiter(Limit::per_second(1)));
    let layer =
        RateLimitLayer::with(limiter, key::header("x-user")).wait(SECOND).on_decision(events.observer());
    let mut service = Counting::default().behind(&layer);
    let mut calls = Task::new((0..3).map(|_| service.call(of("ana"))));
    assert_eq!(calls.run().len(), 2);
    assert_eq!(
        events.take(),
        [
            seen(DecisionResult::Allowed, "default", 0, None),
            seen(DecisionResult::Denied(Reason::Quota), "default", 0, Some(2)),
        ]
    );
    clock.advance(SECOND);
    assert_eq!(calls.run().len(), 1);
    assert_eq!(events.take(), [seen(DecisionResult::Waited, "default", 0, None)]);
}

#[test]
fn rules_are_reported_by_the_name_of_the_decisive_rule() {
    let events = Events::default();
    let policy = Policy::from_toml("[[rule]]\nname = 'per-user'\nkey = ['user']\nlimit = '1/h'\n").unwrap();
    let layer = RateLimitLayer::rules(Gate::new(policy, Zone::new(1 << 16)).unwrap())
        .peer(key::peer().or_skip())
        .attribute("user", key::header("x-user"))
        .on_decision(events.observer());
    let mut service = Counting::default().behind(&layer);
    for _ in 0..2 {
        now(&mut service, of("ana"));
    }
    let events = events.take();
    assert_eq!(events[0], seen(DecisionResult::Allowed, "per-user", 0, None));
    assert_eq!(
        (events[1].0, events[1].1.as_deref(), events.len()),
        (DecisionResult::Denied(Reason::Quota), Some("per-user"), 2)
    );
}

#[test]
fn a_concurrency_limit_reports_its_free_permits() {
    let (events, limiter) = (Events::default(), ConcurrencyLimiter::at_most(2));
    let layer = ConcurrencyLimitLayer::new(limiter.clone()).on_decision(events.observer());
    let mut service = layer.layer(Counting::default());
    drop(service.call(of("ana")));
    let _permits = [limiter.admit(ClassId::FIRST).unwrap(), limiter.admit(ClassId::FIRST).unwrap()];
    drop(service.call(of("ana")));
    let events = events.take();
    assert_eq!(events.len(), 2);
    assert_eq!((events[0].0, events[0].2), (DecisionResult::Allowed, Some(1)));
    assert_eq!((events[1].0, events[1].2), (DecisionResult::Denied(Reason::Capacity), None));
    assert!(events[1].3.is_some());
}

#[test]
fn a_circuit_breaker_reports_its_denials() {
    let (events, clock) = (Events::default(), Arc::new(ManualClock::new()));
    let breaker = CircuitBreaker::builder().at_least(1).percent(1).clock(clock.clone()).build();
    let layer = CircuitBreakerLayer::new(breaker.clone()).on_decision(events.observer());
    let mut service = layer.layer(Counting::default());
    drop(service.call(of("ana")));
    assert_eq!(events.take(), [(DecisionResult::Allowed, None, None, None)]);
    for _ in 0..1000 {
        if let Ok(permit) = breaker.admit() {
            permit.done(Outcome::Failed);
        }
        clock.advance(SECOND);
    }
    assert_ne!(breaker.state(), BreakerState::Clear);
    for _ in 0..100 {
        drop(service.call(of("ana")));
    }
    let events = events.take();
    assert_eq!(events.len(), 100);
    assert!(events.iter().any(|event| event.0 == DecisionResult::Denied(Reason::Capacity)), "{events:?}");
}
