//! A rush on the shop: every strategy with and without the limiter, by the same crowd, in numbers and pictures.
//!
//! ```text
//!   Plan --> calibration: what can this database do?
//!        `-> per combination: a fresh sale, a shop in a process of its own, a crowd of buyers --> Figures
//!                                                            Figures, ... --> table, picture, page
//! ```
//!
//! The replies to buyers are compared with the database:
//! orders that are only in one of both are counted.

mod calibration;
mod command;
mod figures;
mod report;

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate::Limit;
use tokio::time::Instant;

use super::{Client, Crowd, Door, Ledger, Serving, Stage, open};
use calibration::{AT_A_TIME, limit_for, measure};
use figures::{Found, Numbers};

pub use command::Arguments;
pub use figures::{Figures, Goal, goals};
pub use report::{Report, Surroundings, markdown, text};

/// More pieces than can be sold while it is measured.
const PLENTY: i64 = 1_000_000_000;

/// A day: longer than any rush.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Which crowd comes, to which shops.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program whose `serve` is the shop: `flash-sale` itself.
    pub program: PathBuf,
    /// The database of all shops.
    pub database: String,
    /// Redis, without which its strategy is skipped.
    pub redis: Option<String>,
    /// Pieces of each sale.
    pub stock: u32,
    /// Who come, each for one piece.
    pub buyers: u32,
    /// How often each of them tries at most.
    pub tries: u32,
    /// Connections on which they come.
    pub clients: u32,
    /// Connections that a shop has to its database.
    pub connections: u32,
    /// The limiter's token bucket; without one it is measured what the database can do.
    pub limit: Option<Limit>,
    /// How pieces are taken.
    pub strategies: Vec<&'static str>,
    /// With the limiter, without, or both.
    pub limiters: Vec<Limiter>,
    /// Who is first in line.
    pub seed: u64,
}

impl Plan {
    /// A hundred pieces, ten thousand buyers of five tries each on two hundred connections, both ways.
    pub fn new(
        program: impl Into<PathBuf>,
        database: impl Into<String>,
        strategies: &[&'static str],
    ) -> Plan {
        Plan {
            program: program.into(),
            database: database.into(),
            redis: None,
            stock: 100,
            buyers: 10_000,
            tries: 5,
            clients: 200,
            connections: 20,
            limit: None,
            strategies: strategies.to_vec(),
            limiters: Limiter::ALL.to_vec(),
            seed: 1,
        }
    }

    /// What can be tried, in the order in which it is.
    pub fn combinations(&self) -> Vec<Combination> {
        let strategies = self.strategies.iter().filter(|strategy| !self.is_skipped(strategy));
        strategies
            .flat_map(|&strategy| self.limiters.iter().map(move |&limiter| Combination { strategy, limiter }))
            .collect()
    }

    /// What was asked for and cannot be tried.
    pub fn skipped(&self) -> Vec<&'static str> {
        self.strategies.iter().copied().filter(|strategy| self.is_skipped(strategy)).collect()
    }

    fn is_skipped(&self, strategy: &str) -> bool {
        strategy == "redis" && self.redis.is_none()
    }
}

/// Whether the limiter is in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limiter {
    /// Everybody reaches the database.
    Off,
    /// Only so many per second do.
    On,
}

impl Limiter {
    /// Both.
    pub const ALL: [Limiter; 2] = [Limiter::Off, Limiter::On];

    /// The value of the header in an experiment.
    fn word(self) -> &'static str {
        match self {
            Limiter::Off => "off",
            Limiter::On => "bucket",
        }
    }
}

impl fmt::Display for Limiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Limiter::Off => "off",
            Limiter::On => "on",
        })
    }
}

/// One strategy, with or without the limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// How pieces are taken.
    pub strategy: &'static str,
    /// Who is let to them.
    pub limiter: Limiter,
}

impl fmt::Display for Combination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = match self.limiter {
            Limiter::Off => "without",
            Limiter::On => "with",
        };
        write!(out, "{}, {with} limiter", self.strategy)
    }
}

