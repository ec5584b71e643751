//! A gRPC service on tonic: so many calls of each peer, refused with a delay, or waited for within the deadline.
//!
//! The service is tonic's own health check; any other is wrapped in the same way.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use tidegate::Limit;
use tidegate_tower::{RateLimitLayer, key};
use tokio::net::TcpListener;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("5 at once and 20 a second, refused:");
    let address = serve(RateLimitLayer::new(Limit::per_second(20).burst(5), peer())).await?;
    let mut client = connect(address).await?;
    let mut served = 0;
    for call in 1..=7 {
        match check(&mut client, None).await {
            Ok(()) => {
                served += 1;
                println!("  call {call}: served");
            }
            Err(status) => {
                let delay = status.get_details_retry_info().and_then(|info| info.retry_delay);
                println!("  call {call}: {:?}, again in {delay:?}", status.code());
            }
        }
    }
    assert!(served >= 5, "the burst passes");

    println!("the same, waited for:");
    let limits = RateLimitLayer::new(Limit::per_second(20).burst(5), peer()).wait(Duration::from_secs(10));
    let mut client = connect(serve(limits).await?).await?;
    for call in 1..=7 {
        check(&mut client, Some(Duration::from_secs(5))).await?;
        println!("  call {call}: served");
    }
    Ok(())
}

/// Returns an extractor of the peer address, which tonic adds to the request.
fn peer() -> impl key::Extract {
    key::peer_in(|info: &TcpConnectInfo| info.remote_addr().map(|address| address.ip()))
}

/// Serves the health check behind these limits on a free port.
async fn serve(limits: RateLimitLayer) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(limits).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Ok(address)
}

async fn connect(address: SocketAddr) -> Result<HealthClient<Channel>, Box<dyn Error>> {
    Ok(HealthClient::new(Endpoint::new(format!("http://{address}"))?.connect().await?))
}

/// Asks for the health of the whole server; tonic sends the deadline along.
async fn check(client: &mut HealthClient<Channel>, deadline: Option<Duration>) -> Result<(), Status> {
    let mut request = Request::new(HealthCheckRequest::default());
    if let Some(deadline) = deadline {
        request.set_timeout(deadline);
    }
    client.check(request).await.map(|_| ())
}
