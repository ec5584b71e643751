//! Corrections of the cost of a request by its response.

use std::sync::Arc;

use http::{Request, StatusCode};
use tidegate::{Limit, Limiter, ManualClock};
use tidegate_tower::{RateLimitLayer, Settle, key};

use super::{Counting, field, now};

fn with_status(status: &str) -> Request<()> {
    Request::builder().uri("/x").header("x-status", status).body(()).unwrap()
}

/// Returns a layer under which 404 is free, an error costs five more, and a redirection refunds two.
fn settled(layer: RateLimitLayer) -> RateLimitLayer {
    layer.cost(|_| 3).after(|response| match response.status().as_u16() {
        404 => Settle::Refund,
        500 => Settle::Charge(5),
        302 => Settle::RefundUnits(2),
        _ => Settle::Keep,
    })
}

#[test]
fn the_response_says_what_stays_spent_and_the_fields_are_true() {
    let limiter = Limiter::with_clock(Limit::per_hour(100), Arc::new(ManualClock::new()));
    let keyed = settled(RateLimitLayer::with(limiter.clone(), key::header("x-status")));
    let mut service = Counting::default().behind(&keyed);
    for (status, left) in [("200", 97), ("404", 100), ("500", 92), ("302", 99)] {
        let response = now(&mut service, with_status(status));
        assert_eq!(response.status().as_str(), status);
        assert_eq!(limiter.peek(status).remaining(), left, "{status}");
        assert!(field(&response, "ratelimit").unwrap().contains(&format!("r={left};")), "{response:?}");
    }
}

#[test]
fn so_does_that_of_everyone_together_and_of_a_limit_that_comes_with_the_request() {
    let layers = [
        settled(RateLimitLayer::new(Limit::per_hour(100), key::everyone())),
        settled(RateLimitLayer::each(key::everyone(), |_| Limit::per_hour(100))),
    ];
    for layer in layers {
        let mut service = Counting::default().behind(&layer);
        for (status, left) in [("200", 97), ("404", 97), ("500", 89), ("302", 88), ("200", 85)] {
            let response = now(&mut service, with_status(status));
            assert!(field(&response, "ratelimit").unwrap().contains(&format!("r={left};")), "{response:?}");
        }
    }
}

#[test]
fn a_charge_may_go_below_empty_and_the_next_one_is_refused() {
    let limiter = Limiter::with_clock(Limit::per_hour(10), Arc::new(ManualClock::new()));
    let layer = RateLimitLayer::with(limiter, key::everyone()).after(|_| Settle::Charge(12));
    let mut service = Counting::default().behind(&layer);
    assert_eq!(now(&mut service, with_status("200")).status(), StatusCode::OK);
    let refused = now(&mut service, with_status("200"));
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&refused, "retry-after"), Some("1440"), "three below empty, and one");
}

#[test]
fn a_response_of_the_service_does_not_say_when_to_try_again_however_much_is_charged() {
    let layer = RateLimitLayer::new(Limit::per_hour(10), key::everyone()).after(|_| Settle::Charge(12));
    let response = now(&mut Counting::default().behind(&layer), with_status("200"));
    assert_eq!((response.status(), field(&response, "retry-after")), (StatusCode::OK, None));
    assert!(field(&response, "ratelimit").unwrap().contains("r=0;"), "{response:?}");
}

#[test]
fn at_most_what_a_request_weighed_comes_back() {
    let limiter = Limiter::with_clock(Limit::per_hour(100), Arc::new(ManualClock::new()));
    let layers = [
        RateLimitLayer::with(limiter, key::everyone()),
        RateLimitLayer::new(Limit::per_hour(100), key::everyone()),
        RateLimitLayer::each(key::header("x-none"), |_| Limit::per_hour(100)),
    ];
    for layer in layers {
        let layer = layer.cost(|_| 3).after(|response| match response.status().as_u16() {
            302 => Settle::RefundUnits(50),
            _ => Settle::Keep,
        });
        let mut service = Counting::default().behind(&layer);
        for (status, left) in [("200", 97), ("200", 94), ("302", 94), ("302", 94)] {
            let response = now(&mut service, with_status(status));
            assert!(field(&response, "ratelimit").unwrap().contains(&format!("r={left};")), "{response:?}");
        }
    }
}
