//! Shops and databases are killed in the middle of sales.
//!
//! Each round is a sale of thirty pieces to sixty buyers, of whom some never pay. At one to three moments something is
//! killed as by `kill -9` and started again: the shop, the database, or one process of it. In every fourth round all
//! buyers come through a Redis, which is killed as well, and is empty after that. The databases are served at the same
//! time, each by a shop of its own.

use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use conformance::random::Random;
use harness::sale::{Figures, Round, Serving};
use harness::{Options, Report};
use testbed::{AnyDatabase, Redis};
use tokio::time::sleep;

use super::lane::{Lane, Turn, rounds, said, scene};
use crate::Outcome;

const ROUNDS: u64 = 100;
/// The milliseconds before something is killed, and for which a shop stays dead.
const QUIET: (u64, u64) = (20, 700);
const DEAD: (u64, u64) = (0, 300);

const STRATEGIES: [&str; 4] = ["value", "version", "conditional", "pessimistic"];

/// Every so many rounds there is a Redis in front.
const HINTED: u64 = 4;

/// How often each was killed.
#[derive(Clone, Copy, Debug, Default)]
struct Killed {
    shops: u64,
    servers: u64,
    processes: u64,
    redis: u64,
}

impl AddAssign for Killed {
    fn add_assign(&mut self, other: Killed) {
        self.shops += other.shops;
        self.servers += other.servers;
        self.processes += other.processes;
        self.redis += other.redis;
    }
}

pub(super) async fn run(options: &Options, report: &mut Report) -> Outcome {
    let (figures, killed) = rounds("kills", ROUNDS, options, report, round).await?;
    let is_met = killed.shops > 0 && figures.repeated > 0 && figures.returned > 0;
    report.claim(is_met, "buyers have felt it", format!("{killed:?}"));
    Ok(())
}

async fn round(lane: &Lane, redis: &Redis, turn: Turn) -> Result<(Figures, Killed), String> {
    let (mut random, mut killed) = (Random::new(turn.seed), Killed::default());
    let hint = turn.number.is_multiple_of(HINTED).then_some(redis);
    let strategies = if hint.is_some() { vec!["redis"] } else { STRATEGIES.to_vec() };
    let scene = scene(turn.seed, strategies, &mut random);
    let mut round = Round::open(&lane.stage, &lane.database, scene).await?;
    let trouble = async |serving: &mut Serving| {
        for _ in 0..random.between(1, 3) {
            sleep(Duration::from_millis(random.between(QUIET.0, QUIET.1))).await;
            match hint.filter(|_| random.percent(25)) {
                Some(redis) => {
                    killed.redis += 1;
                    redis.restart();
                }
                None => strike(serving, &lane.running, &mut random, &mut killed).await?,
            }
        }
        Ok(())
    };
    round.run(trouble).await?;
    round.settle().await?;
    round.sell_the_rest().await?;
    Ok((round.close().await?, killed))
}

/// Kills something, and waits until all is there again.
async fn strike(
    serving: &mut Serving,
    running: &Arc<AnyDatabase>,
    random: &mut Random,
    killed: &mut Killed,
) -> Result<(), String> {
    let has_server = !matches!(**running, AnyDatabase::Sqlite(_));
    let kill = async |kill: fn(&AnyDatabase) -> bool| {
        let running = Arc::clone(running);
        tokio::task::spawn_blocking(move || kill(&running)).await.map_err(said)
    };
    match random.between(0, 3) {
        0 if has_server => {
            killed.servers += 1;
            kill(AnyDatabase::restart).await.map(drop)
        }
        1 if kill(AnyDatabase::kill_backend).await? => {
            killed.processes += 1;
            Ok(())
        }
        2 if has_server => {
            killed.shops += 1;
            killed.servers += 1;
            serving.kill().await.map_err(said)?;
            kill(AnyDatabase::restart).await?;
            serving.restart().await.map_err(said)
        }
        _ => {
            killed.shops += 1;
            serving.kill().await.map_err(said)?;
            sleep(Duration::from_millis(random.between(DEAD.0, DEAD.1))).await;
            serving.restart().await.map_err(said)
        }
    }
}
