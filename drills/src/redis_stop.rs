//! A Redis that is stopped, killed or not there yet, under two thousand requests per second.
//!
//! A gate with three rules, each with its own way to go on without its store, on a store with the deadline that it has
//! by default. Requests are due at even times, whatever became of those before. While the Redis is away each
//! is answered by its rule, in time; when it is back, it decides again.

mod load;
mod sampler;

use std::time::Duration;

use harness::{Options, Progress, Report, mebibytes, milliseconds, pause, quantile, thousands};
use testbed::{Bound, By, Decided, Flavour, Judge, Redis};

use crate::Outcome;
use load::{CLOSED, Calls, LOCAL, Load, NODES, OPEN};
use sampler::Samples;

/// How long the Redis is away.
const SECONDS: u64 = 30;
/// How long all is well before, and after.
const BEFORE: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(5);
/// The deadline, and what may come on top of it.
const DEADLINE: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_millis(5);
const ALL: Duration = Duration::from_millis(100);
/// How soon the Redis decides again.
const SOON: Duration = Duration::from_secs(2);
const MOST_CONNECTIONS: u64 = 4;
const MOST_CONNECTS: u64 = 10;
const MOST_GROWTH: u64 = 50 << 20;
/// The clock of the Redis is another one than ours.
const DOUBT: Duration = Duration::from_millis(5);

/// How the Redis is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    Stopped,
    Killed,
    NotYet,
}

/// From when to when it was away; what is asked and answered in between it cannot have decided.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: Duration,
    to: Duration,
    /// When it could be reached again.
    back: Duration,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let seconds = Duration::from_secs(options.counted(SECONDS));
    for away in [Away::Stopped, Away::Killed, Away::NotYet] {
        report.fact(format!("a Redis that is {}", away.name()));
        let redis = Redis::start(Flavour::Redis7);
        if away == Away::NotYet {
            redis.kill();
        }
        let load = Load::start(&redis.url())?;
        let progress = Progress::new(format!("{}, {}", report.name(), away.name()), seconds.as_secs());
        let outage = go(away, &redis, &load, (seconds, &progress))?;
        let (calls, samples, counted) = load.finish()?;
        say(&calls, &outage, report);
        judge(away, &calls, &outage, (counted, report));
        say_samples(&samples, report);
    }
    Ok(())
}

impl Away {
    fn name(self) -> &'static str {
        match self {
            Away::Stopped => "stopped",
            Away::Killed => "killed and started again",
            Away::NotYet => "not there yet",
        }
    }
}

fn go(
    away: Away,
    redis: &Redis,
    load: &Load,
    (seconds, progress): (Duration, &Progress),
) -> Result<Outage, String> {
    if away != Away::NotYet {
        pause(BEFORE);
    }
    match away {
        Away::Stopped => redis.stop(),
        Away::Killed => redis.kill(),
        Away::NotYet => {}
    }
    let from = load.now();
    while load.now() < from + seconds {
        pause(Duration::from_secs(1).min(seconds));
        progress.at((load.now() - from).as_secs(), format!("{:?}", load.failures()));
    }
    let to = load.now();
    match away {
        Away::Stopped => redis.resume(),
        Away::Killed | Away::NotYet => redis.restart(),
    }
    let back = load.now();
    pause(AFTER);
    Ok(Outage { from, to, back })
}

fn say(calls: &Calls, outage: &Outage, report: &mut Report) {
    let during = calls.between(outage.from, outage.to);
    report.fact(format!(
        "{} calls, {} of them while it was away for {:.1} s",
        thousands(calls.len()),
        thousands(during.len()),
        (outage.to - outage.from).as_secs_f64(),
    ));
    for (name, some) in [("all", calls), ("those while it was away", &during)] {
        let (asked, due) = (some.took(), some.late());
        let at = |of: &[Duration], part| milliseconds(quantile(of.to_vec(), part));
        report.fact(format!(
            "{name}, answered after they were asked: median {}, 99 % {}, 99.9 % {}, all {}",
            at(&asked, 0.5),
            at(&asked, 0.99),
            at(&asked, 0.999),
            at(&asked, 1.0),
        ));
        report.fact(format!(
            "{name}, after they were due: median {}, 99 % {}, 99.9 % {}, all {}",
            at(&due, 0.5),
            at(&due, 0.99),
            at(&due, 0.999),
            at(&due, 1.0),
        ));
    }
    let unasked = calls.unasked();
    report.fact(format!(
        "the machine itself let them wait before they were asked: 99.9 % {}, all {}",
        milliseconds(quantile(unasked.clone(), 0.999)),
        milliseconds(quantile(unasked, 1.0)),
    ));
    let late = |bound: Duration| calls.took().iter().filter(|took| **took > bound).count() as u64;
    let (later, latest) = (late(DEADLINE + MOST), late(DEADLINE + ALL));
    let total = thousands(calls.len());
    report.claim(
        later * 1000 <= calls.len(),
        "99.9 % are answered within 20 + 5 ms",
        format!("{} of {total} later", thousands(later)),
    );
    report.claim(
        latest == 0,
        "all are answered within 20 + 100 ms",
        format!("{} of {total} later", thousands(latest)),
    );
    report.claim(calls.errors == 0, "every call has an answer", format!("{} errors", calls.errors));
    say_return(calls, outage, report);
}

