//! Concurrency limits, queues, classes and overload, as clients see them.

use std::time::Duration;

use tidegate::{AdaptiveLimit, Class, ConcurrencyLimiter, ManualClock, SECOND};
use tidegate_tower::ConcurrencyLimitLayer;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_than_so_many_are_in_the_service_and_the_rest_is_refused() {
    let (work, places) = (Work::default(), ConcurrencyLimiter::at_most(5));
    let server = Server::start(work.router().layer(ConcurrencyLimitLayer::new(places.clone()))).await;
    let first: Vec<_> = (0..5).map(|_| send(&server, "/first")).collect();
    until(|| places.in_flight() == 5).await;
    for _ in 0..50 {
        assert_eq!(send(&server, "/more").await.unwrap(), 503);
    }
    work.finish(5);
    for call in first {
        assert_eq!(call.await.unwrap(), 200);
    }
    until(|| places.in_flight() == 0).await;
    assert_eq!((work.most_busy(), work.came().len()), (5, 5));
}

#[tokio::test]
async fn a_refusal_says_that_capacity_is_reduced_and_when_to_come_back() {
    let (work, places) = (Work::default(), ConcurrencyLimiter::at_most(1));
    let server = Server::start(work.router().layer(ConcurrencyLimitLayer::new(places.clone()))).await;
    let first = send(&server, "/first");
    until(|| places.in_flight() == 1).await;
    let refused = server.connect().await.get("/more").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    let problem: serde_json::Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    work.finish(1);
    assert_eq!(first.await.unwrap(), 200);
}

#[tokio::test]
async fn critical_calls_pass_while_bulk_is_refused() {
    let work = Work::default();
    let places = ConcurrencyLimiter::builder(4)
        .classes([Class::new("critical").share(50), Class::new("bulk")])
        .build();
    let [critical, bulk] = places.class_ids();
    let layer = ConcurrencyLimitLayer::new(places.clone())
        .class(move |head| if head.path().starts_with("/critical") { critical } else { bulk });
    let server = Server::start(work.router().layer(layer)).await;
    let mut calls: Vec<_> = (0..2).map(|_| send(&server, "/bulk")).collect();
    until(|| places.in_flight() == 2).await;
    for _ in 0..10 {
        assert_eq!(send(&server, "/bulk").await.unwrap(), 503);
    }
    calls.extend((0..2).map(|_| send(&server, "/critical")));
    until(|| places.in_flight() == 4).await;
    assert_eq!(send(&server, "/critical").await.unwrap(), 503);
    work.finish(4);
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
}

/// Takes the only permit and then fills the queue, one request after the other.
async fn line_up(server: &Server, places: &ConcurrencyLimiter, names: &[&str]) -> Vec<JoinHandle<u16>> {
    let mut calls = vec![send(server, "/first")];
    until(|| places.in_flight() == 1).await;
    for name in names {
        let waiting = places.waiting();
        calls.push(send(server, name));
        until(|| places.waiting() == waiting + 1).await;
    }
    calls
}

#[tokio::test]
async fn calls_that_wait_are_served_in_order() {
    let (work, clock) = (Work::default(), Arc::new(ManualClock::new()));
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock).build();
    let server =
        Server::start(work.router().layer(ConcurrencyLimitLayer::new(places.clone()).wait(60 * SECOND)))
            .await;
    let calls = line_up(&server, &places, &["/a", "/b", "/c"]).await;
    for call in calls {
        work.finish(1);
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!(work.came(), ["/first", "/a", "/b", "/c"]);
    assert_eq!(work.most_busy(), 1);
}

#[tokio::test]
async fn under_overload_the_newest_is_served_first_and_the_oldest_makes_room() {
    let (work, clock) = (Work::default(), Arc::new(ManualClock::new()));
    let places =
        ConcurrencyLimiter::builder(1).max_waiters(3).newest_first_after(SECOND).clock(clock.clone()).build();
    let server =
        Server::start(work.router().layer(ConcurrencyLimitLayer::new(places.clone()).wait(60 * SECOND)))
            .await;
    let mut calls = line_up(&server, &places, &["/a", "/b", "/c"]).await;
    assert_eq!(send(&server, "/too-many").await.unwrap(), 503, "no overload yet: the line is full");
    clock.advance(2 * SECOND);

    // The queue has been non-empty for longer than its threshold: a new request pushes out the oldest waiter.
    let newest = send(&server, "/newest");
    let oldest = calls.remove(1);
    assert_eq!(oldest.await.unwrap(), 503);
    until(|| places.waiting() == 3).await;
    let order = [calls.remove(0), newest, calls.remove(1), calls.remove(0)];
    for call in order {
        work.finish(1);
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!(work.came(), ["/first", "/newest", "/c", "/b"]);
}

#[tokio::test]
async fn a_client_that_goes_away_gives_its_place_or_its_turn_back() {
    let (work, clock) = (Work::default(), Arc::new(ManualClock::new()));
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock).build();
    let server =
        Server::start(work.router().layer(ConcurrencyLimitLayer::new(places.clone()).wait(60 * SECOND)))
            .await;
    let mut calls = line_up(&server, &places, &["/a", "/b"]).await;
    calls.remove(1).abort();
    until(|| places.waiting() == 1).await;
    calls.remove(0).abort();
    until(|| work.came() == ["/first", "/b"]).await;
    work.finish(1);
    assert_eq!(calls.remove(0).await.unwrap(), 200);
    until(|| places.in_flight() == 0).await;
}

#[tokio::test]
async fn a_request_that_waits_too_long_is_denied() {
    let (work, clock) = (Work::default(), Arc::new(ManualClock::new()));
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let server =
        Server::start(work.router().layer(ConcurrencyLimitLayer::new(places.clone()).wait(SECOND))).await;
    let mut calls = line_up(&server, &places, &["/a"]).await;
    clock.advance(SECOND);
    assert_eq!(calls.remove(1).await.unwrap(), 503);
    work.finish(1);
    assert_eq!(calls.remove(0).await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_adapt_shrink_when_the_service_says_that_it_is_too_much() {
    let overloaded = Router::new().fallback(|| async { http::StatusCode::SERVICE_UNAVAILABLE });
    let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(1..=100).starting_at(100))
        .max_waiters(1000)
        .build();
    let layer = ConcurrencyLimitLayer::new(places.clone()).wait(Duration::from_secs(60));
    let server = Server::start(overloaded.layer(layer)).await;
    let mut client = server.connect().await;
    let mut calls = 0;
    while places.limit() > 50 {
        client.get("/").await;
        calls += 1;
        assert!(calls < 100_000, "still {} places", places.limit());
    }
}
