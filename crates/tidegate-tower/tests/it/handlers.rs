//! Handlers of axum that are limited inside of the service, and reply with [`DeniedResponse`].

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use http::{Response, StatusCode};
use tidegate::{CircuitBreaker, ClassId, ConcurrencyLimiter, Denied, Limit, Limiter, Outcome};
use tidegate_macros::rate_limit;
use tidegate_tower::{CircuitBreakerLayer, DeniedResponse, Dialect, ResponseHead, outcome_of};

use crate::limit::{Server, field};

#[rate_limit("5/m", key = user)]
async fn handler(Path(user): Path<String>) -> Result<String, DeniedResponse> {
    Ok(user)
}

fn denied(limit: Limit) -> Denied {
    let limiter = Limiter::new(limit);
    (0..).find_map(|_| limiter.admit("ana").into_result().err()).expect("it denies at some time")
}

fn response(denied: impl Into<DeniedResponse>) -> Response<bytes::Bytes> {
    Response::from(denied.into())
}

fn problem(response: &Response<bytes::Bytes>) -> serde_json::Value {
    assert_eq!(field(response, "content-type"), Some("application/problem+json"));
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn a_limited_handler_replies_with_429_and_the_time_to_the_next_try() {
    let server = Server::start(Router::new().route("/{user}", get(handler))).await;
    let mut client = server.connect().await;
    for _ in 0..5 {
        assert_eq!(client.get("/ana").await.status(), StatusCode::OK);
    }
    let refused = client.get("/ana").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&refused, "retry-after"), Some("12"));
    let document = problem(&refused);
    assert_eq!(document["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&document["status"], document.get("violated-policies")), (&429.into(), None));
    assert_eq!(client.get("/bob").await.status(), StatusCode::OK, "each key has its own quota");
}

#[test]
fn the_fields_of_a_limit_are_sent_if_it_is_known() {
    let hourly = Limit::per_hour(1);
    let plain = response(denied(hourly));
    assert_eq!((field(&plain, "ratelimit"), field(&plain, "retry-after")), (None, Some("3600")));
    let named = response(DeniedResponse::from(denied(hourly)).by("exports", &hourly));
    assert_eq!(field(&named, "ratelimit-policy"), Some("\"exports\";q=1;w=3600"));
    assert_eq!(field(&named, "ratelimit"), Some("\"exports\";r=0;t=3600"));
    assert_eq!(named.headers().get_all("retry-after").iter().count(), 1);
    assert_eq!(problem(&named)["violated-policies"], serde_json::json!(["exports"]));
    let older = DeniedResponse::from(denied(hourly)).by("exports", &hourly).fields(Dialect::Draft03);
    assert_eq!(field(&response(older), "ratelimit-remaining"), Some("0"));
}

#[test]
fn a_cost_beyond_the_limit_has_no_time_to_the_next_try() {
    let limiter = Limiter::new(Limit::per_hour(2));
    let denied = limiter.admit(tidegate::ask("ana").cost(3)).into_result().unwrap_err();
    let refused = DeniedResponse::from(denied);
    assert_eq!((refused.status(), refused.retry_after()), (StatusCode::TOO_MANY_REQUESTS, None));
    let refused = response(refused);
    assert_eq!(field(&refused, "retry-after"), None);
    assert!(problem(&refused)["detail"].as_str().unwrap().contains("never"));
}

#[test]
fn a_lack_of_capacity_is_unavailable_and_a_full_store_is_not() {
    let limiter = ConcurrencyLimiter::at_most(1);
    let _permit = limiter.admit(ClassId::FIRST).unwrap();
    let refused = response(limiter.admit(ClassId::FIRST).unwrap_err());
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(field(&refused, "retry-after").is_some());

    let limiter = Limiter::on(&tidegate::Map::new().max_keys(1), "", Limit::per_hour(5));
    assert!(limiter.admit("ana").is_allowed());
    let full = limiter.admit("bob").into_result().unwrap_err();
    assert_eq!(response(full).status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn outer_layers_do_not_count_the_denial_as_an_outcome() {
    let refused = response(denied(Limit::per_hour(1)));
    assert_eq!(outcome_of(ResponseHead::of(&refused)), Outcome::Ignored);
    let limiter = ConcurrencyLimiter::at_most(1);
    let _permit = limiter.admit(ClassId::FIRST).unwrap();
    let refused = response(limiter.admit(ClassId::FIRST).unwrap_err());
    assert_eq!(outcome_of(ResponseHead::of(&refused)), Outcome::Ignored);
}

/// The body of a denial of a handler is a body of axum, so layers outside of it accept it.
#[tokio::test]
async fn a_limited_handler_may_be_inside_of_layers() {
    #[rate_limit("1/h")]
    async fn once() -> Result<&'static str, DeniedResponse> {
        Ok("once")
    }
    let layer = CircuitBreakerLayer::new(CircuitBreaker::new());
    let server = Server::start(Router::new().route("/", get(once)).layer(layer)).await;
    let mut client = server.connect().await;
    assert_eq!(client.get("/").await.status(), StatusCode::OK);
    assert_eq!(client.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn a_denial_is_an_error_with_its_reason() {
    let refused = DeniedResponse::from(denied(Limit::per_hour(1)));
    let error: Box<dyn std::error::Error> = refused.clone().into();
    assert_eq!(error.to_string(), refused.denied().to_string());
}
