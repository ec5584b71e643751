//! However a call ends, it keeps none of the readiness that was reserved for it. Each layer is tested around a service
//! with one slot: every other clone is ready as soon as the call is over or waits.

use std::cell::Cell;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tidegate::{CircuitBreaker, ClassId, ConcurrencyLimiter, Limit, ManualClock, SECOND, Zone};
use tidegate_outbound::{BoxError, OutboundLimitLayer};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::{CircuitBreakerLayer, ConcurrencyLimitLayer, RateLimitLayer, key};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Answered(u16),
    Failed,
    PanickedInCall,
    Panicked,
    /// The service never responds, and the caller gives up.
    GivenUp,
    /// The caller does not poll it.
    DroppedAtOnce,
}

const ENDINGS: [Ending; 7] = [
    Ending::Answered(200),
    Ending::Answered(503),
    Ending::Failed,
    Ending::PanickedInCall,
    Ending::Panicked,
    Ending::GivenUp,
    Ending::DroppedAtOnce,
];

/// A service that ends its calls as their requests specify, and records that it was called.
#[derive(Clone)]
struct Scripted(Rc<Cell<bool>>);

impl Service<Request<Ending>> for Scripted {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Playing;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Ending>) -> Playing {
        self.0.set(true);
        assert_ne!(*request.body(), Ending::PanickedInCall, "as it was asked for");
        Playing(*request.body())
    }
}

struct Playing(Ending);

impl Future for Playing {
    type Output = Result<Response<Full<Bytes>>, BoxError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0 {
            Ending::Answered(status) => {
                Poll::Ready(Ok(Response::builder().status(status).body(Full::default()).unwrap()))
            }
            Ending::Failed => Poll::Ready(Err("it failed".into())),
            Ending::Panicked | Ending::PanickedInCall => panic!("as it was asked for"),
            Ending::GivenUp | Ending::DroppedAtOnce => Poll::Pending,
        }
    }
}

type Narrow = ConcurrencyLimit<Scripted>;

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Calls a service with this end, and checks that all other clones are ready when it is over, or while it waits.
fn call<S>(service: &mut S, called: &Cell<bool>, ending: Ending, case: &str)
where
    S: Service<Request<Ending>> + Clone,
{
    let others_are_ready = |service: &S| service.clone().poll_ready(&mut context()).is_ready();
    assert!(service.poll_ready(&mut context()).is_ready(), "{case}: it is not ready itself");
    called.set(false);
    let request = Request::get("http://example.com/").body(ending).unwrap();
    let future = catch_unwind(AssertUnwindSafe(|| service.call(request)));
    let Ok(future) = future else {
        assert!(others_are_ready(service), "{case}: a panic in the call keeps readiness");
        return;
    };
    let mut future = Box::pin(future);
    if ending != Ending::DroppedAtOnce {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context())));
        let waits = matches!(polled, Ok(Poll::Pending)) && !called.get();
        assert!(!waits || others_are_ready(service), "{case}: it keeps readiness while it waits");
    }
    drop(future);
    assert!(others_are_ready(service), "{case}: it keeps readiness when it is gone");
}

/// Makes every sequence of three calls, each on a layer of its own.
fn check<L>(name: &str, layer: impl Fn() -> L)
where
    L: Layer<Narrow>,
    L::Service: Service<Request<Ending>> + Clone,
{
    for first in ENDINGS {
        for second in ENDINGS {
            for third in ENDINGS {
                let called = Rc::new(Cell::new(false));
                let mut service = layer().layer(ConcurrencyLimit::new(Scripted(Rc::clone(&called)), 1));
                for ending in [first, second, third] {
                    let case = format!("{name}: {first:?}, {second:?}, {third:?}, at {ending:?}");
                    call(&mut service, &called, ending, &case);
                }
            }
        }
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new())
}

fn one() -> Limit {
    "1/h burst 1".parse().unwrap()
}

fn rules() -> RateLimitLayer {
    let policy = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '1/h burst 1'").unwrap();
    RateLimitLayer::rules(
        Gate::new(policy, Zone::with_clock(1 << 16, clock())).expect("the store supports the policy"),
    )
}

#[test]
fn around_a_rate_limit() {
    check("one limit", || RateLimitLayer::new(one(), key::everyone()));
    check("with a line", || RateLimitLayer::new(one(), key::everyone()).wait(7200 * SECOND));
    check("with a key that comes later", || RateLimitLayer::new(one(), key::later(|_| ready("ana"))));
    check("with a key that never comes", || {
        RateLimitLayer::new(one(), key::later(|_| std::future::pending::<&str>()))
    });
    check("a limit of each request", || RateLimitLayer::each(key::everyone(), |_| one()));
    check("rules", rules);
    check("a place in flight", || RateLimitLayer::new("1/1h concurrency".parse().unwrap(), key::everyone()));
}

/// Returns a concurrency limiter whose only permit is held forever.
fn occupied(line: usize) -> ConcurrencyLimiter {
    let places = ConcurrencyLimiter::builder(1).max_waiters(line).build();
    std::mem::forget(places.admit(ClassId::FIRST).unwrap());
    places
}

#[test]
fn around_places_in_flight() {
    check("places", || ConcurrencyLimitLayer::new(ConcurrencyLimiter::at_most(1)));
    check("no place free", || ConcurrencyLimitLayer::new(occupied(0)));
    check("no place free, with a line", || ConcurrencyLimitLayer::new(occupied(1)).wait(SECOND));
}

#[test]
fn around_a_guard() {
    check("a guard", || {
        CircuitBreakerLayer::new(CircuitBreaker::builder().at_least(1).percent(1).clock(clock()).build())
    });
}

#[test]
fn around_calls_to_others() {
    let paced = || OutboundLimitLayer::new().pace(one()).with_clock(clock());
    check("without a pace", || OutboundLimitLayer::new().with_clock(clock()));
    check("with a line", paced);
    check("without max_wait", || paced().max_wait(SECOND));
    check("with a queue of no capacity", || paced().max_waiters(0));
    check("with a key that comes later", || paced().per(key::later(|_| ready("ana"))));
}
