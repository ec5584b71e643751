//! Several stores on one Redis, as if each were another machine, that ask all the time and write down what they hear.
//!
//! A key whose name begins with [`PULSE`] is never denied: an answer about it came from a Redis just now, and is not
//! written down but tells that decisions come again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use harness::{Progress, Report, Stopwatch, pause, thousands};
use testbed::{By, Decided};
use tidegate::{Ask, Store as _};
use tidegate_redis::{Options, RedisStore, Status};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::someone::{Someone, open, reason, wait};
use crate::{Outcome, attempt};

/// How names begin of those who are never refused.
pub(crate) const PULSE: &str = "pulse";
/// The limit of those.
pub(crate) const UNLIMITED: &str = "100000/s burst 100000";

/// Between two looks at what was heard.
const LOOK: Duration = Duration::from_millis(5);

/// Stores that ask.
#[derive(Debug)]
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    asking: Option<JoinHandle<()>>,
}

struct Shared {
    watch: Stopwatch,
    stores: Vec<RedisStore>,
    /// Who is asked about together in question number so and so; all stores ask the same.
    question: Box<dyn Fn(u64) -> Vec<Someone> + Send + Sync>,
    /// With the number of the store that has asked.
    log: Mutex<Vec<(usize, Decided)>>,
    pulses: Mutex<Pulses>,
    errors: Mutex<BTreeMap<String, u64>>,
    unknown: AtomicU64,
    is_over: AtomicBool,
}

/// The first answers since some time, by store and name.
#[derive(Debug, Default)]
struct Pulses {
    since: Duration,
    first: BTreeMap<(usize, String), Duration>,
}

/// All that was heard.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) log: Vec<Decided>,
    /// Which store has asked for each.
    by: Vec<usize>,
    /// What stores said instead of an answer, and how often.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Errors after which something may have been spent.
    pub(crate) unknown: u64,
}

impl Heard {
    /// Says what was heard.
    pub(crate) fn say(&self, report: &Report) {
        let admitted = self.log.iter().filter(|decided| decided.is_allowed).count() as u64;
        report.fact(format!(
            "{} decisions written down, {} admitted; {} questions failed, {} of them with an unknown outcome",
            thousands(self.log.len() as u64),
            thousands(admitted),
            thousands(self.errors.values().sum()),
            thousands(self.unknown),
        ));
        for (error, times) in &self.errors {
            report.fact(format!("{:>9} times: {error}", thousands(*times)));
        }
    }

    /// Forgets what was answered after a time.
    fn cut(&mut self, at: Duration) {
        let kept = self.by.iter().zip(&self.log).filter(|(_, decided)| decided.answered <= at);
        (self.by, self.log) = kept.map(|(store, decided)| (*store, decided.clone())).unzip();
    }

    /// Writes everything down for the analysis, and says where: the store and what it heard, a line
    /// each.
    fn keep(&self, report: &Report) -> Outcome {
        let path = std::env::temp_dir().join(format!("tidegate-{}.log", report.name()));
        let text: String =
            self.by.iter().zip(&self.log).map(|(store, decided)| format!("{store} {decided}\n")).collect();
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        report.fact(format!("all that was heard is in {}", path.display()));
        Ok(())
    }
}

/// The rounds of a drill under a fleet, as far as they could be done.
#[derive(Debug)]
pub(crate) struct Rounds<R> {
    done: Vec<R>,
    /// When the round began that could not be done, and why.
    failed: Option<(Duration, String)>,
}

impl<R: fmt::Debug> Rounds<R> {
    /// Does so many rounds, numbered from one, until one cannot be done. Each says what its line of progress says.
    pub(crate) fn go(
        (rounds, watch): (u64, Stopwatch),
        report: &Report,
        mut round: impl FnMut(u64) -> Result<(R, String), String>,
    ) -> Rounds<R> {
        let progress = Progress::new(report.name(), rounds);
        let mut done = Vec::new();
        for number in 1..=rounds {
            let began = watch.elapsed();
            match attempt(|| round(number)) {
                Ok((round, detail)) => {
                    progress.at(number, detail);
                    done.push(round);
                }
                Err(problem) => {
                    return Rounds { done, failed: Some((began, format!("round {number}: {problem}"))) };
                }
            }
        }
        Rounds { done, failed: None }
    }

    /// Ends the fleet, lets what it heard be judged, and writes all of it down if something is broken.
    pub(crate) fn end(
        self,
        fleet: Fleet,
        report: &mut Report,
        judge: impl FnOnce(&[R], &Heard, &mut Report),
    ) -> Outcome {
        let mut heard = fleet.finish();
        if let Some((began, _)) = &self.failed {
            heard.cut(*began);
        }
        judge(&self.done, &heard, report);
        if report.is_broken() || self.failed.is_some() {
            self.done.iter().for_each(|round| report.fact(format!("{round:?}")));
            heard.keep(report)?;
        }
        self.failed.map_or(Ok(()), |(_, problem)| Err(problem))
    }
}

