//! A reply is lost after the work was done, ten thousand times.
//!
//! The caller does not know then whether it was done, and must not ask again: the second time would be charged, too.
//! Each time another key is asked about, so what each of them has spent says how often it was charged. A proxy eats
//! exactly the reply to that question, and either cuts the connection or stays silent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use harness::{Options, Progress, Report, thousands};
use testbed::{Afterwards, Flavour, Proxy, Redis, until};
use tidegate_redis::{Options as StoreOptions, RedisStore};

use crate::Outcome;
use crate::someone::{Someone, open, reason, wait};

const TIMES: u64 = 10_000;
/// Stores that each have a proxy of their own.
const LANES: u64 = 4;
/// Limits of which nothing is regained while the drill runs.
const LIMITS: [&str; 5] = [
    "1000/365d",
    "1000/365d sliding-log",
    "1000/365d fixed-window",
    "1000/365d sliding-window",
    "1000/365d queue 999 delay-after all leaky-bucket",
];
/// For looks that have to be answered.
const PATIENT: Duration = Duration::from_secs(10);
/// The timeout of a connection.
const NEVER: Duration = Duration::from_secs(60);

/// The outcome for a caller whose reply was eaten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    /// That it is allowed or not.
    Decided,
    /// That nothing was done.
    Nothing,
    /// That it is not known.
    Unknown,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let times = options.counted(TIMES);
    let redis = Redis::start(Flavour::Redis7);
    let direct = open(&redis.url(), PATIENT, false)?;
    for limit in LIMITS {
        // The server has to know the script, else what is eaten is that it does not.
        wait(Someone::new("first", limit).take(&direct)).map_err(|error| reason(&error))?;
    }
    let progress = Progress::new(report.name(), times);
    let done = AtomicU64::new(0);
    let lanes: Vec<_> = thread::scope(|scope| {
        let lane = |number| {
            let (redis, progress, done) = (&redis, &progress, &done);
            scope.spawn(move || {
                lane(redis, (number..times).step_by(LANES as usize), |outcome| {
                    progress.at(done.fetch_add(1, Ordering::Relaxed) + 1, format!("{outcome:?}"));
                })
            })
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().map(|lane| lane.join().map_err(|_| "a lane has panicked".to_owned())?).collect()
    });
    let mut outcomes = Vec::new();
    for lane in lanes {
        let (lane, eaten): (Vec<_>, u64) = lane?;
        report.fact(format!("a lane of {} questions, {} replies eaten", lane.len(), thousands(eaten)));
        report.claim(eaten == lane.len() as u64, "each question loses exactly one reply", thousands(eaten));
        outcomes.extend(lane);
    }
    judge(&outcomes, &direct, report)
}

/// Asks about these numbers one after the other, each time without a reply. The outcome of each, and how many replies
/// were eaten.
fn lane(
    redis: &Redis,
    numbers: impl Iterator<Item = u64>,
    progress: impl Fn(Reported),
) -> Result<(Vec<(u64, Reported)>, u64), String> {
    let proxy = Proxy::start(redis.address());
    let store = open(&proxy.url(), StoreOptions::DEADLINE, false)?;
    let probe = Someone::new("probe", "1000000/s burst 1000000");
    let mut all = Vec::new();
    for number in numbers {
        until("a store that is connected", NEVER, || wait(probe.take(&store)).ok());
        let is_cut = number.is_multiple_of(2);
        proxy.only_for(&["EVALSHA", "EVAL"]);
        proxy.eat_replies(1, if is_cut { Afterwards::Cut } else { Afterwards::Silence });
        let outcome = match wait(someone(number).take(&store)) {
            Ok(_) => Reported::Decided,
            Err(error) if error.is_retryable() => Reported::Nothing,
            Err(_) => Reported::Unknown,
        };
        // On a busy machine the reply may come after the deadline.
        let wanted = all.len() as u64 + 1;
        until("a reply that is eaten", NEVER, || (proxy.counters().eaten >= wanted).then_some(()));
        proxy.clear();
        proxy.cut();
        all.push((number, outcome));
        progress(outcome);
    }
    Ok((all, proxy.counters().eaten))
}

fn someone(number: u64) -> Someone {
    Someone::new(format!("someone {number}"), LIMITS[(number % LIMITS.len() as u64) as usize])
}

fn judge(outcomes: &[(u64, Reported)], direct: &RedisStore, report: &mut Report) -> Outcome {
    let mut charged = Vec::new();
    for (number, outcome) in outcomes {
        let spent = wait(someone(*number).spent(direct)).map_err(|error| reason(&error))?;
        charged.push((*number, *outcome, spent));
    }
    let count = |is_meant: &dyn Fn(Reported, u64) -> bool| {
        charged.iter().filter(|(_, outcome, spent)| is_meant(*outcome, *spent)).count() as u64
    };
    let (none, once) = (count(&|_, spent| spent == 0), count(&|_, spent| spent == 1));
    report.fact(format!(
        "{} lost replies: {} not known to who asked, {} reported as not done, {} decided all the same",
        thousands(charged.len() as u64),
        thousands(count(&|outcome, _| outcome == Reported::Unknown)),
        thousands(count(&|outcome, _| outcome == Reported::Nothing)),
        thousands(count(&|outcome, _| outcome == Reported::Decided)),
    ));
    report.fact(format!("{} were charged once, {} not at all", thousands(once), thousands(none)));
    let twice: Vec<_> = charged.iter().filter(|(_, _, spent)| *spent > 1).take(5).collect();
    report.claim(
        once + none == charged.len() as u64,
        "each is charged at most once",
        format!("{} were charged more, {twice:?}", charged.len() as u64 - once - none),
    );
    let lies = count(&|outcome, spent| outcome == Reported::Nothing && spent > 0);
    report.claim(lies == 0, "no key was charged whose outcome was \"not done\"", lies);
    report.claim(once > 0, "the work was done before the reply was lost", thousands(once));
    Ok(())
}
