//! gRPC: a server whose denials contain the time to the next try.

use std::net::{Ipv4Addr, SocketAddr};

use tidegate::{Limiter, SECOND};
use tidegate_tower::{Dialect, RateLimitLayer, key};
use tokio::net::TcpListener;
use tonic::transport::{Channel, Server as TonicServer};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::*;

/// Starts a health service that allows one call in ten seconds.
async fn limited(clock: &Arc<ManualClock>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let limiter = Limiter::with_clock("1/10s".parse().unwrap(), clock.clone());
    let (_, health) = tonic_health::server::health_reporter();
    // It reports no quota before it denies.
    let limits = RateLimitLayer::with(limiter, key::everyone()).fields(Dialect::None);
    let server = TonicServer::builder().layer(limits).add_service(health);
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(server.serve_with_incoming(incoming));
    address
}

#[tokio::test]
async fn a_refusal_by_grpc_holds_until_the_time_that_it_tells() {
    let clock = Arc::new(ManualClock::new());
    let address = limited(&clock).await;
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let layer = OutboundLimitLayer::new().with_clock(clock.clone());
    let mut client = HealthClient::new(layer.layer(channel));
    let check = || HealthCheckRequest { service: String::new() };
    client.check(check()).await.unwrap();
    let refused = client.check(check()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);

    let mut again = client.clone();
    let waits = tokio::spawn(async move { again.check(check()).await.map(|_| ()) });
    while layer.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(10 * SECOND - Duration::from_nanos(1));
    assert_eq!(layer.waiting(), 1);
    clock.advance(Duration::from_nanos(1));
    waits.await.unwrap().expect("the server has room again, and was not asked before");
}

#[tokio::test]
async fn a_call_by_grpc_that_is_held_fails_with_an_error_that_says_until_when() {
    let clock = Arc::new(ManualClock::new());
    let address = limited(&clock).await;
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let layer = OutboundLimitLayer::new().max_wait(Duration::ZERO).with_clock(clock.clone());
    let mut client = HealthClient::new(layer.layer(channel));
    let check = || HealthCheckRequest { service: String::new() };
    client.check(check()).await.unwrap();
    assert_eq!(client.check(check()).await.unwrap_err().code(), tonic::Code::ResourceExhausted);
    let status = client.check(check()).await.unwrap_err();
    let source = std::error::Error::source(&status).expect("the error behind the status");
    let held = source.downcast_ref::<Throttled>().expect("an error of ours");
    assert_eq!(held.retry_after(), Some(10 * SECOND));
}
