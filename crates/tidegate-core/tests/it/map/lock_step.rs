//! A store in memory and separate states of the same keys, compared step by step.

use std::sync::Arc;

use conformance::arm::Answer;
use conformance::keeper::{Keeper, Sheltering, States};
use conformance::promise::{KINDS, Promise};
use conformance::random::Random;
use conformance::ticks;
use tidegate::{
    Adjustment, Algorithm, Ask, Cost, Decision, Key, ManualClock, PermitId, PreparedLimit, State, Subject,
    Timestamp,
};

const SECOND: u64 = 16_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// One rule of each kind on one store, and separate states of the same keys that are never evicted.
pub(crate) struct LockStep<S> {
    seed: u64,
    random: Random,
    now: u64,
    clock: Arc<ManualClock>,
    store: S,
    apart: States,
    subjects: Subjects,
    permits: Vec<Permit>,
    about_to_be_clear: Who,
    /// The number of single asks, and of denials among them.
    pub(crate) asked: u64,
    pub(crate) refused: u64,
}

/// A permit in flight, with a number in the store and another one in the separate state.
struct Permit {
    who: Who,
    on_store: PermitId,
    apart: PermitId,
}

impl<S: Sheltering> LockStep<S> {
    pub(crate) fn new(seed: u64, keys: u64) -> LockStep<S> {
        let mut random = Random::new(seed);
        let clock = Arc::new(ManualClock::new());
        let store = S::empty(clock.clone());
        let rules = KINDS.map(|kind| Rule::new(kind, &mut random)).into();
        let subjects = Subjects { rules, keys: (0..keys).map(Key::new).collect() };
        let (apart, permits, about_to_be_clear) = (States::default(), Vec::new(), Who { rule: 0, key: 0 });
        let (now, asked, refused) = (0, 0, 0);
        LockStep {
            seed,
            random,
            now,
            clock,
            store,
            apart,
            subjects,
            permits,
            about_to_be_clear,
            asked,
            refused,
        }
    }

    /// Applies one random operation to both.
    pub(crate) fn step(&mut self) {
        let who = self.anybody();
        match self.random.between(0, 999) {
            0..80 => self.pass_time(),
            80..85 => self.change_limit(),
            85..100 => self.reset(who),
            100..180 => self.adjust(who),
            180..250 => self.release_or_renew(),
            250..400 => self.peek(who),
            _ => self.take(who),
        }
    }

    fn anybody(&mut self) -> Who {
        if self.random.percent(10) {
            return self.about_to_be_clear;
        }
        let rule = self.random.between(0, self.subjects.rules.len() as u64 - 1) as usize;
        // Few keys are chosen often, and most of them rarely.
        let key = self.random.sized(0, self.subjects.keys.len() as u64 - 1) as usize;
        Who { rule, key }
    }

    fn any_ask(&mut self, who: Who) -> Ask {
        let most = self.subjects.rules[who.rule].promise.most_at_once();
        let cost = Cost::of(if self.random.percent(50) { 1 } else { self.random.sized(1, most + 1) });
        let max_wait = if self.random.percent(70) { 0 } else { self.random.sized(1, 1 << 50) };
        Ask::new(cost).max_wait_in_ticks(ticks(max_wait))
    }

    pub(crate) fn pass_time(&mut self) {
        self.now += match self.random.between(0, 99) {
            0..30 => self.random.between(0, 3),
            30..60 => self.time_until_a_key_is_clear(),
            60..99 => self.random.sized(0, 2 * SECOND),
            _ => self.random.sized(0, 1000 * DAY),
        };
        self.clock.set(self.at());
        self.apart.set_time(self.at());
    }

    /// Returns the time until right before, onto or right after the instant from which a random key may be evicted.
    fn time_until_a_key_is_clear(&mut self) -> u64 {
        let who = self.anybody();
        self.about_to_be_clear = who;
        let subject = self.subjects.of(who);
        let clear_at = subject.limit().clear_at(&self.apart.state(subject));
        let around = clear_at.ticks().saturating_sub(2) + self.random.between(0, 4);
        Some(around.saturating_sub(self.now)).filter(|wait| *wait < DAY).unwrap_or(0)
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_ticks(self.now)
    }

