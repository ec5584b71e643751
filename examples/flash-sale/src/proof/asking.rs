//! One question to a shop on a connection of its own: what is lost with it is lost with nothing else.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than a shop waits for its database, so that no question is still on its way when it is asked again.
const PATIENCE: Duration = Duration::from_secs(40);

/// No answer of a shop is longer.
const LONGEST_BODY: usize = 1 << 20;

/// What a shop has said.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The body, which is JSON.
    pub body: Value,
    /// Whether the shop says that it has said this before.
    pub is_replayed: bool,
}

impl Answer {
    /// The word that names what became of it.
    pub fn result(&self) -> &str {
        self.body["result"].as_str().unwrap_or_default()
    }

    /// The order that it names, if it names one.
    pub fn order(&self) -> Option<&str> {
        self.body["order"].as_str()
    }

    /// Whether it says that, with this status.
    pub fn is(&self, status: u16, result: &str) -> bool {
        self.status == status && self.result() == result
    }
}

/// Asks once. Without an answer nobody knows what was done.
pub async fn ask(shop: SocketAddr, request: Request<Full<Bytes>>) -> io::Result<Answer> {
    timeout(PATIENCE, ask_patiently(shop, request)).await.map_err(io::Error::other)?
}

async fn ask_patiently(shop: SocketAddr, request: Request<Full<Bytes>>) -> io::Result<Answer> {
    let stream = TcpStream::connect(shop).await?;
    stream.set_nodelay(true)?;
    let (mut line, work) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the line, which ends with this question.
    tokio::spawn(work);
    let response = line.send_request(request).await.map_err(io::Error::other)?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, LONGEST_BODY).collect().await.map_err(io::Error::other)?;
    let body = serde_json::from_slice(&body.to_bytes()).map_err(io::Error::other)?;
    let is_replayed = head.headers.get("idempotent-replayed").is_some_and(|value| value == "true");
    Ok(Answer { status: head.status.as_u16(), body, is_replayed })
}
