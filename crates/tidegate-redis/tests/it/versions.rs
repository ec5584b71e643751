//! The laws of a rule whose numbers change, on three stores that share a server: one process for each set of numbers.

use std::sync::Arc;
use std::time::Duration;

use conformance::versions::{Histories, HistoryClock, Versions};
use testbed::Redis;
use tidegate::{
    Algorithm, Ask, Decision, Key, Limit, PreparedLimit, State, Store as _, StoreError, Timestamp,
};
use tidegate_redis::RedisStore;
use tokio::runtime::{Builder, Runtime};

use crate::setup::{options, reason, redis};

const OPERATIONS: u64 = 60;
/// The resolution of the scripts: whole microseconds.
const MICROSECOND: u64 = 16_000;

/// The number of histories that are played concurrently, so that they do not wait for each other's replies.
const AT_ONCE: usize = 16;

/// A deadline longer than any machine needs: a history ends with a broken law, not with a slow server.
const DEADLINE: Duration = Duration::from_secs(3600);

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime");
}

/// A server with several stores.
struct Servers {
    _redis: Redis,
    stores: Vec<RedisStore>,
}

impl Servers {
    fn start() -> Servers {
        let redis = redis();
        let options = || options(&redis.url()).deadline(DEADLINE);
        let open = |_| RedisStore::with_given_time(options(), Arc::new(HistoryClock)).expect("a store");
        let stores = (0..3).map(open).collect();
        Servers { _redis: redis, stores }
    }

    fn answer<T>(&self, answer: impl Future<Output = Result<T, StoreError>>) -> T {
        RUNTIME.with(|runtime| runtime.block_on(answer)).unwrap_or_else(|error| panic!("{}", reason(&error)))
    }
}

/// One rule on these servers, used by no other test.
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

    /// Slots that are not whole microseconds are lengthened, so they differ from those of the law.
    fn holds(&self, limit: &Limit) -> bool {
        limit.algorithm() != Algorithm::SlidingWindow || limit.numbers()[1].is_multiple_of(MICROSECOND)
    }

    fn set_time(&mut self, now: Timestamp) {
        HistoryClock::set(now);
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

    fn is_remote(&self) -> bool {
        true
    }

    fn states(&self, limits: &[Limit]) -> Vec<State> {
        // Holders are one set for all numbers.
        if limits[0].algorithm() == Algorithm::Concurrency {
            return vec![self.state(&limits[0]); limits.len()];
        }
        let limits: Vec<_> = limits.iter().map(|limit| PreparedLimit::of_rule(&self.rule, *limit)).collect();
        let subjects: Vec<_> = limits.iter().map(|limit| limit.subject(&self.key)).collect();
        self.servers.answer(self.servers.stores[0].states(&subjects))
    }
}

fn hold(kind: &str) {
    let (servers, histories) =
        (Servers::start(), Histories { kind, count: 50, operations: OPERATIONS, at_once: AT_ONCE });
    let met = histories.play(|history, _| OnRule::new(&servers, format!("rule {history}")));
    assert!(met.lagging > 0, "{met:?}");
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
    laws_of_versions_hold_for_calendar: "calendar"
}
