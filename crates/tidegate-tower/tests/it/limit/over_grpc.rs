//! The layer in a real gRPC server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tidegate::{HOUR, Limit, Limiter};
use tidegate_tower::{RateLimitLayer, key};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

/// The health service behind a layer, on a port of its own, until this is dropped.
pub(super) struct Health {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Health {
    pub(super) async fn behind(layer: RateLimitLayer) -> Health {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_, health) = tonic_health::server::health_reporter();
        let server = Server::builder().layer(layer).add_service(health);
        let serving = server.serve_with_incoming(TcpIncoming::from(listener));
        Health { address, task: tokio::spawn(async move { serving.await.unwrap() }) }
    }

    pub(super) async fn connect(&self) -> HealthClient<Channel> {
        let endpoint = Endpoint::new(format!("http://{}", self.address)).unwrap();
        HealthClient::new(endpoint.connect().await.unwrap())
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn check(client: &mut HealthClient<Channel>, timeout: Option<Duration>) -> Result<(), Status> {
    let mut request = Request::new(HealthCheckRequest::default());
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    client.check(request).await.map(|_| ())
}

/// Checks with these lines of `x-user`.
pub(super) async fn check_as(client: &mut HealthClient<Channel>, users: &[&str]) -> Result<(), Status> {
    let mut request = Request::new(HealthCheckRequest::default());
    for user in users {
        request.metadata_mut().append("x-user", user.parse().unwrap());
    }
    client.check(request).await.map(|_| ())
}

fn peer() -> impl key::Extract {
    key::peer_in(|info: &TcpConnectInfo| info.remote_addr().map(|address| address.ip()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_1500_calls_over_many_channels_exactly_five_pass_and_the_others_know_when() {
    const CALLS: usize = 1500;
    const CHANNELS: usize = 16;
    let server = Health::behind(RateLimitLayer::new(Limit::per_hour(5), peer()).named("calls")).await;
    let mut channels = Vec::new();
    for _ in 0..CHANNELS {
        channels.push(server.connect().await);
    }
    let calls: Vec<_> = (0..CALLS)
        .map(|call| {
            let mut client = channels[call % CHANNELS].clone();
            tokio::spawn(async move { check(&mut client, None).await })
        })
        .collect();
    let mut passed = 0;
    for call in calls {
        let Err(status) = call.await.unwrap() else {
            passed += 1;
            continue;
        };
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        let delay = status.get_details_retry_info().unwrap().retry_delay.unwrap();
        assert!(delay > Duration::ZERO && delay <= HOUR / 5, "{delay:?}");
        let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
        assert_eq!(pushback.parse::<u128>().unwrap(), delay.as_nanos().div_ceil(1_000_000));
        assert_eq!(status.metadata().get("ratelimit-policy").unwrap(), "\"calls\";q=5;w=3600");
        assert!(status.message().starts_with("too many calls"), "{status:?}");
    }
    assert_eq!(passed, 5);
}

#[tokio::test]
async fn what_can_never_pass_is_not_to_be_tried_again() {
    let server = Health::behind(RateLimitLayer::new(Limit::per_hour(5), peer()).cost(|_| 6)).await;
    let status = check(&mut server.connect().await, None).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
    assert!(status.get_details_retry_info().is_none());
}

#[tokio::test]
async fn a_call_waits_no_longer_than_its_caller_would() {
    let limiter = Limiter::new(Limit::per_hour(1));
    let server = Health::behind(RateLimitLayer::with(limiter.clone(), key::everyone()).wait(2 * HOUR)).await;
    let mut client = server.connect().await;
    check(&mut client, None).await.unwrap();
    // An hour is within the two hours of the layer, but not within the minute of this caller.
    let status = check(&mut client, Some(Duration::from_secs(60))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.get_details_retry_info().unwrap().retry_delay.unwrap() > Duration::from_secs(60));

    let mut other = server.connect().await;
    let patient = tokio::spawn(async move { check(&mut other, None).await });
    while limiter.peek("").retry_after().unwrap_or_default() <= HOUR {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    limiter.refund("");
    patient.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_without_its_key_is_an_invalid_argument() {
    let layer = RateLimitLayer::new(Limit::per_hour(1), key::Extract::or_deny(key::header("x-api-key")));
    let server = Health::behind(layer).await;
    let status = check(&mut server.connect().await, None).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "-1");
}
