//! A server that forgets its scripts ten times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::{Options, Report, Stopwatch, milliseconds, pause, quantile, thousands};
use testbed::{Flavour, Redis};
use tidegate_redis::RedisStore;
use tokio::task::JoinSet;

use super::PATIENT;
use crate::Outcome;
use crate::someone::{Someone, open, reason, wait};

const LASTS: u64 = 60;
/// How long is asked before, to compare with.
const QUIET: Duration = Duration::from_secs(10);
const FORGETS_EVERY: Duration = Duration::from_millis(100);
const ASKS_EVERY: Duration = Duration::from_millis(1);
/// Each algorithm has a script of its own.
const LIMITS: [&str; 6] = [
    "100000/s burst 100000",
    "100/s sliding-log",
    "1000/s fixed-window",
    "1000/s sliding-window",
    "1000/s pacer",
    "1000/s queue 10 leaky-bucket",
];

/// What was heard.
#[derive(Debug, Default)]
struct Heard {
    took: Vec<Duration>,
    errors: Vec<String>,
}

pub(super) fn run(options: &Options, report: &mut Report) -> Outcome {
    let redis = Redis::start(Flavour::Redis7);
    let store = open(&redis.url(), PATIENT, false)?;
    let quiet = wait(load(&store, QUIET.mul_f64(options.scale.min(1.0))));
    let (before, lasts) = (store.status(), Duration::from_secs(options.scaled(LASTS)));
    let is_over = AtomicBool::new(false);
    let (heard, forgotten) = thread::scope(|scope| {
        let forgetting = scope.spawn(|| forget(&redis, &is_over));
        let heard = wait(load(&store, lasts));
        is_over.store(true, Ordering::Relaxed);
        (heard, forgetting.join())
    });
    let forgotten = forgotten.map_err(|_| "the forgetting thread has panicked".to_owned())?;
    let status = store.status();
    report.fact(format!(
        "scripts forgotten {} times in {lasts:?}: {} questions, {} scripts sent again",
        thousands(forgotten),
        thousands(heard.took.len() as u64),
        thousands(status.scripts_sent - before.scripts_sent),
    ));
    let first = heard.errors.first().map(String::as_str).unwrap_or_default();
    report.claim(heard.errors.is_empty(), "no error", format!("{} errors {first}", heard.errors.len()));
    report.claim(
        status.scripts_sent - before.scripts_sent >= forgotten,
        "scripts had to be sent again",
        thousands(status.scripts_sent - before.scripts_sent),
    );
    let at = |heard: &Heard, part| quantile(heard.took.clone(), part);
    for part in [0.5, 0.99, 0.999] {
        let (without, with) = (milliseconds(at(&quiet, part)), milliseconds(at(&heard, part)));
        report.fact(format!("{} % are answered within {with}, without forgetting {without}", part * 100.0));
    }
    let (without, with) = (at(&quiet, 0.99), at(&heard, 0.99));
    report.claim(
        with < 3 * without,
        "99 % are answered within three times what it takes else",
        format!("{} and {}", milliseconds(with), milliseconds(without)),
    );
    Ok(())
}

fn forget(redis: &Redis, is_over: &AtomicBool) -> u64 {
    let (mut connection, mut times) = (redis.connection(), 0);
    while !is_over.load(Ordering::Relaxed) {
        pause(FORGETS_EVERY);
        connection.call(&["SCRIPT", "FLUSH"]).unwrap_or_else(|error| panic!("SCRIPT FLUSH: {error}"));
        times += 1;
    }
    times
}

/// Asks at even times for this long.
async fn load(store: &RedisStore, lasts: Duration) -> Heard {
    let people: Arc<Vec<_>> = Arc::new(LIMITS.iter().map(|limit| Someone::new(*limit, limit)).collect());
    let (watch, mut ticks) = (Stopwatch::start(), tokio::time::interval(ASKS_EVERY));
    let (mut under_way, mut heard, mut number) = (JoinSet::new(), Heard::default(), 0);
    while watch.elapsed() < lasts {
        ticks.tick().await;
        let (store, people, place) = (store.clone(), Arc::clone(&people), number % LIMITS.len());
        under_way.spawn(async move {
            let watch = Stopwatch::start();
            people[place].take(&store).await.map(|_| watch.elapsed())
        });
        number += 1;
        while let Some(Ok(answer)) = under_way.try_join_next() {
            heard.note(answer);
        }
    }
    under_way.join_all().await.into_iter().for_each(|answer| heard.note(answer));
    heard
}

impl Heard {
    fn note(&mut self, answer: Result<Duration, tidegate::StoreError>) {
        match answer {
            Ok(took) => self.took.push(took),
            Err(error) => self.errors.push(reason(&error)),
        }
    }
}
