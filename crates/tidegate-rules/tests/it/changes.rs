//! The laws of a rule whose numbers change, by another file, a window of its schedule or an override of the key, with
//! or without a candidate.

use std::sync::Arc;
use std::time::Duration;

use conformance::keeper::Sheltering;
use conformance::random::Random;
use conformance::versions::{Histories, HistoryClock, Versions, carries};
use testbed::{Flavour, Redis};
use tidegate::{
    Algorithm, Ask, Decision, FallbackStore, Key, Limit, Map, PreparedLimit, State, Subject, Timestamp, Zone,
};
use tidegate_redis::{Options, RedisStore};
use tidegate_rules::{Attributes, Gate, GateStore, Instead, ManualCalendar, Policy};
use tokio::runtime::{Builder, Runtime};

const DAY: i64 = 24 * 3600;
/// A time in the window of every schedule here. A day begins outside it.
const IN_THE_WINDOW: i64 = 2 * 3600;
/// The resolution of the scripts: whole microseconds.
const MICROSECOND: u64 = 16_000;
/// A deadline longer than any machine needs for a reply.
const DEADLINE: Duration = Duration::from_secs(3600);

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime");
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// The store of a gate's states.
trait Place {
    const NAME: &'static str;
    const RESOLUTION: u64;
    /// The number of operations of a history.
    const OPERATIONS: u64 = 60;

    fn store(&self) -> GateStore;
    fn state(&self, rule: &str, limit: &Limit, key: &Key) -> State;

    /// Returns the states under several limits, as of one instant.
    fn states(&self, rule: &str, limits: &[Limit], key: &Key) -> Vec<State> {
        limits.iter().map(|limit| self.state(rule, limit, key)).collect()
    }

    fn holds(limit: &Limit) -> bool;
}

impl Place for Zone {
    const NAME: &'static str = "a gate on a zone";
    const RESOLUTION: u64 = 16;

    fn store(&self) -> GateStore {
        self.clone().into()
    }

    fn state(&self, rule: &str, limit: &Limit, key: &Key) -> State {
        in_memory(rule, limit, key, |subject| Zone::state(self, subject))
    }

    fn holds(limit: &Limit) -> bool {
        carries::<Zone>(limit)
    }
}

impl Place for Map {
    const NAME: &'static str = "a gate on a map";
    const RESOLUTION: u64 = 16;

    fn store(&self) -> GateStore {
        self.clone().into()
    }

    fn state(&self, rule: &str, limit: &Limit, key: &Key) -> State {
        in_memory(rule, limit, key, |subject| Map::state(self, subject))
    }

    fn holds(_: &Limit) -> bool {
        true
    }
}

impl Place for Arc<RedisStore> {
    const NAME: &'static str = "a gate on redis";
    const RESOLUTION: u64 = MICROSECOND;
    /// Fewer operations, because each is a dozen round trips.
    const OPERATIONS: u64 = 30;

    fn store(&self) -> GateStore {
        FallbackStore::new(self.clone(), &Zone::new(1 << 20)).into()
    }

