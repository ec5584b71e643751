//! The recorded traces on real servers of every kind, with a time that tests set.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use conformance::arm::{Answer, Arm, Take};
use conformance::law::boundaries_are_exact;
use conformance::random::Random;
use conformance::trace::{self, Action, Batches, Trace};
use testbed::{Cluster, Flavour, Redis, Sentinels};
use tidegate::{
    Adjusted, Adjustment, Ask, Key, Limit, ManualClock, PermitId, PreparedLimit, Store as _, Ticks, Timestamp,
};
use tidegate_redis::RedisStore;

use crate::setup::{cluster_url, given_time, reason, sentinel_url, wait, wait_for_all_at_once};

/// The resolution of the server's clock.
const MICROSECOND: Ticks = Ticks::saturating_from(Duration::from_micros(1));
/// The features of traces that this store does not have.
const CANNOT: [&str; 2] = ["give-back", "ticks"];

/// A store on a server.
struct OnRedis {
    name: String,
    store: RedisStore,
    clock: Arc<ManualClock>,
    limit: PreparedLimit,
    /// The number of the run; each has its own rule and keys.
    beginning: u64,
}

impl OnRedis {
    fn new(name: &str, url: &str) -> OnRedis {
        let (store, clock) = given_time(url);
        OnRedis { name: name.to_owned(), store, clock, limit: of_rule(0, Limit::per_second(1)), beginning: 0 }
    }

    fn key(&self, key: &str) -> Key {
        Key::new((self.beginning, key))
    }
}

/// Returns the limit of a rule: when it changes, counts are carried over.
fn of_rule(beginning: u64, limit: Limit) -> PreparedLimit {
    PreparedLimit::of_rule(&format!("judged {beginning}"), limit)
}

/// Unwraps the result of a store; a healthy server always answers.
macro_rules! answer {
    ($future:expr) => {
        wait($future).unwrap_or_else(|error| panic!("{}", reason(&error)))
    };
}

impl Arm for OnRedis {
    fn name(&self) -> &str {
        &self.name
    }

    fn can(&self, need: &str) -> bool {
        !CANNOT.contains(&need)
    }

    fn begin(&mut self, limit: Limit) {
        self.beginning += 1;
        self.clock.set(Timestamp::EPOCH);
        self.limit = of_rule(self.beginning, limit);
    }

    fn change(&mut self, limit: Limit) {
        self.limit = of_rule(self.beginning, limit);
    }

    fn set_time(&mut self, now: Timestamp) {
        assert_eq!(now.ticks() % MICROSECOND.get(), 0, "a trace without ticks has whole microseconds");
        self.clock.set(now);
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        let key = self.key(key);
        let asks = [(self.limit.subject(&key), ask)];
        answer!(self.store.take(&asks)).each()[0].into()
    }

    /// Queues all takes before the first is sent, so that they share a call.
    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let keys: Vec<_> = takes.iter().map(|take| self.key(take.key)).collect();
        let subject = |key| self.limit.subject(key);
        let asks: Vec<_> = keys.iter().zip(takes).map(|(key, take)| [(subject(key), take.ask)]).collect();
        let answers = wait_for_all_at_once(&self.store, asks.iter().map(|asks| self.store.take(asks)));
        let decided = answers.into_iter().map(|answer| match answer {
            Ok(decisions) => decisions.each()[0].into(),
            Err(error) => panic!("{}", reason(&error)),
        });
        decided.collect()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        let key = self.key(key);
        answer!(self.store.peek(self.limit.subject(&key), ask)).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        let key = self.key(key);
        answer!(self.store.adjust(self.limit.subject(&key), adjustment))
    }

    fn reset(&mut self, key: &str) {
        let key = self.key(key);
        answer!(self.store.reset(self.limit.subject(&key)));
    }

    fn give_back(&mut self, _: &str, _: &str) -> Adjusted {
        unreachable!("a trace that gives back needs it, and this arm cannot")
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        let key = self.key(key);
        answer!(self.store.release(self.limit.subject(&key), permit))
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        let key = self.key(key);
        answer!(self.store.renew(self.limit.subject(&key), permit))
    }
}

/// Returns every recorded trace, by the name of its file.
fn recorded() -> HashMap<String, Trace> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/traces");
    let files = fs::read_dir(folder).expect("the traces are there").flatten();
    let read = files.map(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path()).expect("a trace is text");
        let trace = trace::parse(&text).unwrap_or_else(|what| panic!("{name}, {what}"));
        (name, trace)
    });
    read.collect()
}