    /// Replaces a limit, mostly by one of the same kind; counts are carried over.
    fn change_limit(&mut self) {
        let rule = self.random.between(0, self.subjects.rules.len() as u64 - 1) as usize;
        let kind = self.subjects.rules[rule].kind;
        let kind = if self.random.percent(80) { kind } else { self.random.pick(&KINDS) };
        let promise = Promise::modest(kind, &mut self.random);
        // Windows that do not fit a cell are stored beside the zone, and nothing is carried from there.
        if !S::HOLDS_ALL && promise.limit().algorithm() == Algorithm::FixedWindow {
            return;
        }
        self.subjects.rules[rule].change(kind, promise);
        let subject = self.subjects.of(Who { rule, key: 0 });
        let _ = self.store.peek(subject, Ask::ONE);
        self.apart.announce(subject);
    }

    fn reset(&mut self, who: Who) {
        let subject = self.subjects.of(who);
        self.store.reset(subject);
        self.apart.reset(subject);
        // A reset key starts to number its permits again: within this instant an old number may be used again.
        self.permits.retain(|permit| permit.who != who);
    }

    fn adjust(&mut self, who: Who) {
        let subject = self.subjects.of(who);
        let cost = Cost::of(self.random.sized(1, 20));
        let adjustment =
            if self.random.percent(50) { Adjustment::Charge(cost) } else { Adjustment::Refund(cost) };
        let (on_store, apart) =
            (self.store.adjust(subject, adjustment), self.apart.adjust(subject, adjustment));
        assert_eq!(on_store, apart, "{adjustment:?}, {}", self.describe(who));
    }

    fn release_or_renew(&mut self) {
        let Some(last) = self.permits.len().checked_sub(1) else { return };
        let chosen = self.random.between(0, last as u64) as usize;
        let Permit { who, on_store, apart } = self.permits[chosen];
        let subject = self.subjects.of(who);
        let renews = self.random.percent(50);
        let held = if renews {
            (self.store.renew(subject, on_store), self.apart.renew(subject, apart))
        } else {
            (self.store.release(subject, on_store), self.apart.release(subject, apart))
        };
        assert_eq!(held.0, held.1, "renews: {renews}, {}", self.describe(who));
        if !held.0 {
            self.permits.swap_remove(chosen);
        }
    }

    fn peek(&mut self, who: Who) {
        let ask = self.any_ask(who);
        let subject = self.subjects.of(who);
        let (on_store, apart) = (self.store.peek(subject, ask), self.apart.peek(subject, ask));
        assert_eq!(figures(on_store), figures(apart), "peek {ask:?}, {}", self.describe(who));
    }

    fn take(&mut self, who: Who) {
        let ask = self.any_ask(who);
        let subject = self.subjects.of(who);
        let ((on_store, _), (apart, _)) = (self.store.take(subject, ask), self.apart.take(subject, ask));
        assert_eq!(figures(on_store), figures(apart), "take {ask:?}, {}", self.describe(who));
        self.note(who, on_store, apart);
    }

    /// Takes several at once. Returns true if all were allowed.
    pub(crate) fn take_together(&mut self) -> bool {
        let asked = self.any_asks();
        let asks: Vec<_> = asked.iter().map(|(who, ask)| (self.subjects.of(*who), *ask)).collect();
        let together = self.store.take_all(&asks);
        let expected = take_all_or_none(&mut self.apart, &asks);
        let passes = expected.iter().flatten().filter(|decision| decision.is_allowed()).count() == asks.len();
        assert_eq!(together.is_allowed(), passes, "{asked:?}, {}", self.describe(asked[0].0));
        for ((who, _), (on_store, apart)) in asked.iter().zip(together.each().iter().zip(expected)) {
            if let Some(apart) = apart {
                assert_eq!(figures(*on_store), figures(apart), "{asked:?}, {}", self.describe(*who));
                self.note(*who, *on_store, apart);
            }
            let subject = self.subjects.of(*who);
            let (on_store, apart) = (self.store.peek(subject, Ask::ONE), self.apart.peek(subject, Ask::ONE));
            assert_eq!(figures(on_store), figures(apart), "after {asked:?}, {}", self.describe(*who));
        }
        passes
    }

    /// Returns one to four asks, some of them of the same key.
    fn any_asks(&mut self) -> Vec<(Who, Ask)> {
        let asks = 0..self.random.between(1, 4);
        let any_ask = |_| {
            let who = self.anybody();
            (who, self.any_ask(who))
        };
        asks.map(any_ask).collect()
    }

    fn note(&mut self, who: Who, on_store: Decision, apart: Decision) {
        self.asked += 1;
        self.refused += u64::from(!on_store.is_allowed());
        if let (Some(on_store), Some(apart)) = (on_store.permit(), apart.permit()) {
            self.permits.push(Permit { who, on_store, apart });
        }
    }

