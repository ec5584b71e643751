//! An API on axum with rules: a limit for each user, and one for each address, whichever user it has.
//!
//! The server runs on a free port, and a client of its own shows what becomes of requests. A refusal by one rule
//! costs the other nothing.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tidegate::Zone;
use tidegate_rules::{Gate, Policy};
use tidegate_tower::{RateLimitLayer, key};

const RULES: &str = r#"
[[rule]]
name = "per-user"
when = { path = "/api/{*rest}" }
key = ["user"]
limit = "3/h"

[[rule]]
name = "per-address"
when = { path = "/api/{*rest}" }
key = ["ip"]
limit = "5/h"
"#;

type Error = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let gate = Gate::new(Policy::from_toml(RULES)?, Zone::new(1 << 20))?;
    let limits = RateLimitLayer::rules(gate.clone())
        .peer(key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip()))
        .attribute("user", key::header("x-user")); // put what your login has checked here
    let api = Router::new()
        .route("/api/orders", get(|| async { "your orders\n" }))
        .route("/", get(|| async { "welcome\n" }))
        .layer(limits);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = axum::serve(listener, api.into_make_service_with_connect_info::<SocketAddr>());
    tokio::spawn(server.into_future());

    let asked = ["ana", "ana", "ana", "ana", "bob", "bob", "bob"];
    let mut passed = Vec::new();
    for user in asked {
        if ask(address, "/api/orders", user).await? == StatusCode::OK {
            passed.push(user);
        }
    }
    ask(address, "/", "ana").await?; // no rule is about this path
    assert_eq!(passed, ["ana", "ana", "ana", "bob", "bob"], "three of ana, and five of the address");
    Ok(())
}

/// Asks as this user, and shows what comes back.
async fn ask(address: SocketAddr, path: &str, user: &str) -> Result<StatusCode, Error> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let request = Request::get(format!("http://{address}{path}")).header("x-user", user);
    let response = client.request(request.body(Body::empty())?).await?;
    let field = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("-").to_owned()
    };
    let (left, retry) = (field("ratelimit"), field("retry-after"));
    println!("{user} {path:<12} {}  ratelimit: {left:<26} retry-after: {retry}", response.status().as_u16());
    Ok(response.status())
}
