//! Handlers of axum that are limited by an attribute, and reply with 429 when they are denied.
//!
//! A layer limits requests before they are routed. `#[rate_limit]` limits one handler, by what axum has extracted for
//! it: here the user in the path.
//!
//! `cargo run -p tidegate-tower --example axum_handler`

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tidegate::{Denied, Limit};
use tidegate_macros::rate_limit;
use tidegate_tower::DeniedResponse;

type Error = Box<dyn std::error::Error>;

/// Two reports a minute for each user. `?` and the attribute turn a denial into a response.
#[rate_limit("2/m", key = user)]
async fn report(Path(user): Path<String>) -> Result<String, DeniedResponse> {
    Ok(format!("the report of {user}\n"))
}

const EXPORTS: Limit = Limit::per_hour(1);

/// One export an hour for each user, with the limit in the header fields of a denial.
#[rate_limit(limit = EXPORTS, key = user, otherwise = |denied| Err(too_many_exports(denied)))]
async fn export(Path(user): Path<String>) -> Result<String, DeniedResponse> {
    Ok(format!("all data of {user}\n"))
}

fn too_many_exports(denied: Denied) -> DeniedResponse {
    DeniedResponse::from(denied).by("exports", &EXPORTS)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let api = Router::new().route("/{user}/report", get(report)).route("/{user}/export", get(export));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, api).into_future());

    let mut statuses = Vec::new();
    for path in ["/ana/report", "/ana/report", "/ana/report", "/bob/report", "/ana/export", "/ana/export"] {
        statuses.push(get_and_print(address, path).await?.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 200, 200, 429]);
    Ok(())
}

/// Sends a request, and prints the response with the fields of a denial.
async fn get_and_print(address: SocketAddr, path: &str) -> Result<StatusCode, Error> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let request = Request::get(format!("http://{address}{path}")).body(Body::empty())?;
    let response = client.request(request).await?;
    let field = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("-").to_owned()
    };
    let (retry, remaining) = (field("retry-after"), field("ratelimit"));
    println!("{path:<12} {}  retry-after: {retry:<5} ratelimit: {remaining}", response.status().as_u16());
    Ok(response.status())
}
