//! What is to be tried, and against what.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use tidegate::Limit;

use crate::strategy::Strategy;

/// Which crowd comes, to which shops.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program whose `serve` is the shop: `flash-sale` itself.
    pub program: PathBuf,
    /// The database of all shops.
    pub database: String,
    /// Redis, without which there is no [`Strategy::Redis`].
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
    pub strategies: Vec<Strategy>,
    /// With the limiter, without, or both.
    pub limiters: Vec<Limiter>,
    /// Who is first in line.
    pub seed: u64,
}

impl Plan {
    /// A hundred pieces, ten thousand buyers of five tries each on two hundred connections, every strategy, both ways.
    pub fn new(program: impl Into<PathBuf>, database: impl Into<String>) -> Plan {
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
            strategies: Strategy::ALL.to_vec(),
            limiters: Limiter::ALL.to_vec(),
            seed: 1,
        }
    }

    /// What can be tried, in the order in which it is.
    pub fn combinations(&self) -> Vec<Combination> {
        let strategies = self.strategies.iter().filter(|strategy| !self.is_skipped(**strategy));
        strategies
            .flat_map(|&strategy| self.limiters.iter().map(move |&limiter| Combination { strategy, limiter }))
            .collect()
    }

    /// What was asked for and cannot be tried.
    pub fn skipped(&self) -> Vec<Strategy> {
        self.strategies.iter().copied().filter(|strategy| self.is_skipped(*strategy)).collect()
    }

    fn is_skipped(&self, strategy: Strategy) -> bool {
        strategy == Strategy::Redis && self.redis.is_none()
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

    /// What a shop in an experiment is told.
    pub(super) fn word(self) -> &'static str {
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
    pub strategy: Strategy,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_redis_its_strategy_is_skipped_by_name() {
        let plan = Plan::new("flash-sale", "sqlite:shop.db");
        assert_eq!((plan.combinations().len(), plan.skipped()), (10, vec![Strategy::Redis]));
        let plan = Plan { redis: Some("redis://127.0.0.1:1".to_owned()), ..plan };
        assert_eq!((plan.combinations().len(), plan.skipped()), (12, vec![]));
    }
}
