//! The way into a shop: signed links that it takes for its own, and connections to it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Longer than a shop waits for its database, so that no question is still on its way when it is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// No answer of a shop is longer.
const LONGEST_BODY: usize = 1 << 20;

/// For how many milliseconds a link is good: less than a shop allows, because clocks differ.
const LINK_LIFE: i64 = 5 * 60 * 1000;

/// A signer of links with the shop's own secret.
pub trait Links: fmt::Debug + Send + Sync {
    /// Returns the path at which a buyer buys, until then by the database's clock.
    fn buy_url(&self, sale: i64, user: &str, until: i64) -> String;

    /// Returns the path at which a buyer pays for an order.
    fn pay_url(&self, order: &str, user: &str) -> String;
}

/// The way to buy of one sale, and to pay.
#[derive(Clone, Debug)]
pub struct Door {
    /// The address of the shop.
    pub shop: SocketAddr,
    /// The sale.
    pub sale: i64,
    /// The price of one piece.
    pub price_cents: i64,
    /// For how many milliseconds a piece is reserved.
    pub pay_within: i64,
    /// The signer of its links.
    pub links: Arc<dyn Links>,
    /// When it was opened, by the database's clock.
    pub opened_at: i64,
    /// The same moment by ours.
    pub opened: Instant,
}

/// A request for one piece, in the words of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The buyer.
    pub user: &'a str,
    /// The key by which the same wish is known again.
    pub key: &'a str,
    /// The name of the strategy.
    pub strategy: &'a str,
    /// The limiter in front: `off` for none.
    pub limiter: &'a str,
    /// The number of the address that it comes from, as a proxy of the same machine says; 0 for none.
    pub address: u32,
}

impl Door {
    /// Returns the request of a wish; the same each time but for the time of its link.
    pub fn wish(&self, wish: &Wish<'_>) -> Request<Full<Bytes>> {
        let now = self.opened_at.saturating_add_unsigned(self.opened.elapsed().as_millis() as u64);
        let [_, a, b, c] = wish.address.to_be_bytes();
        let mut request = self.post(&self.links.buy_url(self.sale, wish.user, now + LINK_LIFE));
        if wish.address > 0 {
            request = request.header("x-forwarded-for", format!("10.{a}.{b}.{c}"));
        }
        request
            .header("content-type", "application/json")
            .header("idempotency-key", wish.key)
            .header("x-strategy", wish.strategy)
            .header("x-limiter", wish.limiter)
            .body(Full::from("{\"quantity\":1}"))
            .expect("all of this is plain text")
    }

    /// Asks for one piece, without a limiter in front.
    pub async fn buy(&self, user: &str, key: &str, strategy: &str) -> io::Result<Answer> {
        let wish = Wish { user, key, strategy, limiter: "off", address: 0 };
        ask(self.shop, self.wish(&wish)).await
    }

    /// Pays for an order, without a limiter in front.
    pub async fn pay(&self, order: &str, user: &str) -> io::Result<Answer> {
        let request = self.post(&self.links.pay_url(order, user)).header("x-limiter", "off");
        ask(self.shop, request.body(Full::default()).expect("all of this is plain text")).await
    }

    fn post(&self, path: &str) -> hyper::http::request::Builder {
        Request::post(path).header("host", self.shop.to_string())
    }
}

/// An answer of a shop.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The body; null if it is no JSON.
    pub body: Value,
    /// Whether the shop says that it has said this before.
    pub is_replayed: bool,
}

impl Answer {
    /// Returns the word that names what became of it.
    pub fn result(&self) -> &str {
        self.body["result"].as_str().unwrap_or_default()
    }

    /// Returns the order that it names, if it names one.
    pub fn order(&self) -> Option<&str> {
        self.body["order"].as_str()
    }

    /// Returns whether it says that, with this status.
    pub fn is(&self, status: u16, result: &str) -> bool {
        self.status == status && self.result() == result
    }
}

/// A connection that is made again when it breaks.
#[derive(Debug)]
pub struct Client {
    shop: SocketAddr,
    line: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// Connects.
    pub async fn connect(shop: SocketAddr) -> io::Result<Client> {
        Ok(Client { shop, line: Some(dial(shop).await?) })
    }

    /// Asks for a page.
    pub async fn look(&mut self, path: &str) -> io::Result<Answer> {
        let request = Request::get(path).header("host", self.shop.to_string()).body(Full::default());
        self.ask(request.map_err(io::Error::other)?).await
    }

    /// Asks once. Without an answer it is not known what was done.
    pub async fn ask(&mut self, request: Request<Full<Bytes>>) -> io::Result<Answer> {
        timeout(ANSWER_WITHIN, self.ask_and_wait(request)).await.map_err(io::Error::other)?
    }

    async fn ask_and_wait(&mut self, request: Request<Full<Bytes>>) -> io::Result<Answer> {
        let mut line = match self.line.take() {
            Some(line) if !line.is_closed() => line,
            _ => dial(self.shop).await?,
        };
        line.ready().await.map_err(io::Error::other)?;
        let response = line.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LONGEST_BODY).collect().await.map_err(io::Error::other)?;
        self.line = Some(line);
        let is_replayed = head.headers.get("idempotent-replayed").is_some_and(|value| value == "true");
        let body = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        Ok(Answer { status: head.status.as_u16(), body, is_replayed })
    }
}

/// Asks once, on a connection of its own: what is lost with it is lost with nothing else.
pub async fn ask(shop: SocketAddr, request: Request<Full<Bytes>>) -> io::Result<Answer> {
    Client { shop, line: None }.ask(request).await
}

async fn dial(shop: SocketAddr) -> io::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(shop).await?;
    stream.set_nodelay(true)?;
    let (line, work) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // It ends with the line; what goes wrong is reported to the requests on it.
    tokio::spawn(work);
    Ok(line)
}
