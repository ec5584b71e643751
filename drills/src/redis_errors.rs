//! Everything that a Redis says instead of doing what it was asked, a thousand times each.
//!
//! A proxy says it in place of the server, so nothing is ever done then. What has a remedy that is known is not seen by
//! the caller, everything else is reported as an error after which nothing was spent, and the next question may be
//! answered again. Then the server forgets its scripts ten times a second, and no caller notices.

mod forgetful;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::{Options, Progress, Report, Stopwatch, milliseconds, pause, thousands};
use testbed::{Flavour, Proxy, Redis};
use tidegate_redis::RedisStore;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::someone::{Someone, open, reason, wait};

const TIMES: u64 = 1000;
/// Questions that are asked at once while a spell of refusals lasts.
const SPELL: u64 = 100;
/// How soon a question is answered again.
const SOON: Duration = Duration::from_secs(1);
const NEVER: Duration = Duration::from_secs(30);
/// A machine that is busy is no error of the server.
const PATIENT: Duration = Duration::from_secs(2);
/// Nothing of it is regained while the drill runs.
const LIMIT: &str = "1000000/365d";

/// What a server says, and whether there is a remedy, so that the caller does not notice.
const SAID: [(&str, bool); 11] = [
    ("-READONLY You can't write against a read only replica.", false),
    ("-LOADING Redis is loading the dataset in memory", false),
    ("-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", false),
    ("-CLUSTERDOWN The cluster is down", false),
    ("-TRYAGAIN Multiple keys request during rehashing of slot", true),
    ("-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", false),
    ("-OOM command not allowed when used memory > 'maxmemory'.", false),
    ("-NOAUTH Authentication required.", false),
    ("-NOREPLICAS Not enough good replicas to write.", false),
    (
        "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
        false,
    ),
    ("-NOSCRIPT No matching script. Please use EVAL.", true),
];

/// What became of one kind of refusal.
#[derive(Debug, Default)]
struct Counts {
    passed: u64,
    reported: u64,
    /// Reported as something else, or as if something could have been spent.
    misreported: Vec<String>,
    slowest: Duration,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let panics = count_panics();
    let times = options.counted(TIMES);
    let redis = Redis::start(Flavour::Redis7);
    let proxy = Proxy::start(redis.address());
    let store = open(&proxy.url(), PATIENT, false)?;
    let progress = Progress::new(report.name(), times * SAID.len() as u64);
    let mut done = 0;
    for (said, has_remedy) in SAID {
        let code = said[1..].split(' ').next().unwrap_or_default();
        let someone = Someone::new(code, LIMIT);
        answers(&store, &someone)?;
        proxy.only_for(&["EVALSHA", "EVAL"]);
        let mut counts = Counts { passed: 1, ..Counts::default() };
        for _ in 0..times {
            proxy.answer(1, said);
            counts.note(wait(someone.take(&store)), code);
            counts.slowest = counts.slowest.max(answers(&store, &someone)?);
            counts.passed += 1;
            done += 1;
            progress.at(done, code);
        }
        let expected = if has_remedy { 1 + 2 * times } else { 1 + times };
        spell(&proxy, &store, (&someone, said), &mut counts)?;
        say(&counts, (code, has_remedy, expected, times), report);
        let spent = wait(someone.spent(&store)).map_err(|error| reason(&error))?;
        report.claim(
            spent == counts.passed,
            &format!("{code}: spent is what passed"),
            format!("{} of {}", thousands(spent), thousands(counts.passed)),
        );
    }
    forgetful::run(options, report)?;
    let panicked = panics.load(Ordering::Relaxed);
    report.claim(panicked == 0, "nothing panics", panicked);
    Ok(())
}

impl Counts {
    fn note(&mut self, answer: Result<bool, tidegate::StoreError>, code: &str) {
        match answer {
            Ok(_) => self.passed += 1,
            Err(error) => {
                self.reported += 1;
                if !error.is_retryable() || !reason(&error).contains(code) {
                    self.misreported.push(reason(&error));
                }
            }
        }
    }
}

/// Many ask at once while the server refuses; it ends, and the next is answered.
fn spell(
    proxy: &Proxy,
    store: &RedisStore,
    (someone, said): (&Someone, &str),
    counts: &mut Counts,
) -> Outcome {
    proxy.answer(SPELL, said);
    let passed: u64 = wait(async {
        let mut asked = JoinSet::new();
        for _ in 0..SPELL {
            let (store, someone) = (store.clone(), someone.clone());
            asked.spawn(async move { u64::from(someone.take(&store).await.is_ok()) });
        }
        asked.join_all().await.into_iter().sum()
    });
    // Those who were not refused in the end: a question may have been asked more than once.
    proxy.answer(0, said);
    counts.passed += passed;
    counts.slowest = counts.slowest.max(answers(store, someone)?);
    counts.passed += 1;
    Ok(())
}

/// Asks until a request is admitted, and returns how long that took.
fn answers(store: &RedisStore, someone: &Someone) -> Result<Duration, String> {
    let watch = Stopwatch::start();
    loop {
        match wait(someone.take(store)) {
            Ok(true) => return Ok(watch.elapsed()),
            Ok(false) => return Err(format!("{} is denied; its limit is {LIMIT}", someone.name)),
            Err(error) if watch.elapsed() > NEVER => return Err(reason(&error)),
            Err(_) => pause(Duration::from_millis(1)),
        }
    }
}

fn say(counts: &Counts, (code, has_remedy, expected, times): (&str, bool, u64, u64), report: &mut Report) {
    let first = counts.misreported.first().map(String::as_str).unwrap_or_default();
    report.claim(
        counts.misreported.is_empty(),
        &format!("{code}: reported as what it is, with nothing spent"),
        format!("{} of {} otherwise {first}", counts.misreported.len(), thousands(counts.reported)),
    );
    let (claim, holds) = match has_remedy {
        true => ("the caller does not notice", counts.reported == 0 && counts.passed > expected),
        false => ("every one is reported", counts.reported == times && counts.passed > expected),
    };
    let (reported, passed) = (thousands(counts.reported), thousands(counts.passed));
    report.claim(holds, &format!("{code}: {claim}"), format!("{reported} reported, {passed} passed"));
    report.claim(
        counts.slowest <= SOON,
        &format!("{code}: answered again within 1 s"),
        milliseconds(counts.slowest),
    );
}

/// Counts panics of all threads from now on.
fn count_panics() -> Arc<AtomicU64> {
    let panics = Arc::new(AtomicU64::new(0));
    let (count, before) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |information| {
        count.fetch_add(1, Ordering::Relaxed);
        before(information);
    }));
    panics
}
