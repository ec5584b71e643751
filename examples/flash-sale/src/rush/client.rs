//! One connection of the crowd, and what the shop says on it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// After so long nobody waits for an answer any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// No answer of the shop is longer.
const LONGEST_BODY: usize = 1 << 20;

/// A connection that is made again when it breaks.
#[derive(Debug)]
pub(super) struct Client {
    shop: SocketAddr,
    line: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// Connects.
    pub(super) async fn connect(shop: SocketAddr) -> io::Result<Client> {
        Ok(Client { shop, line: Some(dial(shop).await?) })
    }

    /// What the shop says to a wish; if nothing can be heard, the wish may have been granted.
    pub(super) async fn wish(&mut self, request: Request<Full<Bytes>>) -> Said {
        match timeout(PATIENCE, self.ask(request)).await {
            Ok(Ok((status, body))) => Said::read(status, &body),
            Ok(Err(_)) | Err(_) => Said::Nothing,
        }
    }

    /// The body of a page.
    pub(super) async fn look(&mut self, path: &str) -> io::Result<Bytes> {
        let request = head(self.shop, Method::GET, path).body(Full::default()).map_err(io::Error::other)?;
        let (status, body) = timeout(PATIENCE, self.ask(request)).await.map_err(io::Error::other)??;
        match status {
            StatusCode::OK => Ok(body),
            status => Err(io::Error::other(format!("{status}: {}", String::from_utf8_lossy(&body)))),
        }
    }

    async fn ask(&mut self, request: Request<Full<Bytes>>) -> io::Result<(StatusCode, Bytes)> {
        let mut line = match self.line.take() {
            Some(line) if !line.is_closed() => line,
            _ => dial(self.shop).await?,
        };
        line.ready().await.map_err(io::Error::other)?;
        let response = line.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_BODY).collect().await.map_err(io::Error::other)?;
        self.line = Some(line);
        Ok((head.status, body.to_bytes()))
    }
}

async fn dial(shop: SocketAddr) -> io::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(shop).await?;
    stream.set_nodelay(true)?;
    let (line, work) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the line; what goes wrong is told to whoever asks on it.
    tokio::spawn(work);
    Ok(line)
}

/// A request without a body yet.
pub(super) fn head(shop: SocketAddr, method: Method, path: &str) -> hyper::http::request::Builder {
    Request::builder().method(method).uri(path).header("host", shop.to_string())
}

/// What a buyer hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// This order is yours.
    Yours(String),
    /// Somebody was faster.
    Conflict,
    /// Nothing is left.
    SoldOut,
    /// Too many: come back after this.
    Limited(Duration),
    /// The database does not answer.
    Unavailable,
    /// No answer at all.
    Nothing,
    /// Something that ends it.
    Other(String),
}

#[derive(Deserialize)]
struct Body {
    result: String,
    order: Option<String>,
    retry_after_ms: Option<u64>,
}

impl Said {
    fn read(status: StatusCode, body: &[u8]) -> Said {
        let Ok(body) = serde_json::from_slice::<Body>(body) else {
            return Said::Other(format!("status {}", status.as_u16()));
        };
        match (body.result.as_str(), body.order) {
            ("reserved" | "already_bought", Some(order)) => Said::Yours(order),
            ("conflict", _) => Said::Conflict,
            ("sold_out", _) => Said::SoldOut,
            ("limited", _) => Said::Limited(Duration::from_millis(body.retry_after_ms.unwrap_or(1000))),
            ("unavailable", _) => Said::Unavailable,
            _ => Said::Other(body.result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> Said {
        Said::read(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn answers_are_known_by_their_result() {
        let order = || "a".to_owned();
        assert_eq!(said(201, r#"{"result":"reserved","order":"a","left":3}"#), Said::Yours(order()));
        assert_eq!(said(409, r#"{"result":"already_bought","order":"a"}"#), Said::Yours(order()));
        assert_eq!(said(409, r#"{"result":"conflict","left":3}"#), Said::Conflict);
        assert_eq!(said(410, r#"{"result":"sold_out"}"#), Said::SoldOut);
        assert_eq!(said(503, r#"{"result":"unavailable"}"#), Said::Unavailable);
        let limited = said(429, r#"{"result":"limited","retry_after_ms":250}"#);
        assert_eq!(limited, Said::Limited(Duration::from_millis(250)));
    }

    #[test]
    fn what_is_not_understood_is_kept_by_its_name() {
        assert_eq!(said(403, r#"{"result":"bad_link"}"#), Said::Other("bad_link".to_owned()));
        assert_eq!(said(502, "<html>"), Said::Other("status 502".to_owned()));
        assert_eq!(said(201, r#"{"result":"reserved"}"#), Said::Other("reserved".to_owned()));
    }
}
