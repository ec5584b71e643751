//! Everything that a request may need.

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

/// How long the head of a request may take to come, unless set.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// What one address may have, unless set: more than a household wants, and a tenth of a usual stock.
pub(crate) const PER_ADDRESS: NonZeroU16 = NonZeroU16::new(10).expect("ten is not none");

/// How many buyers at a time are looked up before they join the queue: those whose turn has come need connections, too.
const LOOKS: usize = 4;

/// How the shop answers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How pieces are taken, unless a request of an experiment says otherwise.
    pub strategy: Strategy,
    /// What stands in front, unless a request of an experiment says otherwise.
    pub limiting: Limiting,
    /// What all together may ask for.
    pub rate: Limit,
    /// How the line moves.
    pub queue: Limit,
    /// What each buyer and each address may ask for.
    pub rules: Policy,
    /// Whose links are good.
    pub signer: Signer,
    /// The sale in front; the newest, if none is said.
    pub sale: Option<i64>,
    /// The most places that one address has in the queue, and the most pieces that it reserves within the time to pay.
    pub per_address: NonZeroU16,
    /// Whether requests may choose their strategy and their limiter.
    pub is_experiment: bool,
    /// How long the head of a request may take to come.
    pub header_timeout: Duration,
    /// Whether buyers reach the shop by TLS, through a proxy: then browsers send its cookies by TLS only.
    pub is_behind_tls: bool,
}

impl Settings {
    /// What is good for most: see `flash-sale serve --help`.
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

/// A shop that can be asked over HTTP. Clones are the same one.
#[derive(Clone, Debug)]
pub struct App {
    pub(crate) shop: Shop,
    pub(crate) seen: Seen,
    pub(crate) signer: Signer,
    pub(crate) limits: Limits,
    pub(crate) queue: Queue,
    pub(crate) reservations: Reservations,
    /// Held by each look before the queue.
    pub(crate) looks: Arc<Semaphore>,
    pub(crate) degraded: Degraded,
    pub(crate) strategy: Strategy,
    pub(crate) limiting: Limiting,
    pub(crate) is_experiment: bool,
    pub(crate) header_timeout: Duration,
    pub(crate) is_behind_tls: bool,
    /// When it was made, by the database's clock and by ours.
    pub(crate) since: (i64, Instant),
}

impl App {
    /// Looks at the sales for the first time. The error says whether the database, the rules or the queue's limit do
    /// not fit.
    pub async fn new(shop: Shop, settings: Settings) -> Result<App, Box<dyn Error + Send + Sync>> {
        let seen = Seen::first(&shop.database, settings.sale).await?;
        let degraded = Degraded::new(seen.clone(), shop.meter.clone());
        let limits = Limits::new(settings.rules, settings.rate, &degraded);
        let limits = limits.map_err(|error| format!("rules: {error}"))?;
        let queue = Queue::new(settings.queue, settings.per_address.get().into())?;
        let since = (seen.now(), Instant::now());
        Ok(App {
            shop,
            seen,
            signer: settings.signer,
            limits,
            queue,
            reservations: Reservations::new(settings.per_address),
            looks: Arc::new(Semaphore::new(LOOKS)),
            degraded,
            strategy: settings.strategy,
            limiting: settings.limiting,
            is_experiment: settings.is_experiment,
            header_timeout: settings.header_timeout,
            is_behind_tls: settings.is_behind_tls,
            since,
        })
    }
}
