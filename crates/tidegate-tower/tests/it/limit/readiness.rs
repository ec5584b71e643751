//! The layer is ready when the service is, and calls no service that is not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tidegate::{Limit, Limiter, ManualClock, SECOND};
use tidegate_tower::{RateLimit, RateLimitLayer, key};
use tower::Service;
use tower_layer::Layer as _;

use super::{Task, of};

/// A service with a number of slots. Each clone has to reserve one before it is called.
struct Strict {
    places: Arc<Mutex<Places>>,
    has_place: bool,
}

#[derive(Default)]
struct Places {
    free: usize,
    fails: bool,
    waiting: Vec<Waker>,
    calls: usize,
    polls: usize,
}

impl Strict {
    fn new(free: usize) -> Strict {
        Strict { places: Arc::new(Mutex::new(Places { free, ..Places::default() })), has_place: false }
    }
}

impl Clone for Strict {
    /// Readiness is not cloned.
    fn clone(&self) -> Strict {
        Strict { places: Arc::clone(&self.places), has_place: false }
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        if self.has_place {
            self.places.lock().unwrap().give_back();
        }
    }
}

impl Places {
    fn give_back(&mut self) {
        self.free += 1;
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = std::future::Ready<Result<Self::Response, &'static str>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        let mut places = self.places.lock().unwrap();
        places.polls += 1;
        if places.fails {
            return Poll::Ready(Err("it cannot be ready"));
        }
        if !self.has_place && places.free == 0 {
            places.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        places.free -= usize::from(!self.has_place);
        self.has_place = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.has_place), "called without being ready");
        let mut places = self.places.lock().unwrap();
        places.calls += 1;
        places.give_back();
        let fails = request.headers().contains_key("x-fails");
        std::future::ready(if fails { Err("it failed") } else { Ok(Response::new(Full::default())) })
    }
}

fn layered(
    strict: &Strict,
    limit: Limit,
    wait: std::time::Duration,
) -> (RateLimit<Strict>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(limit, clock.clone());
    (RateLimitLayer::with(limiter, key::everyone()).wait(wait).layer(strict.clone()), clock)
}