/// A step of a rush.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'f> {
    /// This one was asked for, but what it needs is not there.
    Skipped(&'static str),
    /// It is being measured what the database can do.
    Measuring,
    /// It was.
    Measured {
        /// Pieces sold per second.
        per_second: u64,
        /// To so many clients at a time.
        clients: u32,
        /// The limit that follows from it.
        limit: &'f Limit,
    },
    /// The crowd is let in.
    Started(Combination),
    /// So many tries are over, of all that there may be.
    Tried(u64),
    /// The crowd has gone.
    Ended(&'f Figures),
}

/// Runs every combination of a plan, one after the other, and says what happens meanwhile.
pub async fn run(
    plan: &Plan,
    ledger: &impl Ledger,
    mut on_progress: impl FnMut(Progress<'_>),
) -> Result<Vec<Figures>, String> {
    for strategy in plan.skipped() {
        on_progress(Progress::Skipped(strategy));
    }
    let rush = Rush { plan, ledger, secret: format!("{:032x}", fastrand::u128(..)) };
    let limit = rush.limit(&mut on_progress).await?;
    let mut all = Vec::new();
    for combination in plan.combinations() {
        on_progress(Progress::Started(combination));
        let figures = rush.on(combination, &limit, |tries| on_progress(Progress::Tried(tries))).await?;
        on_progress(Progress::Ended(&figures));
        all.push(figures);
    }
    Ok(all)
}

struct Rush<'p, L> {
    plan: &'p Plan,
    ledger: &'p L,
    /// Signs the links of this rush.
    secret: String,
}

impl<L: Ledger> Rush<'_, L> {
    /// The limit of the plan, or one that suits the database.
    async fn limit(&self, on_progress: &mut impl FnMut(Progress<'_>)) -> Result<Limit, String> {
        match self.plan.limit {
            Some(limit) => Ok(limit),
            // No request asks the limiter.
            None if !self.plan.limiters.contains(&Limiter::On) => limit_for(1),
            None => {
                on_progress(Progress::Measuring);
                let per_second = self.measured().await?;
                let limit = limit_for(per_second)?;
                on_progress(Progress::Measured { per_second, clients: AT_A_TIME, limit: &limit });
                Ok(limit)
            }
        }
    }

    async fn measured(&self) -> Result<u64, String> {
        let (_shop, door) = self.open(PLENTY, &limit_for(1)?).await?;
        measure(door).await
    }

    async fn on(
        &self,
        combination: Combination,
        limit: &Limit,
        progress: impl FnMut(u64),
    ) -> Result<Figures, String> {
        let Plan { stock, buyers, tries, clients, seed, .. } = *self.plan;
        let (shop, door) = self.open(i64::from(stock), limit).await?;
        let (strategy, limiter) = (combination.strategy, combination.limiter.word());
        let crowd = Crowd { buyers, tries, clients, seed, strategy, limiter };
        let waiting = crowd.gather(&door).await.map_err(|error| buyers_failed(&error))?;
        let began_at = self.ledger.now().await?;
        let began = Instant::now();
        let heard = crowd
            .rush(waiting, &Arc::new(door.clone()), progress)
            .await
            .map_err(|error| format!("buyers: {error}"))?;
        let took = began.elapsed();
        let numbers =
            numbers(&shop).await.map_err(|error| format!("shop: the shopkeeper's numbers: {error}"))?;
        let (tally, books) = (self.ledger.tally(door.sale).await?, self.ledger.books(door.sale).await?);
        let found =
            Found { combination, buyers, limit: *limit, began_at, took, heard, numbers, tally, books };
        Ok(Figures::of(&found))
    }

    /// Opens a shop with a fresh sale, in which nothing is paid for and nothing goes back.
    async fn open(&self, stock: i64, limit: &Limit) -> Result<(Serving, Door), String> {
        let (limit, connections) = (limit.to_string(), self.plan.connections.to_string());
        let further = ["--limiter", "bucket", "--rate", &limit, "--connections", &connections];
        let stage = Stage {
            program: self.plan.program.clone(),
            database: self.plan.database.clone(),
            redis: self.plan.redis.clone(),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            secret: self.secret.clone(),
            further: further.map(str::to_owned).to_vec(),
        };
        open(&stage, self.ledger, stock, DAY).await.map_err(|error| format!("shop: {error}"))
    }
}

/// What a shop has counted so far.
async fn numbers(shop: &Serving) -> std::io::Result<Numbers> {
    let mut client = Client::connect(shop.address()).await?;
    let answer = client.look(&shop.numbers().unwrap_or_default()).await?;
    Ok(serde_json::from_value(answer.body)?)
}

fn buyers_failed(error: &std::io::Error) -> String {
    format!("buyers: {error}; fewer --clients need fewer open files")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const STRATEGIES: [&str; 6] =
        ["naive", "value", "version", "conditional", "pessimistic", "redis"];

    #[test]
    fn without_redis_its_strategy_is_skipped_by_name() {
        let plan = Plan::new("flash-sale", "sqlite:shop.db", &STRATEGIES);
        assert_eq!((plan.combinations().len(), plan.skipped()), (10, vec!["redis"]));
        let plan = Plan { redis: Some("redis://127.0.0.1:1".to_owned()), ..plan };
        assert_eq!((plan.combinations().len(), plan.skipped()), (12, vec![]));
    }
}
