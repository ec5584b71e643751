//! A reply is lost after the work was done, ten thousand times.
//!
//! Whoever asked does not know then whether it was done, and must not ask again: the second time would be charged, too.
//! Each time somebody else is asked about, so what each of them has spent says how often it was charged. A proxy eats
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
/// When nobody waits any longer for a connection.
const NEVER: Duration = Duration::from_secs(60);

/// What somebody was told whose reply was eaten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
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
                lane(redis, (number..times).step_by(LANES as usize), |told| {
                    progress.at(done.fetch_add(1, Ordering::Relaxed) + 1, format!("{told:?}"));
                })
            })
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().map(|lane| lane.join().map_err(|_| "a lane has panicked".to_owned())?).collect()
    });
    let mut told = Vec::new();
    for lane in lanes {
        let (lane, eaten): (Vec<_>, u64) = lane?;
        report.fact(format!("a lane of {} questions, {} replies eaten", lane.len(), thousands(eaten)));
        report.claim(eaten == lane.len() as u64, "each question loses exactly one reply", thousands(eaten));
        told.extend(lane);
    }
    judge(&told, &direct, report)
}

/// Asks about these numbers one after the other, each time without a reply. What each was told, and how many replies
/// were eaten.
fn lane(
    redis: &Redis,
    numbers: impl Iterator<Item = u64>,
    progress: impl Fn(Told),
) -> Result<(Vec<(u64, Told)>, u64), String> {
    let proxy = Proxy::start(redis.address());
    let store = open(&proxy.url(), StoreOptions::DEADLINE, false)?;
    let nobody = Someone::new("nobody", "1000000/s burst 1000000");
    let mut all = Vec::new();
    for number in numbers {
        until("a store that is connected", NEVER, || wait(nobody.take(&store)).ok());
        let is_cut = number.is_multiple_of(2);
        proxy.only_for(&["EVALSHA", "EVAL"]);
        proxy.eat_replies(1, if is_cut { Afterwards::Cut } else { Afterwards::Silence });
        let told = match wait(someone(number).take(&store)) {
            Ok(_) => Told::Decided,
            Err(error) if error.is_retryable() => Told::Nothing,
            Err(_) => Told::Unknown,
        };
        // On a busy machine the reply may come after nobody waits for it any more.
        let wanted = all.len() as u64 + 1;
        until("a reply that is eaten", NEVER, || (proxy.counters().eaten >= wanted).then_some(()));
        proxy.clear();
        proxy.cut();
        all.push((number, told));
        progress(told);
    }
    Ok((all, proxy.counters().eaten))
}

fn someone(number: u64) -> Someone {
    Someone::new(format!("someone {number}"), LIMITS[(number % LIMITS.len() as u64) as usize])
}

fn judge(told: &[(u64, Told)], direct: &RedisStore, report: &mut Report) -> Outcome {
    let mut charged = Vec::new();
    for (number, told) in told {
        let spent = wait(someone(*number).spent(direct)).map_err(|error| reason(&error))?;
        charged.push((*number, *told, spent));
    }
    let count = |is_meant: &dyn Fn(Told, u64) -> bool| {
        charged.iter().filter(|(_, told, spent)| is_meant(*told, *spent)).count() as u64
    };
    let (none, once) = (count(&|_, spent| spent == 0), count(&|_, spent| spent == 1));
    report.fact(format!(
        "{} lost replies: {} not known to who asked, {} told that nothing was done, {} decided all the same",
        thousands(charged.len() as u64),
        thousands(count(&|told, _| told == Told::Unknown)),
        thousands(count(&|told, _| told == Told::Nothing)),
        thousands(count(&|told, _| told == Told::Decided)),
    ));
    report.fact(format!("{} were charged once, {} not at all", thousands(once), thousands(none)));
    let twice: Vec<_> = charged.iter().filter(|(_, _, spent)| *spent > 1).take(5).collect();
    report.claim(
        once + none == charged.len() as u64,
        "each is charged at most once",
        format!("{} were charged more, {twice:?}", charged.len() as u64 - once - none),
    );
    let lies = count(&|told, spent| told == Told::Nothing && spent > 0);
    report.claim(lies == 0, "nobody was charged who was told that nothing was done", lies);
    report.claim(once > 0, "the work was done before the reply was lost", thousands(once));
    Ok(())
}