fn ready(service: &mut impl Service<Request<()>, Error = &'static str>) -> Poll<Result<(), &'static str>> {
    service.poll_ready(&mut Context::from_waker(Waker::noop()))
}

const READY: Poll<Result<(), &str>> = Poll::Ready(Ok(()));

#[test]
fn a_request_that_waits_holds_no_readiness_and_gets_its_own_before_it_is_sent() {
    let strict = Strict::new(1);
    let (mut service, clock) = layered(&strict, Limit::per_second(1).burst(1), 10 * SECOND);
    assert_eq!(ready(&mut service), READY);
    let mut first = Task::new([service.call(of("ana"))]);
    assert_eq!(first.run().len(), 1);

    assert_eq!(ready(&mut service), READY);
    let mut waiting = Task::new([service.call(of("ana"))]);
    assert!(waiting.run().is_empty());
    drop(service);
    assert_eq!(strict.places.lock().unwrap().free, 1, "who waits holds no place");

    // Another clone has the only slot when the wait is over.
    let mut other = strict.clone();
    assert_eq!(other.poll_ready(&mut Context::from_waker(Waker::noop())), READY);
    clock.advance(SECOND);
    assert!(waiting.run().is_empty());
    drop(other);
    let over = waiting.run();
    assert_eq!(over[0].1.as_ref().unwrap().status(), StatusCode::OK);
    assert_eq!(strict.places.lock().unwrap().calls, 2);
}

#[test]
fn a_request_that_waits_is_sent_also_while_the_service_that_it_came_through_is_kept() {
    let strict = Strict::new(1);
    let (mut service, clock) = layered(&strict, Limit::per_second(1).burst(1), 10 * SECOND);
    for (wait, answers) in [(std::time::Duration::ZERO, 1), (SECOND, 1)] {
        assert_eq!(ready(&mut service), READY);
        let mut task = Task::new([service.call(of("ana"))]);
        let at_once = task.run().len();
        clock.advance(wait);
        assert_eq!(at_once + task.run().len(), answers, "the only permit is not reserved for a waiter");
    }
    assert_eq!(strict.places.lock().unwrap().calls, 2);
}

#[test]
fn the_layer_is_ready_when_the_service_is() {
    let strict = Strict::new(1);
    let (mut service, _) = layered(&strict, Limit::per_second(1).burst(1), 10 * SECOND);
    let mut other = strict.clone();
    assert_eq!(other.poll_ready(&mut Context::from_waker(Waker::noop())), READY);
    assert_eq!(ready(&mut service), Poll::Pending);
    drop(other);
    assert_eq!(ready(&mut service), READY);
    strict.places.lock().unwrap().fails = true;
    assert_eq!(ready(&mut service.clone()), Poll::Ready(Err("it cannot be ready")));
}

#[test]
fn a_request_that_passes_at_once_uses_the_readiness_that_was_asked_for() {
    let strict = Strict::new(1);
    let (mut service, _) = layered(&strict, Limit::per_second(10).burst(10), SECOND);
    for call in 1..=5 {
        assert_eq!(ready(&mut service), READY);
        assert_eq!(Task::new([service.call(of("ana"))]).run().len(), 1);
        let places = strict.places.lock().unwrap();
        assert_eq!((places.calls, places.polls, places.free), (call, call, 1));
    }
}

#[test]
fn a_refused_request_asks_nothing_of_the_service() {
    let strict = Strict::new(1);
    let (mut service, _) = layered(&strict, Limit::per_hour(1), std::time::Duration::ZERO);
    for _ in 0..3 {
        assert_eq!(ready(&mut service), READY);
        assert_eq!(Task::new([service.call(of("ana"))]).run().len(), 1);
    }
    assert_eq!(strict.places.lock().unwrap().calls, 1);
}

/// Sends two requests through a service with one slot; returns the results, and the free slots while it is kept.
fn free_after_two<L>(layer: &L) -> (Vec<bool>, usize)
where
    L: tower_layer::Layer<Strict>,
    L::Service: Service<Request<()>, Error = &'static str>,
{
    let strict = Strict::new(1);
    let mut service = layer.layer(strict.clone());
    let mut over = Vec::new();
    for _ in 0..2 {
        assert_eq!(ready(&mut service), READY);
        over.push(Task::new([service.call(of("ana"))]).run().len() == 1);
    }
    let free = strict.places.lock().unwrap().free;
    (over, free)
}

#[test]
fn a_refused_request_leaves_the_readiness_that_was_asked_for_to_others() {
    let answered = (vec![true, true], 1);
    assert_eq!(free_after_two(&RateLimitLayer::new(Limit::per_hour(1), key::everyone())), answered);

    let places = tidegate::ConcurrencyLimiter::at_most(1);
    let held = places.admit(tidegate::ClassId::FIRST).unwrap();
    assert_eq!(free_after_two(&tidegate_tower::ConcurrencyLimitLayer::new(places)), answered);
    drop(held);

    let guard = tidegate::CircuitBreaker::builder()
        .at_least(1)
        .percent(1)
        .clock(Arc::new(ManualClock::new()))
        .build();
    while let Ok(passage) = guard.admit() {
        passage.done(tidegate::Outcome::Failed);
    }
    assert_eq!(free_after_two(&tidegate_tower::CircuitBreakerLayer::new(guard)), answered);
}

#[test]
fn a_waiter_receives_the_error_of_a_service_that_cannot_be_ready() {
    let strict = Strict::new(1);
    let (mut service, clock) = layered(&strict, Limit::per_second(1).burst(1), 10 * SECOND);
    assert_eq!(ready(&mut service), READY);
    assert_eq!(Task::new([service.call(of("ana"))]).run().len(), 1);
    assert_eq!(ready(&mut service), READY);
    let mut waiting = Task::new([service.call(of("ana"))]);
    assert!(waiting.run().is_empty());
    strict.places.lock().unwrap().fails = true;
    clock.advance(SECOND);
    assert_eq!(waiting.run()[0].1.as_ref().unwrap_err(), &"it cannot be ready");
}

#[test]
fn an_error_of_the_service_goes_on_as_it_is() {
    static SETTLED: AtomicUsize = AtomicUsize::new(0);
    let strict = Strict::new(1);
    let layer = RateLimitLayer::new(Limit::per_hour(9), key::everyone()).after(|response| {
        assert_eq!(response.status(), 499, "there is no response");
        SETTLED.fetch_add(1, Ordering::SeqCst);
        tidegate_tower::Settle::Refund
    });
    let mut service = layer.layer(strict);
    assert_eq!(ready(&mut service), READY);
    let failing = Request::builder().header("x-fails", "1").body(()).unwrap();
    let over = Task::new([service.call(failing)]).run();
    assert_eq!(over[0].1.as_ref().unwrap_err(), &"it failed");
    drop(over);
    assert_eq!(SETTLED.load(Ordering::SeqCst), 1);
}
