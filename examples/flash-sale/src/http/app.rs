//! Everything that a request may need.

use std::fmt;

use tidegate::Limit;
use tidegate_rules::{Policy, PolicyError, Unfit};
use tokio::time::Instant;

use super::degraded::Degraded;
use crate::database::Fault;
use crate::limits::{Limiting, Limits, RULES};
use crate::link::Signer;
use crate::queue::{NoQueue, Queue};
use crate::seen::Seen;
use crate::shop::Shop;
use crate::strategy::Strategy;

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
    /// Whether requests may choose their strategy and their limiter.
    pub is_experiment: bool,
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
            is_experiment: false,
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
    pub(crate) degraded: Degraded,
    pub(crate) strategy: Strategy,
    pub(crate) limiting: Limiting,
    pub(crate) is_experiment: bool,
    /// When it was made, by the database's clock and by ours.
    pub(crate) since: (i64, Instant),
}

impl App {
    /// Looks at the sales for the first time.
    pub async fn new(shop: Shop, settings: Settings) -> Result<App, NoShop> {
        let seen = Seen::first(&shop.database, settings.sale).await.map_err(NoShop::Database)?;
        let degraded = Degraded::new(seen.clone(), shop.meter.clone());
        let limits = Limits::new(settings.rules, settings.rate, &degraded).map_err(NoShop::Rules)?;
        let queue = Queue::new(settings.queue).map_err(NoShop::Queue)?;
        let since = (seen.now(), Instant::now());
        Ok(App {
            shop,
            seen,
            signer: settings.signer,
            limits,
            queue,
            degraded,
            strategy: settings.strategy,
            limiting: settings.limiting,
            is_experiment: settings.is_experiment,
            since,
        })
    }
}

/// Why there is no shop.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoShop {
    /// The database does not answer.
    Database(Fault),
    /// The rules ask for more than there is.
    Rules(Unfit),
    /// The line's limit is none for a line.
    Queue(NoQueue),
}

impl fmt::Display for NoShop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoShop::Database(error) => error.fmt(out),
            NoShop::Rules(error) => write!(out, "rules: {error}"),
            NoShop::Queue(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for NoShop {}