fn steps_before(trace: &Trace) -> usize {
    let ends = |action: &Action| matches!(action, Action::Needs(need) if CANNOT.contains(&need.as_str()));
    trace.steps.iter().position(|step| ends(&step.action)).unwrap_or(trace.steps.len())
}

fn traces_are_played_on(name: &str, url: &str) {
    let mut arm = OnRedis::new(name, url);
    let (mut wrong, mut steps) = (Vec::new(), 0);
    for (file, trace) in recorded() {
        match trace::play(&trace, &mut arm) {
            Ok(played) => {
                assert_eq!(played, steps_before(&trace), "{file} on {name}");
                steps += played;
            }
            Err(what) => wrong.push(format!("{file}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("traces: {steps} steps on {name}");
    assert!(steps > 300, "only {steps} steps were played on {name}");
}

/// Plays the traces with the takes of one instant together. A script reads the server's clock once, so it need not
/// advance meanwhile.
fn traces_are_played_in_batches_on(name: &str, url: &str) {
    let mut arm = OnRedis::new(name, url);
    let (mut wrong, mut all) = (Vec::new(), Batches::default());
    for (file, trace) in recorded() {
        match trace::play_in_batches(&trace, &mut arm, Ticks::ZERO) {
            Ok(played) => {
                assert_eq!(played.steps, steps_before(&trace), "{file} on {name}");
                all.steps += played.steps;
                all.calls += played.calls;
                all.largest = all.largest.max(played.largest);
            }
            Err(what) => wrong.push(format!("{file}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("traces in batches: {all:?} on {name}");
    assert!(all.steps > 300 && all.calls > 150 && all.largest >= 30, "only {all:?} on {name}");
}

#[test]
fn every_trace_is_played_as_written_in_batches_on_one_server_of_every_kind() {
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        traces_are_played_in_batches_on(flavour.name(), &redis.url());
    }
}

#[test]
fn every_trace_is_played_as_written_in_batches_in_a_cluster() {
    let cluster = Cluster::start(Flavour::Redis7);
    traces_are_played_in_batches_on("Cluster", &cluster_url(&cluster));
}

#[test]
fn every_trace_is_played_as_written_on_one_server_of_every_kind() {
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        traces_are_played_on(flavour.name(), &redis.url());
        let keys = redis.command(&["DBSIZE"]);
        assert_ne!(keys, "0", "the traces leave states behind");
        without_an_end(&redis);
    }
}

#[test]
fn every_trace_is_played_as_written_behind_sentinels() {
    let sentinels = Sentinels::start(Flavour::Redis7);
    traces_are_played_on("Sentinel", &sentinel_url(&sentinels));
}

#[test]
fn every_trace_is_played_as_written_in_a_cluster() {
    let cluster = Cluster::start(Flavour::Redis7);
    traces_are_played_on("Cluster", &cluster_url(&cluster));
    cluster.primaries().into_iter().for_each(without_an_end);
}

/// Checks that every key of a server has an expiry.
fn without_an_end(redis: &Redis) {
    let script = "local n, c = 0, '0' repeat local r = redis.call('SCAN', c, 'COUNT', 1000) c = r[1] \
                  for _, k in ipairs(r[2]) do if redis.call('PTTL', k) == -1 then n = n + 1 end end until c == '0' return n";
    assert_eq!(redis.command(&["EVAL", script, "0"]), "0", "keys without a time to live");
}

/// 100 takes around each of 100 boundaries of calendars; around 1,000 with `TIDEGATE_FULL`.
#[test]
fn calendar_periods_are_cut_exactly_at_their_boundaries() {
    let boundaries = if std::env::var_os("TIDEGATE_FULL").is_some() { 1_000 } else { 100 };
    let seed = Random::seed_from_environment();
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        let (store, clock) = given_time(&redis.url());
        let passed =
            boundaries_are_exact(seed, boundaries, 100, MICROSECOND.get(), |now, limit, key, ask| {
                clock.set(now);
                let prepared = PreparedLimit::dynamic("judged", *limit);
                let asks = [(prepared.subject(key), ask)];
                answer!(store.take(&asks)).is_allowed()
            });
        let passed = passed.unwrap_or_else(|broken| panic!("{}: {broken}", flavour.name()));
        println!("{boundaries} boundaries ({}): {passed} takes admitted (seed {seed})", flavour.name());
        assert!(passed > boundaries as u64);
    }
}