impl Fleet {
    /// Each store asks a question every so often.
    pub(crate) fn start(
        stores: Vec<RedisStore>,
        every: Duration,
        question: impl Fn(u64) -> Vec<Someone> + Send + Sync + 'static,
    ) -> Fleet {
        let shared = Arc::new(Shared {
            watch: Stopwatch::start(),
            stores,
            question: Box::new(question),
            log: Mutex::default(),
            pulses: Mutex::default(),
            errors: Mutex::default(),
            unknown: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let asker = Arc::clone(&shared);
        let asking = thread::spawn(move || wait(ask_all(asker, every)));
        Fleet { shared, asking: Some(asking) }
    }

    /// The watch by which its log is written.
    pub(crate) fn watch(&self) -> Stopwatch {
        self.shared.watch
    }

    /// The time of its log.
    pub(crate) fn now(&self) -> Duration {
        self.watch().elapsed()
    }

    /// Forgets all pulses; those that are asked for from now on count. What time it is.
    pub(crate) fn feel(&self) -> Duration {
        let mut pulses = lock(&self.shared.pulses);
        *pulses = Pulses { since: self.now(), first: BTreeMap::new() };
        pulses.since
    }

    /// Waits until every store has had an answer about so many pulses, and says when the last of these came.
    pub(crate) fn wait_for_pulses(&self, count: usize, within: Duration) -> Result<Duration, String> {
        let wanted = count * self.shared.stores.len();
        let watch = Stopwatch::start();
        loop {
            let pulses = lock(&self.shared.pulses);
            if pulses.first.len() >= wanted {
                return Ok(pulses.first.values().max().copied().unwrap_or_default());
            }
            let felt = pulses.first.len();
            drop(pulses);
            if watch.elapsed() > within {
                let said: Vec<_> = self.shared.stores.iter().map(|store| store.status().what).collect();
                return Err(format!("{felt} of {wanted} pulses after {within:?}; stores say {said:?}"));
            }
            pause(LOOK);
        }
    }

    /// How many decisions have been written down.
    pub(crate) fn decided(&self) -> u64 {
        lock(&self.shared.log).len() as u64
    }

    /// How each store is doing.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        self.shared.stores.iter().map(RedisStore::status).collect()
    }

    /// The decisions about one so far.
    pub(crate) fn log_of(&self, name: &str) -> Vec<Decided> {
        let log = lock(&self.shared.log);
        log.iter().map(|(_, decided)| decided).filter(|decided| decided.key == name).cloned().collect()
    }

    /// Stops asking, and waits until everything was answered.
    fn finish(mut self) -> Heard {
        self.end();
        let (by, log) = std::mem::take(&mut *lock(&self.shared.log)).into_iter().unzip();
        let errors = std::mem::take(&mut *lock(&self.shared.errors));
        Heard { log, by, errors, unknown: self.shared.unknown.load(Ordering::Relaxed) }
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(asking) = self.asking.take() {
            asking.join().unwrap_or_else(|_| panic!("an asking thread has panicked"));
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.end();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("stores", &self.stores).finish_non_exhaustive()
    }
}

/// Stores on the Redis of this URL with the default deadline; every second one remembers no refusals.
pub(crate) fn stores(url: &str, count: usize) -> Result<Vec<RedisStore>, String> {
    (0..count).map(|number| open(url, Options::DEADLINE, number.is_multiple_of(2))).collect()
}

/// An error in the words that are the same for every server.
fn without_address(reason: &str) -> String {
    let (first, rest) = reason.split_once(": ").unwrap_or((reason, reason));
    let is_address = first.parse::<std::net::SocketAddr>().is_ok();
    let words = if is_address { rest } else { reason };
    // A redirection names a slot and another address.
    words.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}

async fn ask_all(shared: Arc<Shared>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut under_way = JoinSet::new();
    let mut number = 0;
    while !shared.is_over.load(Ordering::Relaxed) {
        ticks.tick().await;
        for store in 0..shared.stores.len() {
            under_way.spawn(ask(Arc::clone(&shared), store, number));
        }
        number += 1;
        while under_way.try_join_next().is_some() {}
    }
    under_way.join_all().await;
}

async fn ask(shared: Arc<Shared>, store: usize, number: u64) {
    let people = (shared.question)(number);
    let asks: Vec<_> = people.iter().map(|someone| (someone.subject(), Ask::ONE)).collect();
    let asked = shared.watch.elapsed();
    let answer = shared.stores[store].take(&asks).await;
    let answered = shared.watch.elapsed();
    if let Err(error) = &answer {
        *lock(&shared.errors).entry(without_address(&reason(error))).or_default() += 1;
        shared.unknown.fetch_add(u64::from(!error.is_retryable()), Ordering::Relaxed);
    }
    // Where the store fails there is no decision, as under a rule that fails closed.
    let (is_allowed, by) = match &answer {
        Ok(decisions) => (decisions.is_allowed(), By::Redis),
        Err(_) => (false, By::Closed),
    };
    for someone in people {
        if !someone.name.starts_with(PULSE) {
            let key = someone.name;
            lock(&shared.log).push((store, Decided { asked, answered, key, is_allowed, cost: 1, by }));
        } else if is_allowed {
            let mut pulses = lock(&shared.pulses);
            if asked >= pulses.since {
                pulses.first.entry((store, someone.name)).or_insert(answered);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_same_from_any_source() {
        let one = without_address("127.0.0.1:7000: MOVED 42 127.0.0.1:7001; write redis+cluster://");
        assert_eq!(one, without_address("127.0.0.1:7002: MOVED 9 127.0.0.1:7003; write redis+cluster://"));
        assert_eq!(without_address("redirected too often"), "redirected too often");
    }
}
