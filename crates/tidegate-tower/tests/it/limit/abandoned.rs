//! Requests without a response, and their corrections.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tidegate::{Limit, Limiter, ManualClock, SECOND, Zone};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::{RateLimitLayer, Settle, key};
use tower::Service;
use tower_layer::Layer as _;

/// A service that ends its calls as a header field specifies.
#[derive(Clone)]
struct Scripted;

struct Playing(String);

impl Service<Request<()>> for Scripted {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Playing;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Playing {
        let ending = request.headers()["x-ending"].to_str().unwrap().to_owned();
        assert_ne!(ending, "panic in the call", "as it was asked for");
        Playing(ending)
    }
}

impl Future for Playing {
    type Output = Result<Response<Full<Bytes>>, &'static str>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match &*self.0 {
            "answer" => Poll::Ready(Ok(Response::new(Full::default()))),
            "costly answer" => {
                Poll::Ready(Ok(Response::builder().header("x-cost", "7").body(Full::default()).unwrap()))
            }
            "error" => Poll::Ready(Err("it failed")),
            "panic" => panic!("as it was asked for"),
            _ => Poll::Pending,
        }
    }
}

/// Sends a request with this end.
fn end<S: Service<Request<()>>>(service: &mut S, ending: &str) {
    let request = Request::builder().header("x-ending", ending).header("x-user", "ana").body(()).unwrap();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mut future = Box::pin(service.call(request));
        if ending != "dropped before it is polled" {
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }));
}

const ABANDONED: [&str; 5] =
    ["error", "panic", "panic in the call", "hang up", "dropped before it is polled"];

/// Returns layers with 100 units an hour for each user, each with a function that returns the remaining quota.
fn ways() -> Vec<(RateLimitLayer, Box<dyn Fn() -> u64>)> {
    let clock = || Arc::new(ManualClock::new());
    let limit = Limit::per_hour(100);
    let limiter = Limiter::with_clock(limit, clock());
    let fixed = RateLimitLayer::with(limiter.clone(), key::header("x-user"));
    let policy = Policy::from_toml("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '100/h'").unwrap();
    let gate = Gate::new(policy, Zone::with_clock(1 << 16, clock())).expect("the store supports the policy");
    let rules = RateLimitLayer::rules(gate.clone()).attribute("user", key::header("x-user"));
    let left_by_rules = move || {
        let ana = tidegate_rules::Attributes::new().set("user", "ana");
        gate.explain(&ana).now().unwrap().rules[0].decision.unwrap().remaining()
    };
    vec![
        (fixed.cost(|_| 3), Box::new(move || limiter.peek("ana").remaining())),
        (rules.cost(|_| 3), Box::new(left_by_rules)),
    ]
}

#[test]
fn no_client_escapes_a_charge_by_disconnecting() {
    for ending in ABANDONED {
        for (layer, left) in ways() {
            let mut service = layer.after(|_| Settle::Charge(9)).layer(Scripted);
            end(&mut service, ending);
            assert_eq!(left(), 100 - 3 - 9, "{ending}");
            end(&mut service, "answer");
            assert_eq!(left(), 100 - 2 * (3 + 9), "{ending}");
        }
    }
}

#[test]
fn the_most_that_was_charged_so_far_is_charged_where_the_response_would_say_how_much() {
    for ending in ABANDONED {
        for (layer, left) in ways() {
            let by_field = layer.after(|response| match response.header("x-cost") {
                Some(cost) => Settle::Charge(cost.to_str().unwrap().parse().unwrap()),
                None => Settle::Refund,
            });
            let mut service = by_field.layer(Scripted);
            end(&mut service, ending);
            assert_eq!(left(), 97, "{ending}: nothing comes back, and no charge is known yet");
            end(&mut service, "costly answer");
            assert_eq!(left(), 97 - 10, "{ending}");
            end(&mut service, ending);
            assert_eq!(left(), 97 - 20, "{ending}");
            end(&mut service, "answer");
            assert_eq!(left(), 97 - 20, "{ending}");
        }
    }
}

#[test]
fn what_is_said_about_abandoned_requests_holds() {
    for (abandoned, cost) in
        [(Settle::Keep, 3), (Settle::Refund, 0), (Settle::RefundUnits(2), 1), (Settle::Charge(20), 23)]
    {
        for ending in ABANDONED {
            for (layer, left) in ways() {
                let layer = layer.after(|_| Settle::Charge(9)).abandoned(abandoned);
                end(&mut layer.layer(Scripted), ending);
                assert_eq!(left(), 100 - cost, "{abandoned:?} {ending}");
            }
            // Also if `after` is not set.
            for (layer, left) in ways() {
                let mut service = layer.abandoned(abandoned).layer(Scripted);
                end(&mut service, ending);
                assert_eq!(left(), 100 - cost, "{abandoned:?} {ending}");
                end(&mut service, "answer");
                assert_eq!(left(), 100 - cost - 3, "{abandoned:?} {ending}");
            }
        }
    }
}

#[test]
fn a_request_that_is_gone_before_it_was_served_is_not_charged() {
    let waiting = "[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '1/s queue 9 leaky-bucket'";
    for (abandoned, waits) in [(None, 2), (Some(Settle::Charge(5)), 2), (Some(Settle::Refund), 1)] {
        let clock = Arc::new(ManualClock::new());
        let gate = Gate::new(Policy::from_toml(waiting).unwrap(), Zone::with_clock(1 << 16, clock.clone()))
            .expect("the store supports the policy");
        let layer = RateLimitLayer::rules(gate.clone()).attribute("user", key::header("x-user"));
        let layer = layer.after(|_| Settle::Charge(4)).with_clock(clock);
        let mut service = abandoned.into_iter().fold(layer, RateLimitLayer::abandoned).layer(Scripted);
        let ana = tidegate_rules::Attributes::new().set("user", "ana");
        assert!(gate.admit(&ana).now().unwrap().is_allowed());
        end(&mut service, "hang up while it is delayed");
        let explained = gate.explain(&ana).now().unwrap();
        let delay = explained.rules[0].decision.unwrap().delay();
        assert_eq!(delay, Some(waits * SECOND), "{abandoned:?}");
    }
}

#[test]
fn a_function_that_panics_about_an_empty_response_ends_nothing() {
    for (layer, left) in ways() {
        let layer = layer.after(|response| match response.header("x-cost") {
            Some(_) => Settle::Charge(1),
            None => panic!("every response of ours says what it costs"),
        });
        let mut service = layer.layer(Scripted);
        for ending in ABANDONED {
            end(&mut service, ending);
        }
        assert_eq!(left(), 100 - 3 * ABANDONED.len() as u64);
    }
}
