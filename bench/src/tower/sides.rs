//! The same router bare, and behind each layer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use tidegate::Limit;
use tidegate_tower::{Dialect, RateLimitLayer, key};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

/// Who asks, as far as a router in this process knows.
pub(super) const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 50_000);

/// One router, and what becomes of requests to it.
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) denies: bool,
    pub(super) router: fn() -> Router,
}

pub(super) const BARE: &str = "axum bare";
pub(super) const GOVERNOR: &str = "tower_governor, fields";
pub(super) const TIDEGATE: &str = "tidegate, fields";
pub(super) const GOVERNOR_PLAIN: &str = "tower_governor, no fields";
pub(super) const TIDEGATE_PLAIN: &str = "tidegate, no fields";
pub(super) const GOVERNOR_DENIES: &str = "tower_governor, denying";
pub(super) const TIDEGATE_DENIES: &str = "tidegate, denying";

/// One request in a nanosecond, and a burst that outlasts every bench.
const PLENTY: u32 = 1_000_000_000;

pub(super) const SIDES: [Side; 7] = [
    Side { name: BARE, denies: false, router: bare },
    Side { name: GOVERNOR, denies: false, router: || governor_with_fields(1, PLENTY) },
    Side { name: TIDEGATE, denies: false, router: || tidegate(plenty(), Dialect::Ietf) },
    Side { name: GOVERNOR_PLAIN, denies: false, router: governor_without_fields },
    Side { name: TIDEGATE_PLAIN, denies: false, router: || tidegate(plenty(), Dialect::None) },
    Side { name: GOVERNOR_DENIES, denies: true, router: || governor_with_fields(HOUR, 1) },
    Side { name: TIDEGATE_DENIES, denies: true, router: || tidegate(Limit::per_hour(1), Dialect::Ietf) },
];

/// In nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

fn plenty() -> Limit {
    Limit::per_second(10_000_000).burst(PLENTY.into())
}

fn bare() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

fn governor_with_fields(nanoseconds: u64, burst: u32) -> Router {
    let mut config = GovernorConfigBuilder::default();
    let config = config.per_nanosecond(nanoseconds).burst_size(burst).use_headers().finish();
    bare().layer(GovernorLayer::new(config.expect("neither the period nor the burst is zero")))
}

fn governor_without_fields() -> Router {
    let mut config = GovernorConfigBuilder::default();
    let config = config.per_nanosecond(1).burst_size(PLENTY).finish();
    bare().layer(GovernorLayer::new(config.expect("neither the period nor the burst is zero")))
}

fn tidegate(limit: Limit, dialect: Dialect) -> Router {
    let peer = key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip());
    bare().layer(RateLimitLayer::new(limit, peer).fields(dialect))
}

/// The side with this name.
pub(super) fn side(name: &str) -> Option<&'static Side> {
    SIDES.iter().find(|side| side.name == name)
}
