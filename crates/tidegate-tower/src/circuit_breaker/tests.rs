//! The layer over services of the tests, with a manual clock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::Request;
use tidegate_core::{BreakerState, ManualClock, SECOND};
use tower_service::Service;

use super::*;
use crate::body::Answered;

/// A service that replies as the body of each request specifies: with a status, with an error, or not at all.
#[derive(Clone, Debug, Default)]
struct Echo;

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Status(u16),
    Grpc(&'static str),
    Error,
    /// A panic in the call itself.
    Panic,
    /// A panic while the call is awaited.
    PanicLater,
    Nothing,
}

impl Service<Request<Wanted>> for Echo {
    type Response = Response<()>;
    type Error = &'static str;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Wanted>) -> Answering {
        assert!(!matches!(request.body(), Wanted::Panic), "as it was asked for");
        Answering(*request.body())
    }
}

struct Answering(Wanted);

impl Future for Answering {
    type Output = Result<Response<()>, &'static str>;

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0 {
            Wanted::Status(status) => Poll::Ready(Ok(Response::builder().status(status).body(()).unwrap())),
            Wanted::Grpc(status) => {
                Poll::Ready(Ok(Response::builder().header("grpc-status", status).body(()).unwrap()))
            }
            Wanted::Error => Poll::Ready(Err("broken")),
            Wanted::Panic | Wanted::PanicLater => panic!("as it was asked for"),
            Wanted::Nothing => Poll::Pending,
        }
    }
}

struct Bench {
    clock: Arc<ManualClock>,
    guard: CircuitBreaker,
    service: CircuitBreakerService<Echo>,
}

impl Bench {
    fn new(layer: impl FnOnce(CircuitBreakerLayer) -> CircuitBreakerLayer) -> Bench {
        let clock = Arc::new(ManualClock::new());
        let guard = CircuitBreaker::builder()
            .window(10 * SECOND)
            .at_least(20)
            .percent(50)
            .clock(clock.clone())
            .build();
        let service = layer(CircuitBreakerLayer::new(guard.clone())).layer(Echo);
        Bench { clock, guard, service }
    }

    fn call_as(&mut self, kind: &str, wanted: Wanted) -> Poll<Result<Response<Answered<()>>, &'static str>> {
        let request = Request::get("/").header("content-type", kind).body(wanted).unwrap();
        let call = pin!(self.service.call(request));
        call.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn call(&mut self, wanted: Wanted) -> Poll<Result<Response<Answered<()>>, &'static str>> {
        self.call_as("text/plain", wanted)
    }

    /// Returns the state of the breaker after so many calls with this result, some of which it may have denied.
    fn after(&mut self, calls: u32, wanted: Wanted) -> BreakerState {
        for _ in 0..calls {
            let _ = catch_unwind(AssertUnwindSafe(|| self.call(wanted)));
        }
        self.guard.state()
    }

    /// Makes as many calls, and counts those that reached the service.
    fn passing(&mut self, calls: u32, wanted: Wanted) -> usize {
        let is_passed = |answer: Poll<Result<Response<Answered<()>>, _>>| match answer {
            Poll::Ready(Ok(response)) => !response.body().is_denial(),
            _ => true,
        };
        (0..calls).filter(|_| is_passed(self.call(wanted))).count()
    }
}

fn as_it_is(layer: CircuitBreakerLayer) -> CircuitBreakerLayer {
    layer
}

#[test]
fn failures_and_overload_count_and_everything_else_does_not() {
    let bad = [
        Wanted::Status(500),
        Wanted::Status(503),
        Wanted::Error,
        Wanted::Panic,
        Wanted::PanicLater,
        Wanted::Grpc("14"),
        Wanted::Grpc("13"),
    ];
    for wanted in bad {
        let state = Bench::new(as_it_is).after(20, wanted);
        assert!(matches!(state, BreakerState::Limiting { .. }), "{wanted:?}: {state:?}");
    }
    let good = [
        Wanted::Status(200),
        Wanted::Status(404),
        Wanted::Status(408),
        Wanted::Status(429),
        Wanted::Nothing,
        Wanted::Grpc("5"),
        Wanted::Grpc("1"),
        Wanted::Grpc("8"),
    ];
    for wanted in good {
        assert_eq!(Bench::new(as_it_is).after(200, wanted), BreakerState::Clear, "{wanted:?}");
    }
}

#[test]
fn a_call_that_is_given_up_counts_only_after_the_time_that_was_said() {
    let given_up = |layer: fn(CircuitBreakerLayer) -> CircuitBreakerLayer| {
        let mut bench = Bench::new(layer);
        let calls: Vec<_> = (0..20).map(|_| bench.service.call(Request::new(Wanted::Nothing))).collect();
        bench.clock.advance(SECOND);
        drop(calls);
        bench.guard.state()
    };
    assert_eq!(given_up(as_it_is), BreakerState::Clear);
    assert_eq!(given_up(|layer| layer.overloaded_after(2 * SECOND)), BreakerState::Clear);
    assert_ne!(given_up(|layer| layer.overloaded_after(SECOND)), BreakerState::Clear);
}