    /// Returns the description of a mismatch.
    fn describe(&self, who: Who) -> String {
        let (subject, now, seed) = (self.subjects.of(who), self.now, self.seed);
        format!("{subject:?} at {now}t of seed {seed}, apart:{}", self.apart.describe(subject))
    }

    /// Returns the number of keys that have a separate state, but none in the store.
    pub(crate) fn forgotten(&self) -> usize {
        let is_forgotten = |who: Who| {
            let subject = self.subjects.of(who);
            self.store.state(subject) == State::default() && self.apart.state(subject) != State::default()
        };
        self.subjects.all().filter(|who| is_forgotten(*who)).count()
    }
}

/// Takes all if each ask is allowed after those before it. Then these are the decisions, and asks of one state
/// report the decision of the last of them. Otherwise each limit that denies by itself decides as it would alone,
/// and the others are not changed. Asks of one state are denied as one ask of the summed cost.
fn take_all_or_none(apart: &mut States, asks: &[(Subject<'_>, Ask)]) -> Vec<Option<Decision>> {
    let mut spent = apart.clone();
    let taken: Vec<_> = asks.iter().map(|(subject, ask)| spent.take(*subject, *ask).0).collect();
    let is_twin = |one: &Subject<'_>, other: &Subject<'_>| {
        one.namespace() == other.namespace() && one.key() == other.key()
    };
    let twins = |subject: &Subject<'_>| -> Vec<usize> {
        (0..asks.len()).filter(|place| is_twin(subject, &asks[*place].0)).collect()
    };
    if taken.iter().all(Decision::is_allowed) {
        *apart = spent;
        let last = |place: usize| match asks[place].0.limit().algorithm() {
            Algorithm::Concurrency => place,
            _ => twins(&asks[place].0).pop().unwrap_or(place),
        };
        return (0..asks.len()).map(|place| Some(taken[last(place)])).collect();
    }
    let refuses: Vec<_> =
        asks.iter().map(|(subject, ask)| !apart.peek(*subject, *ask).is_allowed()).collect();
    let each = asks.iter().zip(&refuses);
    let alone: Vec<_> =
        each.map(|((subject, ask), refuses)| refuses.then(|| apart.take(*subject, *ask).0)).collect();
    let together = |(place, (subject, _)): (usize, &(Subject<'_>, Ask))| {
        let twins = twins(subject);
        if twins.len() == 1 {
            return alone[place];
        }
        match subject.limit().algorithm() {
            // These are asked one after the other: the wait is that of all of them.
            Algorithm::LeakyBucket | Algorithm::Pacer | Algorithm::Concurrency => None,
            _ => {
                let cost = Cost::of(twins.iter().map(|twin| asks[*twin].1.cost.get()).sum());
                let max_wait = asks[twins[0]].1.max_wait;
                let is_alike = twins.iter().all(|twin| asks[*twin].1.max_wait == max_wait);
                let together =
                    is_alike.then(|| apart.peek(*subject, Ask::new(cost).max_wait_in_ticks(max_wait)));
                together.filter(|decision| !decision.is_allowed())
            }
        }
    };
    asks.iter().enumerate().map(together).collect()
}

/// Returns all fields of a decision but the number of the permit, which starts again after an eviction.
fn figures(decision: Decision) -> Answer {
    Answer { permit: None, ..decision.into() }
}

/// A key under a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Who {
    rule: usize,
    key: usize,
}

struct Subjects {
    rules: Vec<Rule>,
    keys: Vec<Key>,
}

impl Subjects {
    fn of(&self, who: Who) -> Subject<'_> {
        let rule = &self.rules[who.rule];
        rule.limit.subject(&self.keys[who.key])
    }

    fn all(&self) -> impl Iterator<Item = Who> {
        let keys = self.keys.len();
        (0..self.rules.len()).flat_map(move |rule| (0..keys).map(move |key| Who { rule, key }))
    }
}

/// A limit with a name, by which it is replaced while it is in force.
struct Rule {
    name: String,
    kind: &'static str,
    promise: Promise,
    limit: PreparedLimit,
}

impl Rule {
    fn new(kind: &'static str, random: &mut Random) -> Rule {
        let (name, promise) = (format!("rule of {kind}"), Promise::modest(kind, random));
        let limit = PreparedLimit::of_rule(&name, promise.limit());
        Rule { name, kind, promise, limit }
    }

    fn change(&mut self, kind: &'static str, promise: Promise) {
        (self.kind, self.promise) = (kind, promise);
        self.limit = PreparedLimit::of_rule(&self.name, promise.limit());
    }
}
