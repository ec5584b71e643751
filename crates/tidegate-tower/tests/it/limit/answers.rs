//! Denials, in HTTP and in gRPC.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use tidegate::{Limit, Limiter, ManualClock};
use tidegate_tower::key::{self, Extract as _};
use tidegate_tower::{RateLimitLayer, Reason};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{Counting, Got, field, now, of};

fn problem(response: &Got) -> Value {
    assert_eq!(field(response, "content-type"), Some("application/problem+json"));
    serde_json::from_slice(response.body()).unwrap()
}

fn grpc() -> Request<()> {
    Request::post("/x").header("content-type", "application/grpc+proto").body(()).unwrap()
}

/// Returns a layer with one key for all requests and a clock that stands still.
fn still(limit: Limit) -> RateLimitLayer {
    RateLimitLayer::with(Limiter::with_clock(limit, Arc::new(ManualClock::new())), key::everyone())
}

/// Returns the status that tonic reads.
fn status(headers: &HeaderMap) -> tonic::Status {
    tonic::Status::from_header_map(headers).expect("it is one")
}

#[test]
fn a_refusal_is_a_problem_that_names_the_policy() {
    let mut service = Counting::default().behind(&still(Limit::per_hour(2)).named("api"));
    for _ in 0..2 {
        assert_eq!(now(&mut service, of("ana")).status(), StatusCode::OK);
    }
    let response = now(&mut service, of("ana"));
    let document = problem(&response);
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(document["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!((&document["status"], &document["title"]), (&429.into(), &"Quota exceeded".into()));
    assert_eq!(document["violated-policies"], serde_json::json!(["api"]));
    assert!(document["detail"].as_str().unwrap().contains("Retry-After"), "{document}");
    assert_eq!(field(&response, "retry-after"), Some("1800"));
}

#[test]
fn what_can_never_pass_has_no_time_to_try_again_and_says_why() {
    let layer = RateLimitLayer::new(Limit::per_hour(2), key::everyone()).cost(|_| 3);
    let mut service = Counting::default().behind(&layer);
    let response = now(&mut service, of("ana"));
    assert_eq!((response.status(), field(&response, "retry-after")), (StatusCode::TOO_MANY_REQUESTS, None));
    let document = problem(&response);
    assert!(document["detail"].as_str().unwrap().contains("at most 2"), "{document}");

    let refused = now(&mut service, grpc());
    let status = status(refused.headers());
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().is_none());
    assert_eq!(field(&refused, "grpc-retry-pushback-ms"), Some("-1"));
}

#[test]
fn a_call_of_grpc_is_refused_by_trailers_only() {
    let mut service = Counting::default().behind(&still(Limit::per_minute(7).burst(1)));
    assert_eq!(now(&mut service, grpc()).status(), StatusCode::OK);
    let refused = now(&mut service, grpc());
    assert_eq!((refused.status(), refused.body().len()), (StatusCode::OK, 0));
    assert_eq!(field(&refused, "content-type"), Some("application/grpc+proto"));
    let status = status(refused.headers());
    assert_eq!(status.code(), Code::ResourceExhausted);
    let delay = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert_eq!(delay, Duration::from_nanos(8_571_428_572), "a seventh of a minute, rounded up");
    assert_eq!(field(&refused, "grpc-retry-pushback-ms"), Some("8572"));
    assert_eq!(field(&refused, "retry-after"), Some("9"));
}

/// A cache may store a 200 that replies to a `GET`, whatever its trailers contain.
#[test]
fn what_only_looks_like_a_call_of_grpc_is_refused_by_its_status() {
    let mut service = Counting::default().behind(&still(Limit::per_hour(1)));
    let get = || Request::get("/x").header("content-type", "application/grpc").body(()).unwrap();
    assert_eq!(now(&mut service, get()).status(), StatusCode::OK);
    let refused = now(&mut service, get());
    assert_eq!((refused.status(), field(&refused, "grpc-status")), (StatusCode::TOO_MANY_REQUESTS, None));
    assert_eq!(problem(&refused)["status"], 429);
}

#[test]
fn requests_without_the_key_are_denied_exempt_or_counted_together() {
    let by = |extract: Box<dyn Fn() -> RateLimitLayer>| {
        let mut service = Counting::default().behind(&extract());
        let without_user = || Request::builder().uri("/x").body(()).unwrap();
        [now(&mut service, without_user()), now(&mut service, without_user()), now(&mut service, of("ana"))]
            .map(|response| (response.status().as_u16(), field(&response, "ratelimit").is_some()))
    };
    let limit = Limit::per_hour(1);
    let shared = by(Box::new(move || RateLimitLayer::new(limit, key::header("x-user"))));
    assert_eq!(shared, [(200, true), (429, true), (200, true)]);
    let skipped = by(Box::new(move || RateLimitLayer::new(limit, key::header("x-user").or_skip())));
    assert_eq!(skipped, [(200, false), (200, false), (200, true)]);
    let refused = by(Box::new(move || RateLimitLayer::new(limit, key::header("x-user").or_deny())));
    assert_eq!(refused, [(400, false), (400, false), (200, true)]);
    let tuple =
        by(Box::new(move || RateLimitLayer::new(limit, (key::path(), key::header("x-user").or_deny()))));
    assert_eq!(tuple, [(400, false), (400, false), (200, true)]);
}

#[test]
fn a_denial_for_a_missing_key_has_no_retry_after() {
    let layer = RateLimitLayer::new(Limit::per_hour(1), key::header("x-user").or_deny());
    let response = now(&mut Counting::default().behind(&layer), Request::builder().body(()).unwrap());
    let document = problem(&response);
    assert_eq!((&document["status"], &document["title"]), (&400.into(), &"Bad Request".into()));
    assert_eq!(field(&response, "retry-after"), None);
}

#[test]
fn an_answer_of_one_s_own_takes_the_place_of_ours_and_the_fields_are_added() {
    let layer = RateLimitLayer::new(Limit::per_hour(1), key::header("x-user").or_deny())
        .named("api")
        .otherwise(|refused| {
            let status = match refused.reason() {
                Reason::Quota => StatusCode::IM_A_TEAPOT,
                _ => refused.status(),
            };
            let text = format!(
                "{:?} of {:?} at {}",
                refused.policy(),
                refused.retry_after().is_some(),
                refused.head().path()
            );
            http::Response::builder().status(status).body(text.into()).unwrap()
        });
    let mut service = Counting::default().behind(&layer);
    assert_eq!(now(&mut service, of("ana")).status(), StatusCode::OK);
    let refused = now(&mut service, of("ana"));
    assert_eq!(refused.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(&refused.body()[..], b"Some(\"api\") of true at /x");
    assert!(field(&refused, "ratelimit").is_some() && field(&refused, "retry-after").is_some());
    let missing = now(&mut service, Request::builder().uri("/y").body(()).unwrap());
    assert_eq!(
        (missing.status(), &missing.body()[..]),
        (StatusCode::BAD_REQUEST, &b"None of false at /y"[..])
    );
}

#[test]
fn an_answer_of_one_s_own_that_says_when_to_try_again_is_left_as_it_is() {
    let layer = still(Limit::per_hour(1))
        .otherwise(|_| http::Response::builder().header("retry-after", "7").body("later".into()).unwrap());
    let mut service = Counting::default().behind(&layer);
    assert_eq!(field(&now(&mut service, of("ana")), "retry-after"), None);
    let refused = now(&mut service, of("ana"));
    assert_eq!(refused.headers().get_all("retry-after").iter().collect::<Vec<_>>(), ["7"]);
    assert!(field(&refused, "ratelimit").is_some());
}

/// A lock that is held while the program's function runs would deadlock here.
#[test]
fn an_answer_of_one_s_own_may_ask_the_same_layer_also_after_its_limit_was_replaced() {
    static LAYER: std::sync::OnceLock<RateLimitLayer> = std::sync::OnceLock::new();
    let limiter = Limiter::with_clock(Limit::per_hour(2), Arc::new(ManualClock::new()));
    limiter.set_limit(Limit::per_hour(1));
    let layer = RateLimitLayer::with(limiter, key::header("x-user")).otherwise(|refused| {
        let asks_for_another = refused.head().header("x-user").is_some_and(|user| user == "ana");
        let mut service = Counting::default().behind(LAYER.get().unwrap());
        let statuses = match asks_for_another {
            true => {
                [now(&mut service, of("bob")), now(&mut service, of("bob"))].map(|got| got.status().as_u16())
            }
            false => [0, 0],
        };
        http::Response::builder().status(refused.status()).body(format!("{statuses:?}").into()).unwrap()
    });
    let mut service = Counting::default().behind(LAYER.get_or_init(|| layer));
    assert_eq!(now(&mut service, of("ana")).status(), StatusCode::OK);
    assert_eq!(&now(&mut service, of("ana")).body()[..], b"[200, 429]");
}

#[test]
fn a_body_of_ours_may_be_empty_by_default() {
    let body = tidegate_tower::Answered::<axum::body::Body>::default();
    assert!(body.is_denial() && http_body::Body::is_end_stream(&body));
}

#[test]
fn a_store_without_room_is_a_denial_and_never_an_error_of_the_server() {
    let map = tidegate::Map::new().max_keys(1);
    let limiter = Limiter::on(&map, "", Limit::per_hour(5));
    let mut service = Counting::default().behind(&RateLimitLayer::with(limiter, key::header("x-user")));
    assert_eq!(now(&mut service, of("ana")).status(), StatusCode::OK);
    let refused = now(&mut service, of("bob"));
    assert_eq!(
        (refused.status(), field(&refused, "retry-after")),
        (StatusCode::TOO_MANY_REQUESTS, Some("1"))
    );
    let document = problem(&refused);
    assert_eq!(
        document["type"],
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    );
    assert_eq!(document["status"], 429);
    assert_eq!(now(&mut service, of("ana")).status(), StatusCode::OK, "a known key is decided as ever");
}

#[test]
fn a_store_without_room_is_resource_exhausted_in_grpc_and_has_a_reason_of_its_own() {
    let limiter = || Limiter::on(&tidegate::Map::new().max_keys(1), "", Limit::per_hour(5));
    let mut service = Counting::default().behind(&RateLimitLayer::with(limiter(), key::header("x-user")));
    let call = |user: &'static str| {
        let mut request = grpc();
        request.headers_mut().insert("x-user", http::HeaderValue::from_static(user));
        request
    };
    assert_eq!(now(&mut service, call("ana")).status(), StatusCode::OK);
    let refused = now(&mut service, call("bob"));
    assert_eq!(status(refused.headers()).code(), Code::ResourceExhausted);
    assert_eq!(field(&refused, "grpc-retry-pushback-ms"), Some("1000"));

    let layer = RateLimitLayer::with(limiter(), key::header("x-user")).otherwise(|refused| {
        http::Response::new(format!("{:?} {:?}", refused.reason(), refused.retry_after()).into())
    });
    let mut service = Counting::default().behind(&layer);
    now(&mut service, of("ana"));
    assert_eq!(&now(&mut service, of("bob")).body()[..], b"StoreFull Some(1s)");
}
