//! A Redis in front that forgets, lies, stops and dies in the middle of sales.
//!
//! Only the strategy that asks it is used. Whatever it says, the books stay right; and when it is over, the rest can be
//! bought and the counter is true again within ten seconds.

mod trouble;

use std::time::Duration;

use conformance::random::Random;
use flash_sale::proof::{Figures, Round, Scene, Serving};
use flash_sale::strategy::Strategy;
use testbed::{Flavour, Redis};
use tokio::time::{Instant, sleep};

use super::claim_no_findings;
use super::databases::ALL;
use super::lane::{Lane, Rounds, said, share};
use crate::Outcome;
use crate::options::Options;
use crate::report::{Report, thousands};
use trouble::{Keys, Trouble};

const ROUNDS: u64 = 50;
const STOCK: i64 = 30;
const BUYERS: u32 = 60;
/// Within which time they come.
const COME_WITHIN: Duration = Duration::from_millis(1500);
/// The milliseconds for which a piece is reserved.
const PAY_WITHIN: (u64, u64) = (300, 1500);
/// What is promised for the rest and for the counter.
const SOON: Duration = Duration::from_secs(10);
/// When nobody waits any longer for the counter.
const NEVER: Duration = Duration::from_secs(60);
/// Between two looks at it.
const NAP: Duration = Duration::from_millis(20);

/// What rounds came to, and the longest waits in them.
#[derive(Clone, Debug, Default)]
struct Done {
    figures: Figures,
    rest: Duration,
    counter: Duration,
}

pub(super) async fn run(options: &Options, report: &mut Report) -> Outcome {
    let rounds = options.counted(ROUNDS);
    let course = Rounds::new("hints", rounds);
    let done = |place| on(options.seed, share(rounds, place, ALL.len()), place, &course);
    let (sqlite, postgres, mariadb) = tokio::join!(done(0), done(1), done(2));
    let mut all = Done::default();
    for (dialect, lane) in ALL.iter().zip([sqlite, postgres, mariadb]) {
        let lane = lane.map_err(|problem| format!("{dialect}: {problem}"))?;
        report.fact(format!("{dialect}: {} of {} sold", lane.figures.paid, lane.figures.stock));
        all.figures += lane.figures;
        all.rest = all.rest.max(lane.rest);
        all.counter = all.counter.max(lane.counter);
    }
    let Done { figures, rest, counter } = all;
    report.fact(format!(
        "{rounds} rounds: {} wishes, {} reservations went back, {} audits",
        thousands(figures.wishes),
        thousands(figures.returned),
        thousands(figures.audits),
    ));
    claim_no_findings(report, "hints: G-1 to G-5 hold whatever Redis says", &figures.findings);
    report.claim(
        figures.paid == figures.stock,
        "hints: everything is sold in the end",
        format!("{} of {}", thousands(figures.paid), thousands(figures.stock)),
    );
    report.claim(rest <= SOON, "hints: the rest is sold within 10 s", format!("{rest:?} at the longest"));
    report.claim(
        counter <= SOON,
        "hints: the counter is true in 10 s",
        format!("{counter:?} at the longest"),
    );
    Ok(())
}

async fn on(
    seed: u64,
    numbers: impl Iterator<Item = u64>,
    place: usize,
    course: &Rounds,
) -> Result<Done, String> {
    let redis = Redis::start(Flavour::Redis7);
    let lane = Lane::open(ALL[place], Some(redis.url())).await?;
    let mut all = Done::default();
    for number in numbers {
        let seed = seed.wrapping_add(number);
        let kind = Trouble::ALL[number as usize / ALL.len() % Trouble::ALL.len()];
        let done = round(&lane, &redis, seed, kind).await;
        let done = done.map_err(|error| format!("round {number}, {kind:?}, seed {seed}: {error}"))?;
        let named = |finding| format!("round {number}, {kind:?}, {}, seed {seed}: {finding}", ALL[place]);
        let findings = done.figures.findings.iter().map(named).collect();
        all.figures += Figures { findings, ..done.figures };
        all.rest = all.rest.max(done.rest);
        all.counter = all.counter.max(done.counter);
        course.one_more(format!("{} findings on {}", all.figures.findings.len(), ALL[place]));
    }
    Ok(all)
}

async fn round(lane: &Lane, redis: &Redis, seed: u64, kind: Trouble) -> Result<Done, String> {
    let mut random = Random::new(seed);
    let scene = Scene {
        stock: STOCK,
        buyers: BUYERS,
        come_within: COME_WITHIN,
        pay_within: Duration::from_millis(random.between(PAY_WITHIN.0, PAY_WITHIN.1)),
        strategies: vec![Strategy::Redis],
        seed,
    };
    let mut round = Round::open(&lane.stage, &lane.database, scene).await.map_err(said)?;
    let keys = Keys::of(round.sale());
    let trouble = async |_: &mut Serving| {
        kind.happen(redis, &keys, &mut random).await;
        Ok(())
    };
    round.run(trouble).await.map_err(said)?;
    let available = round.settle().await.map_err(said)?;
    let mut counter = Duration::ZERO;
    if random.percent(50) {
        revive(redis);
        counter = true_again(redis, &keys, available).await?;
    } else {
        // The rest has to be sold although this is believed.
        kind.lie_once_more(redis, &keys);
    }
    let rest = round.sell_the_rest().await.map_err(said)?;
    revive(redis);
    counter = counter.max(true_again(redis, &keys, 0).await?);
    let figures = round.close().await.map_err(said)?;
    Ok(Done { figures, rest, counter })
}

fn revive(redis: &Redis) {
    redis.resume();
    if !redis.is_alive() {
        redis.restart();
    }
}

/// How long it takes until the counter says what the database has.
async fn true_again(redis: &Redis, keys: &Keys, available: i64) -> Result<Duration, String> {
    let started = Instant::now();
    loop {
        let found = redis.try_command(&["GET", &keys.counter]).map(|reply| reply.text());
        match found {
            Ok(text) if text == available.to_string() => return Ok(started.elapsed()),
            found if started.elapsed() > NEVER => {
                return Err(format!("the counter is {found:?}, and {available} are left"));
            }
            _ => sleep(NAP).await,
        }
    }
}
