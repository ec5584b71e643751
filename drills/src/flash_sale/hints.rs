//! A Redis in front that forgets, lies, stops and dies in the middle of sales.
//!
//! Only the strategy that asks it is used. Whatever it says, the books stay right; and when it is over, the rest can be
//! bought and the counter is true again within ten seconds.

mod trouble;

use std::ops::AddAssign;
use std::time::Duration;

use conformance::random::Random;
use harness::sale::{Figures, Round, Serving};
use harness::{Options, Report};
use testbed::Redis;
use tokio::time::{Instant, sleep};

use super::lane::{Lane, Turn, rounds, scene};
use crate::Outcome;
use trouble::{Keys, Trouble};

const ROUNDS: u64 = 50;
/// What is promised for the rest and for the counter.
const SOON: Duration = Duration::from_secs(10);
/// When the counter is not waited for any longer.
const NEVER: Duration = Duration::from_secs(60);
/// Between two looks at it.
const NAP: Duration = Duration::from_millis(20);

/// The longest waits.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    rest: Duration,
    counter: Duration,
}

impl AddAssign for Waits {
    fn add_assign(&mut self, other: Waits) {
        *self = Waits { rest: self.rest.max(other.rest), counter: self.counter.max(other.counter) };
    }
}

pub(super) async fn run(options: &Options, report: &mut Report) -> Outcome {
    let (_, Waits { rest, counter }) = rounds("hints", ROUNDS, options, report, round).await?;
    report.claim(rest <= SOON, "hints: the rest is sold within 10 s", format!("{rest:?} at the longest"));
    report.claim(
        counter <= SOON,
        "hints: the counter is true in 10 s",
        format!("{counter:?} at the longest"),
    );
    Ok(())
}

async fn round(lane: &Lane, redis: &Redis, turn: Turn) -> Result<(Figures, Waits), String> {
    let mut random = Random::new(turn.seed);
    let kind = Trouble::ALL[turn.number as usize % Trouble::ALL.len()];
    let scene = scene(turn.seed, vec!["redis"], &mut random);
    let mut round = Round::open(&lane.stage, &lane.database, scene).await?;
    let keys = Keys::of(round.sale());
    let trouble = async |_: &mut Serving| {
        kind.happen(redis, &keys, &mut random).await;
        Ok(())
    };
    round.run(trouble).await?;
    let available = round.settle().await?;
    let mut counter = Duration::ZERO;
    if random.percent(50) {
        revive(redis);
        counter = true_again(redis, &keys, available).await?;
    } else {
        // The rest has to be sold although this is believed.
        kind.lie_once_more(redis, &keys);
    }
    let rest = round.sell_the_rest().await?;
    revive(redis);
    counter = counter.max(true_again(redis, &keys, 0).await?);
    let named = |finding| format!("{kind:?}: {finding}");
    let mut figures = round.close().await?;
    figures.findings = figures.findings.into_iter().map(named).collect();
    Ok((figures, Waits { rest, counter }))
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
