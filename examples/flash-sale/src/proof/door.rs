//! The way into a shop: its address, and links that it will take for its own.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;

use super::asking::{Answer, ask};
use crate::link::Signer;
use crate::strategy::Strategy;

/// How to buy of one sale, and to pay.
#[derive(Clone, Debug)]
pub struct Door {
    /// Where the shop listens.
    pub shop: SocketAddr,
    /// The sale.
    pub sale: i64,
    /// What one piece costs.
    pub price_cents: i64,
    /// For how many milliseconds a piece is reserved.
    pub pay_within: i64,
    /// Signs with the shop's own secret.
    pub signer: Signer,
    /// How long the links are good, by the database's clock.
    pub until: i64,
}

impl Door {
    /// A wish for one piece, past the limiter.
    pub fn wish(&self, user: &str, key: &str, strategy: Strategy) -> Request<Full<Bytes>> {
        self.post(&self.signer.buy_url(self.sale, user, self.until))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .header("x-strategy", strategy.name())
            .header("x-limiter", "off")
            .body(Full::from("{\"quantity\":1}"))
            .expect("all of this is plain text")
    }

    /// Asks for one piece.
    pub async fn buy(&self, user: &str, key: &str, strategy: Strategy) -> io::Result<Answer> {
        ask(self.shop, self.wish(user, key, strategy)).await
    }

    /// Pays for an order, past the limiter.
    pub async fn pay(&self, order: &str, user: &str) -> io::Result<Answer> {
        let request = self.post(&self.signer.pay_url(order, user)).header("x-limiter", "off");
        let request = request.body(Full::default());
        ask(self.shop, request.expect("all of this is plain text")).await
    }

    fn post(&self, path: &str) -> hyper::http::request::Builder {
        Request::post(path).header("host", self.shop.to_string())
    }
}
