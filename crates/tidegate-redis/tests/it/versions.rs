//! The laws of a rule whose numbers change, on three stores that share a server: one process for each set of numbers.

use std::sync::Arc;

use conformance::random::Random;
use conformance::versions::{Met, Versions, keep_their_promises};
use testbed::Redis;
use tidegate::{
    Algorithm, Ask, Decision, Key, Limit, ManualClock, PreparedLimit, State, Store as _, StoreError,
    Timestamp,
};
use tidegate_redis::RedisStore;
use tokio::runtime::Runtime;

use crate::setup::{options, reason, redis};

const OPERATIONS: u64 = 60;
/// The scripts know whole microseconds.
const MICROSECOND: u64 = 16_000;

/// Servers with one store each.
struct Servers {
    _redis: Redis,
    clock: Arc<ManualClock>,
    stores: Vec<RedisStore>,
    runtime: Runtime,
}

impl Servers {
    fn start() -> Servers {
        let (redis, clock) = (redis(), Arc::new(ManualClock::new()));
        let open = |_| RedisStore::with_given_time(options(&redis.url()), clock.clone()).expect("a store");
        let stores = (0..3).map(open).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Servers { _redis: redis, clock, stores, runtime }
    }

    fn answer<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> T {
        self.runtime.block_on(answer).unwrap_or_else(|error| panic!("{}", reason(&error)))
    }
}

/// One rule on these servers, which no other has used.
struct OnRule<'a> {
    servers: &'a Servers,
    rule: String,
    key: Key,
    limits: Vec<Option<PreparedLimit>>,
}

impl<'a> OnRule<'a> {
    fn new(servers: &'a Servers, rule: String) -> OnRule<'a> {
        OnRule { servers, rule, key: Key::new("ana"), limits: vec![None, None, None] }
    }

    fn limit(&self, server: usize) -> &PreparedLimit {
        self.limits[server].as_ref().expect("a server announces its limit first")
    }
}

impl Versions for OnRule<'_> {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn resolution(&self) -> u64 {
        MICROSECOND
    }

    /// Slots that are no whole microseconds are lengthened, so they are others than those of the promise.
    fn holds(&self, limit: &Limit) -> bool {
        limit.algorithm() != Algorithm::SlidingWindow || limit.numbers()[1] % MICROSECOND == 0
    }

    fn set_time(&mut self, now: Timestamp) {
        self.servers.clock.set(now);
    }

    fn announce(&mut self, server: usize, limit: &Limit) {
        self.limits[server] = Some(PreparedLimit::of_rule(&self.rule, *limit));
        // A limit comes into force with its first use.
        let _ = self.peek(server, Ask::ONE);
    }

    fn take(&mut self, server: usize, ask: Ask) -> Decision {
        let asks = [(self.limit(server).subject(&self.key), ask)];
        self.servers.answer(self.servers.stores[server].take(&asks)).each()[0]
    }

    fn peek(&self, server: usize, ask: Ask) -> Decision {
        let subject = self.limit(server).subject(&self.key);
        self.servers.answer(self.servers.stores[server].peek(subject, ask))
    }

    fn state(&self, limit: &Limit) -> State {
        let limit = PreparedLimit::of_rule(&self.rule, *limit);
        self.servers.answer(self.servers.stores[0].state(limit.subject(&self.key)))
    }
}

/// The number of histories: the environment's, or enough for every commit.
fn histories() -> u64 {
    std::env::var("TIDEGATE_TRACES").ok().and_then(|traces| traces.parse().ok()).unwrap_or(50)
}

fn hold(kind: &str) {
    let (seed, servers) = (Random::seed_from_environment(), Servers::start());
    let (mut met, histories) = (Met::default(), histories());
    for history in 0..histories {
        let history_seed = Random::new(seed.wrapping_add(history)).number();
        let on = OnRule::new(&servers, format!("rule {history}"));
        match keep_their_promises(on, kind, history_seed, OPERATIONS) {
            Ok(more) => met.add(more),
            Err(broken) => panic!("{kind}, history {history} of seed {seed}: {broken}"),
        }
    }
    println!("versions {kind} (redis): {histories} histories, {met:?} (seed {seed})");
    assert!(met.carried > met.changes / 20, "{met:?}");
    assert!(met.denials > 0 && met.lagging > 0 && met.waits > 0, "{met:?}");
}

macro_rules! versions {
    ($($name:ident: $kind:literal)+) => {$(
        #[test]
        fn $name() {
            hold($kind);
        }
    )+};
}

versions! {
    laws_of_versions_hold_for_token_bucket: "token-bucket"
    laws_of_versions_hold_for_leaky_bucket: "leaky-bucket"
    laws_of_versions_hold_for_fixed_window: "fixed-window"
    laws_of_versions_hold_for_sliding_log: "sliding-log"
    laws_of_versions_hold_for_sliding_window: "sliding-window"
    laws_of_versions_hold_for_sliding_window_estimate: "sliding-window-estimate"
    laws_of_versions_hold_for_pacer: "pacer"
    laws_of_versions_hold_for_pacer_warm_up: "pacer-warm-up"
    laws_of_versions_hold_for_concurrency: "concurrency"
}
