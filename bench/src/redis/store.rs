//! Our store with many who ask at once: about keys held at their limit, with denials remembered and not, and about
//! keys that pass.

use std::rc::Rc;
use std::time::Duration;

use harness::{Goal, cpu_time, cpu_time_of_threads, median, now};
use testbed::Flavour;
use tidegate::{Ask, Key, PreparedLimit, Store as _};
use tidegate_redis::{Options, RedisStore};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::sides::{Counted, Verdict};
use crate::server::host::Server;

/// How many ask at once.
const CONCURRENT: usize = 64;
/// What is asked in one turn.
const ASKS: usize = 64_000;
const ROUNDS: usize = 7;
/// So many keys pass, and so many are held.
const PASSING: usize = 10_000;
const HELD: usize = 64;
/// A busy machine is not to be measured as a failure.
const DEADLINE: Duration = Duration::from_secs(5);
/// The thread of a store's connections.
const THREAD: &str = "tidegate-redis";

/// A store, and what is asked of it.
struct Asked {
    name: &'static str,
    store: RedisStore,
    keys: Rc<[Key]>,
    limit: PreparedLimit,
    verdict: Verdict,
    rounds: Vec<Sample>,
}

/// What one turn took, each per ask; times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    calls: f64,
    server: f64,
    thread: f64,
    askers: f64,
    took: f64,
}

/// Prints a table.
pub(super) fn run(&flavour: &Flavour) -> Result<Vec<Goal>, String> {
    let server = Server::redis(flavour)?;
    let runtime = Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let mut all = [
        Asked::new("100/h burst 1000: allowed", &server, PASSING, "100/h burst 1000", Verdict::Allowed)?,
        Asked::new("1/h, held, denials not remembered", &server, HELD, "1/h", Verdict::Denied)?,
        Asked::new("1/h, held, denials remembered", &server, HELD, "1/h", Verdict::Denied)?
            .remembering(&server)?,
    ];
    let start = now();
    for asked in &all {
        asked.settle(&runtime)?;
    }
    for round in 0..=ROUNDS {
        for asked in &mut all {
            let sample = asked.turn(&runtime, &server)?;
            if round > 0 {
                asked.rounds.push(sample);
            }
        }
    }
    print(&all);
    let calls: f64 = all[2].rounds.iter().map(|sample| sample.calls * ASKS as f64).sum();
    // A denial is remembered for ten seconds at most, then each key is asked about once more.
    let due = HELD as f64 * (start.elapsed().as_secs() / 10 + 1) as f64;
    Ok(vec![Goal::at_most("redis/calls-while-held", (calls - due).max(0.0), 0.0, 0.0)])
}

fn print(all: &[Asked]) {
    println!("RedisStore, {CONCURRENT} ask at once, {ASKS} asks in each of {ROUNDS} rounds; \u{b5}s per ask");
    println!(
        "{:<38} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "", "calls/ask", "server CPU", "thread CPU", "asker CPU", "asks/s"
    );
    for asked in all {
        let of = |of: fn(&Sample) -> f64| median(asked.rounds.iter().map(of));
        let (calls, server) = (of(|sample| sample.calls), of(|sample| sample.server));
        let (thread, askers) = (of(|sample| sample.thread), of(|sample| sample.askers));
        let rate = 1e6 / of(|sample| sample.took);
        println!(
            "{:<38} {calls:>12.4} {server:>10.3} {thread:>10.3} {askers:>10.3} {rate:>10.0}",
            asked.name
        );
    }
    println!();
}

impl Asked {
    /// A store that asks the server about everything.
    fn new(
        name: &'static str,
        server: &Server,
        keys: usize,
        limit: &str,
        verdict: Verdict,
    ) -> Result<Asked, String> {
        let limit = limit.parse().map_err(|error| format!("{error}"))?;
        let limit = PreparedLimit::dynamic("login", limit);
        let keys = (0..keys).map(|number| Key::new(format!("{verdict:?}:{number:06}"))).collect();
        Ok(Asked { name, store: open(server, false)?, keys, limit, verdict, rounds: Vec::new() })
    }

    fn remembering(self, server: &Server) -> Result<Asked, String> {
        Ok(Asked { store: open(server, true)?, ..self })
    }

    /// Asks about each key twice: then those that do not pass are held.
    fn settle(&self, runtime: &Runtime) -> Result<(), String> {
        runtime.block_on(async {
            self.store.ready().await.map_err(|error| error.to_string())?;
            for key in self.keys.iter().chain(&*self.keys) {
                is_allowed(&self.store, key, &self.limit).await?;
            }
            Ok(())
        })
    }

    fn turn(&self, runtime: &Runtime, server: &Server) -> Result<Sample, String> {
        let counted = Counted::of(server)?;
        let before = (server.cpu_time()?, cpu_time_of_threads(THREAD), cpu_time());
        let start = now();
        runtime.block_on(self.ask())?;
        let took = start.elapsed();
        let after = (server.cpu_time()?, cpu_time_of_threads(THREAD), cpu_time());
        let calls = Counted::of(server)?.calls - counted.calls;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / ASKS as f64;
        Ok(Sample {
            calls: calls as f64 / ASKS as f64,
            server: each(after.0.saturating_sub(before.0)),
            thread: each(after.1.saturating_sub(before.1)),
            askers: each(after.2.saturating_sub(before.2)),
            took: each(took),
        })
    }

    /// Many ask at once, each about one key after the other.
    async fn ask(&self) -> Result<(), String> {
        let all = LocalSet::new();
        let asking = (0..CONCURRENT).map(|place| {
            let (store, keys, limit) = (self.store.clone(), self.keys.clone(), self.limit.clone());
            let expected = self.verdict == Verdict::Allowed;
            all.spawn_local(async move {
                for number in (place..ASKS).step_by(CONCURRENT) {
                    if is_allowed(&store, &keys[number % keys.len()], &limit).await? != expected {
                        return Err(format!("{}: not the answer that is measured", limit.limit()));
                    }
                }
                Ok(())
            })
        });
        let asking: Vec<_> = asking.collect();
        all.await;
        for asked in asking {
            asked.await.map_err(|error| error.to_string())??;
        }
        Ok(())
    }
}

async fn is_allowed(store: &RedisStore, key: &Key, limit: &PreparedLimit) -> Result<bool, String> {
    let decisions = store.take(&[(limit.subject(key), Ask::ONE)]).await;
    decisions.map(|decisions| decisions.is_allowed()).map_err(|error| error.to_string())
}

/// A store on this server, patient.
pub(super) fn open(server: &Server, caches_denials: bool) -> Result<RedisStore, String> {
    let url = format!("redis://{}", server.resp).parse().map_err(|error| format!("{error}"))?;
    let options = Options::new(url).deadline(DEADLINE).caches_denials(caches_denials);
    RedisStore::open(options).map_err(|error| error.to_string())
}
