//! The limiter in front of the shop: rules for each buyer and each address, and one token bucket for all requests.
//!
//! ```text
//!   request --> per user, per address --> valid link? --> everyone: waits up to 1 s --> the shop
//!                     |                                               |
//!                     `--> 429 with the stock last seen <-------------'
//! ```
//!
//! The bucket applies to purchase requests only. Requests for a link, and payments, are limited by the rules alone.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::http::Request;
use tidegate::{Limit, Limiter, Zone};
use tidegate_rules::{Gate, Policy, UnsupportedPolicy};
use tidegate_tower::key::{self, Extract, Extracted, Part};
use tidegate_tower::{Head, RateLimitLayer};

use crate::http::{Buyer, Degraded, Wanted};
use crate::strategy::Strategy;

/// The default rules.
pub const RULES: &str = include_str!("../rules.toml");

/// The max wait of a request for the bucket.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The memory of the rules, in bytes: enough for half a million buyers.
const MEMORY: usize = 16 << 20;

/// The trusted proxies: those on the local machine.
const TRUSTED: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// The limiter in front of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiting {
    /// None, not even the rules.
    Off,
    /// A token bucket for all requests.
    Bucket,
    /// A queue in which every buyer has a place.
    Queue,
}

impl FromStr for Limiting {
    type Err = String;

    fn from_str(name: &str) -> Result<Limiting, String> {
        match name {
            "off" => Ok(Limiting::Off),
            "bucket" => Ok(Limiting::Bucket),
            "queue" => Ok(Limiting::Queue),
            _ => Err(format!(
                "limiter \"{name}\": there is none of this name; write one of off, bucket, queue"
            )),
        }
    }
}

/// The layers of the limiter.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Limits each buyer and each address.
    pub(crate) rules: RateLimitLayer,
    /// Limits all requests together.
    pub(crate) bucket: RateLimitLayer,
}

impl Limits {
    /// Returns the layers, with `degraded` as their reply to denied requests.
    pub(crate) fn new(policy: Policy, rate: Limit, degraded: &Degraded) -> Result<Limits, UnsupportedPolicy> {
        let gate = Gate::new(policy, Zone::new(MEMORY))?;
        let answer = degraded.clone();
        let rules = RateLimitLayer::rules(gate)
            .peer(address())
            .attribute("user", key::extension(|buyer: &Buyer| buyer.user.clone()))
            .exempt(|head| wanted(head).limiting == Limiting::Off)
            .otherwise(move |refused| answer.answer(refused));
        let answer = degraded.clone();
        let bucket = RateLimitLayer::with(Limiter::new(rate), key::everyone())
            .named("everyone")
            .wait(MAX_WAIT)
            .exempt(|head| wanted(head).limiting != Limiting::Bucket)
            .otherwise(move |refused| answer.answer(refused));
        Ok(Limits { rules, bucket })
    }
}

/// Returns the address by which a request is counted, as in rules: a network of IPv6 counts as one address. Requests
/// without an address share one name.
pub(crate) fn address_of<B>(request: &Request<B>) -> String {
    static CLIENT: LazyLock<Box<dyn Extract>> = LazyLock::new(|| Box::new(address()));
    match CLIENT.extract(Head::of(request)) {
        Extracted::Now(Part::Address(ip, grouping)) => grouping.group(ip).to_string(),
        _ => String::new(),
    }
}

/// Returns an extractor of the peer address, or of the client address behind a proxy on the local machine.
fn address() -> impl Extract {
    let peer = key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip());
    key::client(peer).trusting(TRUSTED).expect("these are networks")
}

fn wanted(head: Head<'_>) -> Wanted {
    let unknown = Wanted { limiting: Limiting::Bucket, strategy: Strategy::Conditional };
    head.extension::<Wanted>().copied().unwrap_or(unknown)
}
