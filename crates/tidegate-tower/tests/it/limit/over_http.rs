//! The layer in a real server, over real connections.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, OriginalUri};
use axum::routing::get;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::Empty;
use tidegate::{HOUR, Limit, Zone};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::{Dialect, RateLimitLayer, key};

use super::{Server, field, request};

fn peer() -> impl key::Extract {
    key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_1500_requests_over_64_connections_exactly_five_pass() {
    const REQUESTS: usize = 1500;
    const CONNECTIONS: usize = 64;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let router = Router::new()
        .route("/", get(move || async move { count.fetch_add(1, Ordering::SeqCst).to_string() }))
        .layer(RateLimitLayer::new(Limit::per_hour(5), peer()));
    let server = Arc::new(Server::start(router).await);

    let left = Arc::new(AtomicUsize::new(REQUESTS));
    let each = (0..CONNECTIONS).map(|_| {
        let (server, left) = (Arc::clone(&server), Arc::clone(&left));
        tokio::spawn(async move {
            let mut client = server.connect().await;
            let mut statuses = Vec::new();
            while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                let response = client.get("/").await;
                assert!(field(&response, "ratelimit").unwrap().starts_with("\"default\";r="));
                assert_eq!(field(&response, "ratelimit-policy"), Some("\"default\";q=5;w=3600"));
                if response.status() != StatusCode::OK {
                    assert!(field(&response, "retry-after").unwrap().parse::<u64>().unwrap() <= 720);
                }
                statuses.push(response.status());
            }
            statuses
        })
    });
    let mut statuses = Vec::new();
    for task in each.collect::<Vec<_>>() {
        statuses.extend(task.await.unwrap());
    }
    let of = |status| statuses.iter().filter(|of| **of == status).count();
    assert_eq!((of(StatusCode::OK), of(StatusCode::TOO_MANY_REQUESTS)), (5, REQUESTS - 5));
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn bodies_pass_as_they_are_streamed_or_not_and_head_has_none() {
    async fn streamed() -> Response<Body> {
        let mut response = Response::new(Body::new(Frames(["one", "two", "three"].into())));
        response.headers_mut().insert("x-own", "kept".parse().unwrap());
        response
    }
    let router = Router::new()
        .route("/streamed", get(streamed))
        .route("/fixed", get(|| async { "0123456789" }))
        .layer(RateLimitLayer::new(Limit::per_hour(100), peer()));
    let server = Server::start(router).await;
    let mut client = server.connect().await;

    let response = client.get("/streamed").await;
    assert_eq!(&response.body()[..], b"onetwothree");
    assert_eq!(
        (field(&response, "transfer-encoding"), field(&response, "x-own")),
        (Some("chunked"), Some("kept"))
    );
    let response = client.get("/fixed").await;
    assert_eq!((&response.body()[..], field(&response, "content-length")), (&b"0123456789"[..], Some("10")));
    let head =
        |path| Request::builder().method(Method::HEAD).uri(path).header("host", "x").body(Empty::new());
    let response = client.send(head("/fixed").unwrap()).await;
    assert_eq!((response.body().len(), field(&response, "content-length")), (0, Some("10")));
    assert!(field(&response, "ratelimit").is_some());
}

/// A nested router does not see the prefix of the path.
#[tokio::test]
async fn in_a_nested_router_rules_match_the_whole_path_if_the_attribute_is_set() {
    let rules = || {
        let policy = "[[rule]]\nname = 'api'\nwhen = { path = '/api/{*rest}' }\nlimit = '2/h'";
        RateLimitLayer::rules(
            Gate::new(Policy::from_toml(policy).unwrap(), Zone::new(1 << 16))
                .expect("the store supports the policy"),
        )
    };
    let whole_path = key::extension(|uri: &OriginalUri| uri.path().to_owned());
    let orders = || Router::new().route("/orders", get(|| async { "orders" }));
    for router in [
        Router::new().nest("/api", orders().layer(rules().attribute("path", whole_path))),
        Router::new().nest("/api", orders()).layer(rules()),
    ] {
        let server = Server::start(router).await;
        let mut client = server.connect().await;
        for status in [200, 200, 429, 429] {
            assert_eq!(client.get("/api/orders").await.status().as_u16(), status);
        }
    }
}

/// A body of several frames, whose length is not known in advance.
struct Frames(VecDeque<&'static str>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|text| Ok(Frame::data(Bytes::from(text)))))
    }
}

#[tokio::test]
async fn a_refusal_has_its_length_and_leaves_the_connection_open() {
    let router = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(RateLimitLayer::new(Limit::per_hour(1), peer()).named("hourly"));
    let server = Server::start(router).await;
    let mut client = server.connect().await;
    assert_eq!(client.get("/").await.status(), StatusCode::OK);
    for _ in 0..3 {
        let response = client.get("/").await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(field(&response, "content-type"), Some("application/problem+json"));
        let length = response.body().len().to_string();
        assert_eq!(field(&response, "content-length"), Some(&*length));
        let problem: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(problem["violated-policies"], serde_json::json!(["hourly"]));
        assert_eq!(problem["status"], 429);
        assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    }
    let mut head = request("/");
    *head.method_mut() = Method::HEAD;
    let response = client.send(head).await;
    assert_eq!((response.status(), response.body().len()), (StatusCode::TOO_MANY_REQUESTS, 0));
}

#[tokio::test]
async fn routes_with_the_same_layer_share_what_was_counted_and_clones_do() {
    let layer = RateLimitLayer::new(Limit::per_hour(2), peer()).fields(Dialect::None);
    let again = layer.clone();
    let router = Router::new()
        .route("/a", get(|| async { "a" }))
        .route("/b", get(|| async { "b" }))
        .layer(layer)
        .route("/free", get(|| async { "free" }))
        .merge(Router::new().route("/c", get(|| async { "c" })).layer(again));
    let server = Server::start(router).await;
    let (mut one, mut other) = (server.connect().await, server.connect().await);
    assert_eq!(one.get("/a").await.status(), StatusCode::OK);
    assert_eq!(other.get("/c").await.status(), StatusCode::OK);
    assert_eq!(one.get("/b").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(other.get("/c").await.status(), StatusCode::TOO_MANY_REQUESTS);
    let free = other.get("/free").await;
    assert_eq!((free.status(), field(&free, "ratelimit")), (StatusCode::OK, None));
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_gives_its_place_to_the_next() {
    let limiter = tidegate::Limiter::new(Limit::per_hour(1));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let router = Router::new()
        .route("/", get(move || async move { count.fetch_add(1, Ordering::SeqCst).to_string() }))
        .layer(RateLimitLayer::with(limiter.clone(), key::everyone()).wait(10 * HOUR));
    let server = Server::start(router).await;
    let mut client = server.connect().await;
    assert_eq!(client.get("/").await.status(), StatusCode::OK);

    let mut hasty = server.connect().await;
    let waiting = tokio::spawn(async move { hasty.get("/").await.status() });
    let mut patient = server.connect().await;
    until(|| wait_of(&limiter) > HOUR).await;
    let waits = tokio::spawn(async move { patient.get("/").await.status() });
    until(|| wait_of(&limiter) > 2 * HOUR).await;
    waiting.abort();
    until(|| wait_of(&limiter) <= 2 * HOUR).await;
    // The cost is refunded, and the remaining waiter is admitted.
    limiter.refund("");
    assert_eq!(waits.await.unwrap(), StatusCode::OK);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

fn wait_of(limiter: &tidegate::Limiter) -> std::time::Duration {
    limiter.peek("").retry_after().unwrap_or_default()
}

/// Polls until the condition is true.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