#[test]
fn what_another_layer_of_ours_refused_says_nothing_about_the_service() {
    let guard =
        CircuitBreaker::builder().at_least(20).percent(50).clock(Arc::new(ManualClock::new())).build();
    let refuses = crate::RateLimitLayer::new(tidegate_core::Limit::per_hour(1), crate::key::everyone());
    let answers_itself = refuses.clone().otherwise(|_| {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        response
    });
    for inner in [refuses, answers_itself] {
        let mut service = CircuitBreakerLayer::new(guard.clone()).layer(inner.layer(Echo));
        for _ in 0..200 {
            let call = pin!(service.call(Request::new(Wanted::Status(200))));
            assert!(call.poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    }
    assert_eq!(guard.state(), BreakerState::Clear);
}

/// A layer that catches panics drops the call after the panic.
#[test]
fn a_panic_counts_also_where_it_is_caught_before_the_call_is_dropped() {
    let mut bench = Bench::new(as_it_is);
    for _ in 0..20 {
        let mut call = Box::pin(bench.service.call(Request::new(Wanted::PanicLater)));
        let poll = || call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
        drop(call);
    }
    assert!(matches!(bench.guard.state(), BreakerState::Limiting { .. }));
}

#[test]
fn by_too_few_calls_it_never_judges() {
    assert_eq!(Bench::new(as_it_is).after(19, Wanted::Status(500)), BreakerState::Clear);
}

#[test]
fn only_a_share_reaches_a_service_that_fails() {
    let mut bench = Bench::new(as_it_is);
    bench.after(20, Wanted::Status(500));
    assert_eq!(bench.passing(100, Wanted::Nothing), 50);
}

#[test]
fn a_denied_call_is_sent_the_time_to_the_next_try() {
    let mut bench = Bench::new(as_it_is);
    bench.after(20, Wanted::Status(500));
    let mut refusals = 0;
    for _ in 0..10 {
        if let Poll::Ready(Ok(response)) = bench.call(Wanted::Nothing) {
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert!(response.headers().contains_key("retry-after"));
            refusals += 1;
        }
        if let Poll::Ready(Ok(response)) = bench.call_as("application/grpc", Wanted::Nothing) {
            assert_eq!(
                (response.status().as_u16(), &response.headers()["grpc-status"]),
                (200, &"14".parse().unwrap())
            );
            assert!(response.headers().contains_key("grpc-retry-pushback-ms"));
            refusals += 1;
        }
    }
    assert_eq!(refusals, 10);
}

#[test]
fn a_service_that_has_recovered_is_asked_as_before() {
    let mut bench = Bench::new(as_it_is);
    bench.after(20, Wanted::Status(503));
    for _ in 0..100 {
        bench.clock.advance(SECOND);
        bench.after(20, Wanted::Status(200));
    }
    assert_eq!(bench.guard.state(), BreakerState::Clear);
    assert_eq!(bench.passing(100, Wanted::Status(200)), 100);
}

#[test]
fn answers_may_be_judged_in_another_way() {
    let judge = |layer: CircuitBreakerLayer| {
        layer.outcome(|head| match head.status().as_u16() {
            404 => Outcome::Failed,
            _ => Outcome::Done,
        })
    };
    assert_eq!(Bench::new(judge).after(200, Wanted::Status(500)), BreakerState::Clear);
    assert_ne!(Bench::new(judge).after(20, Wanted::Status(404)), BreakerState::Clear);
}

#[test]
fn a_denied_call_may_have_another_response() {
    let mut bench =
        Bench::new(|layer| layer.otherwise(|_| Response::new(Bytes::from_static(b"a page from yesterday"))));
    bench.after(20, Wanted::Status(500));
    let answers: Vec<_> = (0..4).map(|_| bench.call(Wanted::Nothing)).collect();
    let is_ours = |answer: &Poll<Result<Response<Answered<()>>, _>>| matches!(answer, Poll::Ready(Ok(response)) if response.status() == 200 && response.body().is_denial());
    assert_eq!(answers.iter().filter(|answer| is_ours(answer)).count(), 2);
}

#[test]
fn clones_share_the_guard() {
    let mut bench = Bench::new(as_it_is);
    let mut clone =
        Bench { clock: bench.clock.clone(), guard: bench.guard.clone(), service: bench.service.clone() };
    bench.after(20, Wanted::Status(500));
    assert_eq!(clone.passing(100, Wanted::Nothing), 50);
}
