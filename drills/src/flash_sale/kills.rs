//! Shops and databases are killed in the middle of sales.
//!
//! Each round is a sale of thirty pieces to sixty buyers, of whom some never pay. At one to three moments somebody is
//! killed as by `kill -9` and started again: the shop, the database, or one process of it. In every fourth round all
//! buyers come through a Redis, which is killed as well, and is empty after that. The databases are served at the same
//! time, each by a shop of its own.

use std::io;
use std::time::Duration;

use conformance::random::Random;
use flash_sale::proof::{Figures, Round, Scene, Serving};
use flash_sale::strategy::Strategy;
use testbed::{Flavour, Redis};
use tokio::time::sleep;

use super::claim_no_findings;
use super::databases::{ALL, Running};
use super::lane::{Lane, Rounds, said, share};
use crate::Outcome;
use crate::options::Options;
use crate::report::{Report, thousands};

const ROUNDS: u64 = 100;
const STOCK: i64 = 30;
const BUYERS: u32 = 60;
/// Within which time they come.
const COME_WITHIN: Duration = Duration::from_millis(1500);
/// The milliseconds for which a piece is reserved.
const PAY_WITHIN: (u64, u64) = (300, 1500);
/// The milliseconds before somebody is killed, and for which a shop stays dead.
const QUIET: (u64, u64) = (20, 700);
const DEAD: (u64, u64) = (0, 300);

const STRATEGIES: [Strategy; 4] =
    [Strategy::Value, Strategy::Version, Strategy::Conditional, Strategy::Pessimistic];

/// Every so many rounds there is a Redis in front.
const HINTED: u64 = 4;

/// Who was killed how often.
#[derive(Clone, Copy, Debug, Default)]
struct Killed {
    shops: u64,
    servers: u64,
    processes: u64,
    redis: u64,
}

pub(super) async fn run(options: &Options, report: &mut Report) -> Outcome {
    let rounds = options.counted(ROUNDS);
    let course = Rounds::new("kills", rounds);
    let done = |place| on(options.seed, share(rounds, place, ALL.len()), place, &course);
    let (sqlite, postgres, mariadb) = tokio::join!(done(0), done(1), done(2));
    let (mut figures, mut killed) = (Figures::default(), Killed::default());
    for (dialect, lane) in ALL.iter().zip([sqlite, postgres, mariadb]) {
        let (of_lane, who) = lane.map_err(|problem| format!("{dialect}: {problem}"))?;
        report.fact(format!("{dialect}: {} of {} sold; {who:?}", of_lane.paid, of_lane.stock));
        figures += of_lane;
        killed.shops += who.shops;
        killed.servers += who.servers;
        killed.processes += who.processes;
        killed.redis += who.redis;
    }
    report.fact(format!(
        "{rounds} rounds: {} wishes, {} questions asked again, {} reservations went back, {} audits",
        thousands(figures.wishes),
        thousands(figures.repeated),
        thousands(figures.returned),
        thousands(figures.audits),
    ));
    let is_met = killed.shops > 0 && figures.repeated > 0 && figures.returned > 0;
    report.claim(is_met, "buyers have felt it", format!("{killed:?}"));
    claim_no_findings(report, "kills: G-1 to G-5 hold after every round", &figures.findings);
    report.claim(
        figures.paid == figures.stock,
        "kills: everything is sold in the end",
        format!("{} of {}", thousands(figures.paid), thousands(figures.stock)),
    );
    Ok(())
}

async fn on(
    seed: u64,
    numbers: impl Iterator<Item = u64>,
    place: usize,
    course: &Rounds,
) -> Result<(Figures, Killed), String> {
    let redis = Redis::start(Flavour::Redis7);
    let lane = Lane::open(ALL[place], Some(redis.url())).await?;
    let (mut figures, mut killed) = (Figures::default(), Killed::default());
    for number in numbers {
        let seed = seed.wrapping_add(number);
        let hint = (number / ALL.len() as u64).is_multiple_of(HINTED).then_some(&redis);
        let done = round(&lane, hint, seed, &mut killed).await;
        let mut done = done.map_err(|error| format!("round {number}, seed {seed}: {error}"))?;
        let named = |finding| format!("round {number}, {}, seed {seed}: {finding}", ALL[place]);
        done.findings = done.findings.into_iter().map(named).collect();
        figures += done;
        course.one_more(format!("{} findings on {}", figures.findings.len(), ALL[place]));
    }
    Ok((figures, killed))
}

async fn round(lane: &Lane, hint: Option<&Redis>, seed: u64, killed: &mut Killed) -> Result<Figures, String> {
    let mut random = Random::new(seed);
    let scene = Scene {
        stock: STOCK,
        buyers: BUYERS,
        come_within: COME_WITHIN,
        pay_within: Duration::from_millis(random.between(PAY_WITHIN.0, PAY_WITHIN.1)),
        strategies: if hint.is_some() { vec![Strategy::Redis] } else { STRATEGIES.to_vec() },
        seed,
    };
    let mut round = Round::open(&lane.stage, &lane.database, scene).await.map_err(said)?;
    let trouble = async |serving: &mut Serving| {
        for _ in 0..random.between(1, 3) {
            sleep(Duration::from_millis(random.between(QUIET.0, QUIET.1))).await;
            match hint.filter(|_| random.percent(25)) {
                Some(redis) => {
                    killed.redis += 1;
                    redis.restart();
                }
                None => strike(serving, &lane.running, &mut random, killed).await?,
            }
        }
        Ok(())
    };
    round.run(trouble).await.map_err(said)?;
    round.settle().await.map_err(said)?;
    round.sell_the_rest().await.map_err(said)?;
    round.close().await.map_err(said)
}

/// Kills somebody, and waits until everybody is there again.
async fn strike(
    serving: &mut Serving,
    running: &Running,
    random: &mut Random,
    killed: &mut Killed,
) -> io::Result<()> {
    match random.between(0, 3) {
        0 if running.has_server() => {
            killed.servers += 1;
            running.kill().await.map_err(io::Error::other)
        }
        1 if running.kill_backend().await.map_err(io::Error::other)? => {
            killed.processes += 1;
            Ok(())
        }
        2 if running.has_server() => {
            killed.shops += 1;
            killed.servers += 1;
            serving.kill().await?;
            running.kill().await.map_err(io::Error::other)?;
            serving.restart().await
        }
        _ => {
            killed.shops += 1;
            serving.kill().await?;
            sleep(Duration::from_millis(random.between(DEAD.0, DEAD.1))).await;
            serving.restart().await
        }
    }
}
