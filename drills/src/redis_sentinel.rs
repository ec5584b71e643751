//! Primaries die or stop under Sentinels while four machines ask.
//!
//! A primary, two replicas and three Sentinels that notice a death after a second. Each round the primary is killed,
//! or stopped and resumed when another one has its place, until decisions come again to every store; then the old one
//! returns, and the next round begins when all are in step.
//! A replica may not have heard of the last takes, so each failover may forget: that is one more burst each time, and
//! never more.

use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Options, Report, pause, unix_time};
use testbed::{Bound, Flavour, Judge, Sentinels};

use crate::Outcome;
use crate::fleet::{Fleet, Heard, PULSE, Rounds, UNLIMITED, stores};
use crate::someone::Someone;
use crate::windows::Windows;

const ROUNDS: u64 = 50;
const STORES: usize = 4;
/// How often each store asks.
const EVERY: Duration = Duration::from_millis(4);
/// Every so many rounds the primary is stopped, not killed.
const STOPPED: u64 = 3;
/// The milliseconds between one round and the next.
const QUIET: (u64, u64) = (500, 2000);
/// How soon decisions come again: the Sentinels take a second to notice.
const SOON: Duration = Duration::from_secs(6);
/// The longest timeout.
const NEVER: Duration = Duration::from_secs(60);
/// The clock of the Redis is another one than ours.
const DOUBT: Duration = Duration::from_millis(5);

/// Whom they ask about, and the limits.
const BUCKETS: [&str; 3] = ["bucket 1", "bucket 2", "bucket 3"];
const LOG: &str = "log";
const WINDOW: &str = "window";
const LOG_LIMIT: (u64, Duration) = (30, Duration::from_secs(5));
const WINDOW_LIMIT: (u64, Duration) = (40, Duration::from_secs(10));

/// What happened in one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Duration,
    /// When the primary was gone.
    gone: Duration,
    /// When the Sentinels had agreed on another one.
    agreed: Duration,
    /// When decisions had come to every store again.
    resumed: Duration,
    ended: Duration,
    /// How many failovers there were.
    failovers: u64,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let mut random = Random::new(options.seed);
    let sentinels = Sentinels::start(Flavour::Redis7);
    let addresses: Vec<_> = sentinels.addresses().iter().map(ToString::to_string).collect();
    let url = format!("redis+sentinel://{}/{}", addresses.join(","), sentinels.name());
    let fleet = Fleet::start(stores(&url, STORES)?, EVERY, question);
    let ahead = unix_time().saturating_sub(fleet.now());
    fleet.wait_for_pulses(1, NEVER)?;
    let rounds = Rounds::go((options.counted(ROUNDS), fleet.watch()), report, |number| {
        let round = go(&sentinels, &fleet, number.is_multiple_of(STOPPED), &mut random)?;
        let took = (round.resumed - round.gone).as_secs_f64();
        Ok((round, format!("decisions came again after {took:.2} s")))
    });
    rounds.end(fleet, report, |done, heard, report| {
        say(done, heard, report);
        judge(done, heard, ahead, report);
    })
}

/// What the stores ask, in turn.
fn question(number: u64) -> Vec<Someone> {
    let someone = match number % 6 {
        place @ 0..=2 => Someone::new(BUCKETS[place as usize], "20/s burst 50"),
        3 => Someone::new(LOG, "30/5s sliding-log"),
        4 => Someone::new(WINDOW, "40/10s fixed-window"),
        _ => Someone::new(PULSE, UNLIMITED),
    };
    vec![someone]
}

fn go(sentinels: &Sentinels, fleet: &Fleet, is_stopped: bool, random: &mut Random) -> Result<Round, String> {
    let (began, before) = (fleet.now(), sentinels.failovers());
    pause(Duration::from_millis(random.between(QUIET.0, QUIET.1)));
    let primary = sentinels.primary();
    match is_stopped {
        true => primary.stop(),
        false => primary.kill(),
    }
    let gone = fleet.feel();
    let (resumed, agreed) = thread::scope(|scope| {
        let agreeing = scope.spawn(|| {
            sentinels.wait_for_failover(primary.address());
            fleet.now()
        });
        (fleet.wait_for_pulses(1, NEVER), agreeing.join())
    });
    let (resumed, agreed) = (resumed?, agreed.map_err(|_| "there was no failover".to_owned())?);
    match is_stopped {
        true => primary.resume(),
        false => sentinels.bring_back(primary.address()),
    }
    sentinels.wait_until_whole();
    let failovers = sentinels.failovers() - before;
    Ok(Round { began, gone, agreed, resumed, ended: fleet.now(), failovers })
}

fn say(rounds: &[Round], heard: &Heard, report: &mut Report) {
    let longest = rounds.iter().map(|round| round.resumed - round.gone).max().unwrap_or_default();
    report.fact(format!(
        "{} rounds, {} failovers",
        rounds.len(),
        rounds.iter().map(|round| round.failovers).sum::<u64>()
    ));
    heard.say(report);
    let average = |time: fn(&Round) -> Duration| {
        rounds.iter().map(|round| time(round).saturating_sub(round.gone)).sum::<Duration>()
            / rounds.len().max(1) as u32
    };
    report.fact(format!(
        "on average the Sentinels agreed after {:?}, and decisions came again after {:?}",
        average(|round| round.agreed),
        average(|round| round.resumed),
    ));
    report.claim(longest <= SOON, "decisions come again within 6 s", format!("{longest:?} at the longest"));
    for (number, round) in (1..).zip(rounds).filter(|(_, round)| round.resumed - round.gone > SOON) {
        report.fact(format!("round {number} was too long: {round:?}"));
    }
}

fn judge(rounds: &[Round], heard: &Heard, ahead: Duration, report: &mut Report) {
    let mut losses = Vec::new();
    for round in rounds {
        losses.push((round.gone, round.resumed));
        // Sentinels with so little max wait may be wrong at any time.
        losses.extend((1..round.failovers).map(|_| (round.began, round.ended)));
    }
    let of = |name: &str| heard.log.iter().filter(|decided| decided.key == name).cloned().collect::<Vec<_>>();
    for bucket in BUCKETS {
        let bound = Bound::new(50, 20, Duration::from_secs(1)).slack(DOUBT);
        let bound = losses.iter().fold(bound, |bound, (from, to)| bound.loss(*from, *to));
        let found = Judge::new(of(bucket)).shared(&bound);
        report.claim(
            found.as_ref().is_ok_and(|seen| seen.admitted > 0),
            &format!("{bucket}, 20/s burst 50: one burst more per failover at most, in every interval"),
            found.map_or_else(
                |breach| breach.to_string(),
                |seen| {
                    format!(
                        "{} admitted, room for {} in the fullest",
                        seen.admitted,
                        seen.room.unwrap_or_default()
                    )
                },
            ),
        );
    }
    let windows = |(limit, period)| Windows { limit, period, losses: losses.clone() };
    let trailing = windows(LOG_LIMIT).trailing(&of(LOG));
    claim_windows(report, "log, 30/5s: at most that in every window", trailing);
    let aligned = windows(WINDOW_LIMIT).aligned(&of(WINDOW), ahead);
    claim_windows(report, "window, 40/10s: at most that in every fixed window", aligned);
}

fn claim_windows(report: &mut Report, claim: &str, found: Result<(u64, u64), String>) {
    report.claim(
        found.as_ref().is_ok_and(|(admitted, _)| *admitted > 0),
        &format!("{claim}, and once more per failover"),
        found.map_or_else(
            |breach| breach,
            |(admitted, at_most)| format!("{admitted} of {at_most} in the fullest"),
        ),
    );
}