fn say_return(calls: &Calls, outage: &Outage, report: &mut Report) {
    let is_by_redis = |decided: &&Decided| decided.by == By::Redis && decided.is_allowed;
    let after = calls.decided().filter(|decided| decided.asked >= outage.to);
    let first = after.filter(is_by_redis).map(|decided| decided.answered).min();
    let took = first.map(|first| first.saturating_sub(outage.back));
    report.claim(
        took.is_some_and(|took| took <= SOON),
        "the Redis decides again within 2 s",
        took.map_or_else(|| "never".to_owned(), |took| format!("{took:?}")),
    );
    let later = calls.between(outage.back + SOON, Duration::MAX);
    let by_redis = later.decided().filter(|decided| decided.by == By::Redis).count() as u64;
    report.claim(
        later.len() > 0 && by_redis * 100 >= later.len() * 99,
        "and then all but 1 % at most",
        format!("{} of {}", thousands(by_redis), thousands(later.len())),
    );
}

fn judge(away: Away, calls: &Calls, outage: &Outage, (counted, report): (u64, &mut Report)) {
    let of = |name: &str| calls.decided().filter(|decided| decided.key == name).cloned().collect::<Vec<_>>();
    let during = calls.between(outage.from, outage.to);
    let count = |name: &str, is_allowed: bool| {
        let is_meant = |decided: &&Decided| decided.key == name && decided.is_allowed == is_allowed;
        during.decided().filter(is_meant).count() as u64
    };
    let closed = Judge::new(of(CLOSED));
    let none = closed.closed().and_then(|()| closed.nothing_between(outage.from, outage.to));
    report.claim(
        none.is_ok() && count(CLOSED, false) > 0,
        "closed: no request is admitted",
        none.err().map_or_else(
            || format!("{} denied", thousands(count(CLOSED, false))),
            |breach| breach.to_string(),
        ),
    );
    report.claim(
        count(OPEN, false) == 0 && count(OPEN, true) > 0,
        "open: everybody is admitted",
        format!("{} admitted, {} denied", thousands(count(OPEN, true)), count(OPEN, false)),
    );
    let open = Judge::new(of(OPEN)).open(counted);
    report.claim(
        open.is_ok(),
        "and all of them were counted",
        open.err().map_or_else(|| thousands(counted), |breach| breach.to_string()),
    );
    let (burst, amount) = load::LOCAL_LIMIT;
    let whole = Bound::new(burst, amount, Duration::from_secs(1)).slack(DOUBT);
    let share = Bound::new(burst / NODES, amount / NODES, Duration::from_secs(1)).slack(DOUBT);
    let local = Judge::new(of(LOCAL)).local(&share, 1);
    claim_seen(report, "local: one of four nodes admits a quarter of the limit at most", local);
    // What is not kept on disk is gone with the process.
    let shared = if away == Away::Killed { whole.loss(outage.from, outage.back) } else { whole };
    claim_seen(report, "the Redis admits the limit at most", Judge::new(of(LOCAL)).shared(&shared));
}

fn claim_seen(report: &mut Report, claim: &str, found: Result<testbed::Seen, testbed::Breach>) {
    report.claim(
        found.as_ref().is_ok_and(|seen| seen.admitted > 0),
        claim,
        found.map_or_else(
            |breach| breach.to_string(),
            |seen| {
                let room = seen.room.unwrap_or_default();
                format!("{} admitted, room for {room} in the fullest", thousands(seen.admitted))
            },
        ),
    );
}

fn say_samples(samples: &Samples, report: &mut Report) {
    let (most, connects) = (samples.most_connections(), samples.most_connects_in_a_second());
    report.claim(most <= MOST_CONNECTIONS, "few connections at any time", format!("{most} at most"));
    report.claim(
        connects <= MOST_CONNECTS,
        "at most 10 attempts to connect in any second",
        format!("{connects} at most, {} in all", samples.connects()),
    );
    report.fact(format!("looked at least every {}", milliseconds(samples.longest_gap())));
    let growth = samples.growth();
    report.claim(growth <= MOST_GROWTH, "memory grows by 50 MiB at most", mebibytes(growth));
}
