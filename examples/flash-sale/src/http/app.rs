//! The state that requests share.

use std::error::Error;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use tidegate::Limit;
use tidegate_rules::{Policy, PolicyError};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::degraded::Degraded;
use crate::limits::{Limiting, Limits, RULES};
use crate::link::Signer;
use crate::queue::Queue;
use crate::reservations::Reservations;
use crate::seen::Seen;
use crate::shop::Shop;
use crate::strategy::Strategy;

/// The default timeout of a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// The default maximum for one address: more than a household needs, and a tenth of a usual stock.
pub(crate) const PER_ADDRESS: NonZeroU16 = NonZeroU16::new(10).expect("ten is not none");

/// The maximum number of lookups of buyers before the queue: buyers whose turn has come need connections, too.
const LOOKS: usize = 4;

/// The settings of the shop.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The strategy that takes pieces, unless a request of an experiment chooses another one.
    pub strategy: Strategy,
    /// The limiter in front, unless a request of an experiment chooses another one.
    pub limiting: Limiting,
    /// The rate limit of all requests together.
    pub rate: Limit,
    /// The rate and the capacity of the queue.
    pub queue: Limit,
    /// The limits of each buyer and each address.
    pub rules: Policy,
    /// The signer of links and cookies.
    pub signer: Signer,
    /// The featured sale; the newest if `None`.
    pub sale: Option<i64>,
    /// The maximum number of places in the queue for one address, and of pieces that it reserves within the time to
    /// pay.
    pub per_address: NonZeroU16,
    /// True if requests may choose their strategy and their limiter.
    pub is_experiment: bool,
    /// The timeout of a request's head.
    pub header_timeout: Duration,
    /// True if buyers reach the shop over TLS, through a proxy: then browsers send its cookies over TLS only.
    pub is_behind_tls: bool,
}

impl Settings {
    /// Returns the defaults: see `flash-sale serve --help`.
    pub fn new() -> Result<Settings, PolicyError> {
        Ok(Settings {
            strategy: Strategy::Conditional,
            limiting: Limiting::Bucket,
            rate: Limit::per_second(500).burst(50),
            queue: Limit::leaky_bucket(200, tidegate::SECOND).queue(2000),
            rules: Policy::from_toml(RULES)?,
            signer: Signer::random(),
            sale: None,
            per_address: PER_ADDRESS,
            is_experiment: false,
            header_timeout: HEADER_TIMEOUT,
            is_behind_tls: false,
        })
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
        let limits = Limits::new(settings.rules.clone(), settings.rate, &degraded);
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
