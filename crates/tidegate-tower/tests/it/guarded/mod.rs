//! The circuit breaker around a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use http::StatusCode;
use tidegate::{AdaptiveLimit, BreakerState, CircuitBreaker, ConcurrencyLimiter, Limit, ManualClock, SECOND};
use tidegate_tower::{CircuitBreakerLayer, ConcurrencyLimitLayer, RateLimitLayer, key};

use crate::limit::{Client, Server};

/// A server that fails on command, and counts its requests.
#[derive(Clone, Default)]
struct Service {
    is_broken: Arc<AtomicBool>,
    seen: Arc<AtomicUsize>,
}

impl Service {
    async fn start(&self, guard: &CircuitBreaker) -> Server {
        let service = self.clone();
        let router = Router::new().fallback(move || async move {
            service.seen.fetch_add(1, Ordering::SeqCst);
            match service.is_broken.load(Ordering::SeqCst) {
                true => StatusCode::INTERNAL_SERVER_ERROR,
                false => StatusCode::OK,
            }
        });
        Server::start(router.layer(CircuitBreakerLayer::new(guard.clone()))).await
    }
}

async fn statuses(client: &mut Client, calls: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..calls {
        statuses.push(client.get("/").await.status().as_u16());
    }
    statuses
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|other| **other == status).count()
}

#[tokio::test]
async fn a_service_that_fails_is_asked_less_and_less_and_then_left_alone() {
    let (service, clock) = (Service::default(), Arc::new(ManualClock::new()));
    let guard = CircuitBreaker::builder().clock(clock.clone()).build();
    let server = service.start(&guard).await;
    let mut client = server.connect().await;
    service.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(statuses(&mut client, 20).await, [500; 20]);
    let half = statuses(&mut client, 100).await;
    assert_eq!((count(&half, 500), count(&half, 503)), (50, 50));
    assert_eq!(service.seen.load(Ordering::SeqCst), 70);

    for _ in 0..60 {
        clock.advance(SECOND);
        statuses(&mut client, 40).await;
        if matches!(guard.state(), BreakerState::Shut { .. }) {
            break;
        }
    }
    assert!(matches!(guard.state(), BreakerState::Shut { .. }), "{:?}", guard.state());
    let seen = service.seen.load(Ordering::SeqCst);
    let refused = client.get("/").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(service.seen.load(Ordering::SeqCst), seen, "nothing reaches it");
}

#[tokio::test]
async fn one_who_is_over_its_limit_takes_nothing_from_the_others_whatever_the_order_of_layers() {
    let guard = CircuitBreaker::builder().clock(Arc::new(ManualClock::new())).build();
    let places = ConcurrencyLimiter::adaptive(AdaptiveLimit::aimd(1..=100).starting_at(50));
    let limits = RateLimitLayer::new(Limit::per_hour(50), key::header("x-api-key"));
    let router = Router::new().fallback(|| async { "hello" });
    let router = router
        .layer(limits)
        .layer(ConcurrencyLimitLayer::new(places.clone()))
        .layer(CircuitBreakerLayer::new(guard.clone()));
    let server = Server::start(router).await;
    let mut client = server.connect().await;
    let answers = statuses(&mut client, 300).await;
    assert_eq!((count(&answers, 200), count(&answers, 429)), (50, 250));
    assert_eq!(guard.state(), BreakerState::Clear);
    assert!(places.limit() >= 50, "{}", places.limit());
}

#[tokio::test]
async fn a_service_that_recovers_is_called_more_and_more_until_no_call_is_denied() {
    let (service, clock) = (Service::default(), Arc::new(ManualClock::new()));
    let guard = CircuitBreaker::builder().clock(clock.clone()).build();
    let server = service.start(&guard).await;
    let mut client = server.connect().await;
    service.is_broken.store(true, Ordering::SeqCst);
    for _ in 0..20 {
        statuses(&mut client, 40).await;
        clock.advance(SECOND);
    }
    assert_ne!(guard.state(), BreakerState::Clear);
    service.is_broken.store(false, Ordering::SeqCst);
    let mut seconds = 0;
    while guard.state() != BreakerState::Clear {
        statuses(&mut client, 40).await;
        clock.advance(SECOND);
        seconds += 1;
        assert!(seconds < 300, "{:?}", guard.state());
    }
    assert_eq!(statuses(&mut client, 100).await, [200; 100]);
}