    fn state(&self, rule: &str, limit: &Limit, key: &Key) -> State {
        let limit = PreparedLimit::of_rule(rule, *limit);
        wait(RedisStore::state(self, limit.subject(key))).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn states(&self, rule: &str, limits: &[Limit], key: &Key) -> Vec<State> {
        // Holders are one set for all numbers.
        if limits[0].algorithm() == Algorithm::Concurrency {
            return vec![self.state(rule, &limits[0], key); limits.len()];
        }
        let limits: Vec<_> = limits.iter().map(|limit| PreparedLimit::of_rule(rule, *limit)).collect();
        let subjects: Vec<_> = limits.iter().map(|limit| limit.subject(key)).collect();
        wait(RedisStore::states(self, &subjects)).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// Slots that are not whole microseconds are lengthened, so they differ from those of the law.
    fn holds(limit: &Limit) -> bool {
        limit.algorithm() != Algorithm::SlidingWindow || limit.numbers()[1].is_multiple_of(MICROSECOND)
    }
}

/// Reads a state without putting its limit in force. Permits of a rule are one set for all its numbers.
fn in_memory(rule: &str, limit: &Limit, key: &Key, read: impl FnOnce(Subject<'_>) -> State) -> State {
    match limit.algorithm() {
        Algorithm::Concurrency => read(PreparedLimit::permits_of(rule, *limit).subject(key)),
        _ => read(Subject::new(rule, key, limit)),
    }
}

/// One rule of a gate, whose limit changes in every way.
struct OnGate<P> {
    place: P,
    gate: Gate,
    calendar: Arc<ManualCalendar>,
    day: i64,
    rule: String,
    key: Key,
    random: Random,
    in_force: Option<Limit>,
    is_overridden: bool,
    has_ended_override: bool,
    is_in_window: bool,
}

impl<P: Place> OnGate<P> {
    fn new(place: P, rule: String, seed: u64) -> OnGate<P> {
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate = Gate::builder(Policy::default(), place.store())
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        let (key, random) = (Key::from_parts(["ana"]), Random::new(seed));
        OnGate {
            place,
            gate,
            calendar,
            day: 0,
            rule,
            key,
            random,
            in_force: None,
            is_overridden: false,
            has_ended_override: false,
            is_in_window: false,
        }
    }

    fn request(ask: Ask) -> Attributes<'static> {
        // The max wait is rounded down to whole nanoseconds.
        let max_wait = Duration::from_nanos(ask.max_wait.get() / 16);
        Attributes::new().set("user", "ana").cost(ask.cost).max_wait(max_wait)
    }

    /// Loads the rule with this limit, and with another one in its window.
    fn load(&mut self, limit: &Limit, window: Option<&Limit>) {
        let name = &self.rule;
        let mut text = format!("[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '{limit}'\n");
        if limit.algorithm() != Algorithm::LeakyBucket {
            // The request sets its max wait; under a leaky bucket that is sufficient.
            text += "max_wait = '365d'\n";
        }
        if let Some(window) = window {
            // The other half of the day, if no time may pass: a file that is loaded while its window is open.
            let (from, to) = if self.has_ended_override && !self.is_in_window { (12, 1) } else { (1, 12) };
            text +=
                &format!("schedule = [{{ from = '{from:02}:00', to = '{to:02}:00', limit = '{window}' }}]\n");
        }
        if self.random.percent(30) {
            text += &format!("[[rule]]\nname = '{name}-next'\ncandidate_for = '{name}'\nlimit = '{limit}'\n");
        }
        let policy = Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
        self.gate.replace(policy).unwrap_or_else(|error| panic!("{error:?}"));
    }

    /// Removes the override, so that the rule applies to the key. For a while the date of its end matters, so no day
    /// may pass from now on, because the time of decisions stands still.
    fn remove_override(&mut self) {
        if std::mem::take(&mut self.is_overridden) {
            self.has_ended_override = true;
            let removed = self.gate.remove_override(&self.rule, &Self::request(Ask::ONE));
            assert!(removed.is_ok_and(|was_there| was_there));
        }
    }
}

impl<P: Place> Versions for OnGate<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn resolution(&self) -> u64 {
        P::RESOLUTION
    }

    fn servers(&self) -> usize {
        1
    }

    /// Returns true if a limit is unchanged after formatting and parsing.
    fn holds(&self, limit: &Limit) -> bool {
        let read: Result<Limit, _> = limit.to_string().parse();
        P::holds(limit) && read.is_ok_and(|read| read.numbers() == limit.numbers())
    }

    fn set_time(&mut self, now: Timestamp) {
        HistoryClock::set(now);
    }

    fn announce(&mut self, _: usize, limit: &Limit) {
        match (self.in_force, self.random.between(0, 2)) {
            (Some(before), 0) if self.has_ended_override => {
                self.load(&before, Some(limit));
                self.remove_override();
            }
            (Some(before), 0) => {
                // The window opens; until then the previous limit is in force.
                self.day += 1;
                self.calendar.set(self.day * DAY);
                self.load(&before, Some(limit));
                self.calendar.set(self.day * DAY + IN_THE_WINDOW);
                self.is_in_window = true;
                self.remove_override();
            }
            (Some(_), 1) => {
                let (request, instead) = (Self::request(Ask::ONE), Instead::Limit(*limit));
                let put = self.gate.put_override(&self.rule, &request, instead, i64::MAX / 2);
                put.unwrap_or_else(|error| panic!("{error}"));
                self.is_overridden = true;
            }
            _ => {
                self.load(limit, None);
                self.remove_override();
            }
        }
        self.in_force = Some(*limit);
        // A limit comes into force with its first use, by any key.
        if self.random.percent(50) {
            let other = Attributes::new().set("user", "bob");
            let _ = wait(self.gate.explain(&other)).unwrap_or_else(|error| panic!("{error:?}"));
        }
        let _ = self.peek(0, Ask::ONE);
    }

    fn take(&mut self, _: usize, ask: Ask) -> Decision {
        let admission =
            wait(self.gate.admit(&Self::request(ask))).unwrap_or_else(|error| panic!("{error:?}"));
        admission.binding().expect("a limit decides").decision
    }

    fn peek(&self, _: usize, ask: Ask) -> Decision {
        let explained =
            wait(self.gate.explain(&Self::request(ask))).unwrap_or_else(|error| panic!("{error:?}"));
        explained.rules[0].decision.expect("a limit decides")
    }

    fn state(&self, limit: &Limit) -> State {
        self.place.state(&self.rule, limit, &self.key)
    }

    fn states(&self, limits: &[Limit]) -> Vec<State> {
        self.place.states(&self.rule, limits, &self.key)
    }

    fn is_remote(&self) -> bool {
        P::RESOLUTION == MICROSECOND
    }
}

/// Plays the histories of one kind.
fn hold<P: Place>(kind: &str, (count, at_once): (u64, usize), place: impl Fn() -> P + Sync) {
    let histories = Histories { kind, count, operations: P::OPERATIONS, at_once };
    histories.play(|history, seed| OnGate::new(place(), format!("rule-{history}"), seed ^ 1));
}

fn on_redis(kind: &str) {
    let redis = Redis::start(Flavour::Redis7);
    let options = Options::new(redis.url().parse().expect("an address")).deadline(DEADLINE);
    let store = Arc::new(RedisStore::with_given_time(options, Arc::new(HistoryClock)).expect("a store"));
    hold(kind, (20, 32), || store.clone());
}

macro_rules! changes {
    ($($name:ident: $kind:literal)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn laws_of_changes_hold_in_a_zone() {
                hold($kind, (200, 2), || <Zone as Sheltering>::empty(Arc::new(HistoryClock)));
            }

            #[test]
            fn laws_of_changes_hold_in_a_map() {
                hold($kind, (200, 2), || <Map as Sheltering>::empty(Arc::new(HistoryClock)));
            }

            #[test]
            fn laws_of_changes_hold_on_redis() {
                on_redis($kind);
            }
        }
    )+};
}

changes! {
    token_bucket: "token-bucket"
    leaky_bucket: "leaky-bucket"
    fixed_window: "fixed-window"
    sliding_log: "sliding-log"
    sliding_window: "sliding-window"
    sliding_window_estimate: "sliding-window-estimate"
    pacer: "pacer"
    pacer_warm_up: "pacer-warm-up"
    concurrency: "concurrency"
    calendar: "calendar"
}
