//! How a buyer asks: a signed link, an address, a key.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request};
use tokio::time::Instant;

use super::client::head;
use super::plan::Combination;
use crate::link::Signer;

/// For how many milliseconds a link is good: less than the shop allows, because clocks differ.
const LINK_LIFE: i64 = 5 * 60 * 1000;

/// The way into one shop.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) shop: SocketAddr,
    pub(super) sale: i64,
    pub(super) combination: Combination,
    /// When it was opened, by the database's clock: a part of the buyers' names that no other rush has, so that
    /// nothing is remembered of them.
    pub(super) opened_at: i64,
    /// The same moment by ours.
    pub(super) opened: Instant,
    pub(super) signer: Signer,
}

impl Door {
    /// What a buyer is called.
    pub(super) fn user(&self, number: u32) -> String {
        format!("{:x}-{number}", self.opened_at)
    }

    /// A buyer's wish: the same each time it is asked.
    pub(super) fn wish(&self, number: u32) -> Request<Full<Bytes>> {
        let user = self.user(number);
        let now = self.opened_at.saturating_add_unsigned(self.opened.elapsed().as_millis() as u64);
        let path = self.signer.buy_url(self.sale, &user, now + LINK_LIFE);
        // Everybody lives somewhere else; the shop believes it, because it comes from this machine.
        let [_, a, b, c] = number.to_be_bytes();
        head(self.shop, Method::POST, &path)
            .header("content-type", "application/json")
            .header("idempotency-key", format!("{}-{user}", self.sale))
            .header("x-forwarded-for", format!("10.{a}.{b}.{c}"))
            .header("x-strategy", self.combination.strategy.name())
            .header("x-limiter", self.combination.limiter.word())
            .body(Full::from("{\"quantity\":1}"))
            .expect("all of this is plain text")
    }
}
