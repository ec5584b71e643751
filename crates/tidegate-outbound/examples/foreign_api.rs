//! A client that respects the limits of a third party's API.
//!
//! The API allows five calls at once and ten a second, says so in header fields, and refuses the rest. One client
//! sends as fast as it can; the other goes through `OutboundLimitLayer`, and is never refused.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tidegate::Limit;
use tidegate_outbound::OutboundLimitLayer;
use tidegate_tower::{RateLimitLayer, key};
use tower::{Service, ServiceBuilder, ServiceExt};

type Error = Box<dyn std::error::Error + Send + Sync>;

const CALLS: usize = 12;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let hasty = call(client.clone(), foreign_api().await?).await?;
    println!("without the layer: {hasty} of {CALLS} denied");

    let polite = ServiceBuilder::new().layer(OutboundLimitLayer::new()).service(client);
    let refused = call(polite, foreign_api().await?).await?;
    println!("with the layer:    {refused} of {CALLS} denied");
    assert_eq!(refused, 0, "no call leaves that would be denied");
    Ok(())
}

/// Calls the API as fast as the client lets it; how many calls were refused.
async fn call<S, R>(mut client: S, api: SocketAddr) -> Result<usize, Error>
where
    S: Service<Request<Body>, Response = Response<R>, Error: Into<Error>>,
{
    let mut refused = 0;
    for number in 1..=CALLS {
        let request = Request::get(format!("http://{api}/")).body(Body::empty())?;
        let client = client.ready().await.map_err(Into::into)?;
        let response = client.call(request).await.map_err(Into::into)?;
        let left = response.headers().get("ratelimit").and_then(|left| left.to_str().ok());
        println!("  call {number:>2}: {}  ratelimit: {}", response.status().as_u16(), left.unwrap_or("-"));
        refused += usize::from(response.status() == StatusCode::TOO_MANY_REQUESTS);
    }
    println!();
    Ok(refused)
}

/// Starts the API of the third party, here on a port of its own.
async fn foreign_api() -> Result<SocketAddr, Error> {
    let limits = RateLimitLayer::new(Limit::per_second(10).burst(5), key::everyone());
    let api = Router::new().route("/", get(|| async { "hello\n" })).layer(limits);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, api).into_future());
    Ok(address)
}
