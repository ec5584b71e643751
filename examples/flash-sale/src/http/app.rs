//! The state that requests share.

use std::error::Error;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tidegate::Limit;
use tidegate_rules::Policy;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::degraded::Degraded;
use crate::command::values;
use crate::limits::{Limiting, Limits, RULES};
use crate::link::Signer;
use crate::queue::Queue;
use crate::reservations::Reservations;
use crate::seen::Seen;
use crate::shop::Shop;
use crate::strategy::Strategy;

/// The maximum number of lookups of buyers before the queue: buyers whose turn has come need connections, too.
const LOOKS: usize = 4;

/// The settings of the shop.
#[derive(Clone, Debug, Parser)]
pub struct Settings {
    /// The strategy that takes pieces: value, version, conditional, pessimistic, redis; naive oversells.
    #[arg(long, default_value_t = Strategy::Conditional)]
    pub strategy: Strategy,
    /// The limiter in front of the shop: bucket, queue, or off for none.
    #[arg(long = "limiter", default_value = "bucket", value_name = "LIMITER")]
    pub limiting: Limiting,
    /// The rate limit of all buyers together.
    #[arg(long, default_value = "500/s burst 50", value_parser = values::rate, value_name = "LIMIT")]
    pub rate: Limit,
    /// The rate and the capacity of the queue.
    #[arg(long, default_value = "200/s queue 2000", value_parser = values::queue, value_name = "LIMIT")]
    pub queue: Limit,
    /// Rules for each buyer and each address, in place of the shop's own.
    #[arg(long, value_parser = values::rules, value_name = "FILE")]
    pub rules: Option<Policy>,
    /// The signer of links and cookies.
    #[arg(skip = Signer::random())]
    pub signer: Signer,
    /// The featured sale; the newest if `None`.
    #[arg(skip)]
    pub sale: Option<i64>,
    // The default is more than a household needs, and a tenth of a usual stock.
    /// The maximum number of places in the queue for one address, and of pieces that it reserves within the time to
    /// pay.
    #[arg(long, default_value = "10", value_name = "NUMBER")]
    pub per_address: NonZeroU16,
    /// Lets requests choose by x-strategy and x-limiter: for measurements, never for a real shop.
    #[arg(long = "experiment")]
    pub is_experiment: bool,
    /// The timeout of a request's head, after which its connection is closed.
    #[arg(long, default_value = "10s", value_parser = values::some_time, value_name = "TIME")]
    pub header_timeout: Duration,
    /// Buyers reach the shop over TLS, through a proxy: browsers send its cookies over TLS only.
    #[arg(long = "behind-tls")]
    pub is_behind_tls: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::parse_from(["serve"])
    }
}

/// A shop behind HTTP. Clones share it.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) shop: Shop,
    pub(crate) seen: Seen,
    pub(crate) settings: Arc<Settings>,
    pub(crate) limits: Limits,
    pub(crate) queue: Queue,
    pub(crate) reservations: Reservations,
    /// The semaphore of lookups before the queue.
    pub(crate) looks: Arc<Semaphore>,
    pub(crate) degraded: Degraded,
    /// The time at which it was made, by the database's clock and by the local clock.
    pub(crate) since: (i64, Instant),
}

impl App {
    /// Makes the app, and reads the sales for the first time. The error reports a fault of the database, or invalid
    /// rules or an invalid limit of the queue.
    pub async fn new(shop: Shop, settings: Settings) -> Result<App, Box<dyn Error + Send + Sync>> {
        let seen = Seen::first(&shop.database, settings.sale).await?;
        let degraded = Degraded::new(seen.clone(), shop.meter.clone());
        let rules = settings.rules.clone().map_or_else(|| Policy::from_toml(RULES), Ok)?;
        let limits = Limits::new(rules, settings.rate, &degraded);
        let limits = limits.map_err(|error| format!("rules: {error}"))?;
        let queue = Queue::new(settings.queue, settings.per_address.get().into())?;
        let since = (seen.now(), Instant::now());
        Ok(App {
            shop,
            seen,
            limits,
            queue,
            reservations: Reservations::new(settings.per_address),
            looks: Arc::new(Semaphore::new(LOOKS)),
            degraded,
            settings: Arc::new(settings),
            since,
        })
    }
}
