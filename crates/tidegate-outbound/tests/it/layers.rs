//! A circuit breaker and [`OutboundLimitLayer`] around one client, in both orders.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tidegate::{AdaptiveLimit, BreakerState, CircuitBreaker, ConcurrencyLimiter, ManualClock};
use tidegate_outbound::{OutboundLimitLayer, Throttled};
use tidegate_tower::{CircuitBreakerLayer, ConcurrencyLimitLayer};
use tower::layer::Layer;
use tower::{Service, ServiceExt, service_fn};

fn request() -> Request<()> {
    Request::get("http://a/").body(()).expect("a request")
}

fn response(status: StatusCode) -> Response<String> {
    Response::builder().status(status).body(String::new()).expect("a response")
}

/// Replies like a server that asks for a hold.
async fn asks_to_wait(_: Request<()>) -> Result<Response<String>, Infallible> {
    let mut response = response(StatusCode::TOO_MANY_REQUESTS);
    response.headers_mut().insert("retry-after", "30".parse().expect("a value"));
    Ok(response)
}

#[tokio::test]
async fn a_call_that_outgoing_holds_back_says_nothing_to_a_guard() {
    let guard =
        CircuitBreaker::builder().clock(Arc::new(ManualClock::new())).at_least(10).percent(30).build();
    let held_back = OutboundLimitLayer::new().max_wait(Duration::ZERO).layer(service_fn(asks_to_wait));
    let mut client = CircuitBreakerLayer::new(guard.clone()).layer(held_back);
    assert!(client.ready().await.unwrap().call(request()).await.is_ok());
    for _ in 0..30 {
        let error = client.ready().await.unwrap().call(request()).await.unwrap_err();
        assert!(error.is::<Throttled>(), "{error}");
    }
    assert_eq!(guard.state(), BreakerState::Clear);
}

#[tokio::test]
async fn nor_to_places_that_adapt() {
    let places = ConcurrencyLimiter::adaptive(AdaptiveLimit::aimd(1..=64).starting_at(32));
    let held_back = OutboundLimitLayer::new().max_wait(Duration::ZERO).layer(service_fn(asks_to_wait));
    let mut client = ConcurrencyLimitLayer::new(places.clone()).layer(held_back);
    assert!(client.ready().await.unwrap().call(request()).await.is_ok());
    for _ in 0..200 {
        assert!(client.ready().await.unwrap().call(request()).await.unwrap_err().is::<Throttled>());
    }
    assert_eq!(places.limit(), 32);
}

#[tokio::test]
async fn what_a_guard_refuses_is_not_the_word_of_the_server() {
    let guard =
        CircuitBreaker::builder().clock(Arc::new(ManualClock::new())).at_least(10).percent(30).build();
    let broken = async |_: Request<()>| Ok::<_, Infallible>(response(StatusCode::INTERNAL_SERVER_ERROR));
    let guarded = CircuitBreakerLayer::new(guard.clone()).layer(service_fn(broken));
    let mut client = OutboundLimitLayer::new().max_wait(Duration::ZERO).layer(guarded);
    let mut statuses = Vec::new();
    for _ in 0..100 {
        let answer = client.ready().await.unwrap().call(request()).await;
        statuses.push(answer.expect("no server asked for a hold").status().as_u16());
    }
    assert!(matches!(guard.state(), BreakerState::Limiting { .. }), "{:?}", guard.state());
    assert!(statuses.contains(&503) && statuses.contains(&500));
}
