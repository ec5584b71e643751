//! The recorded traces through a gate: one rule, whose limit is that of the trace.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use conformance::arm::{Answer, Arm, Pure, Take};
use conformance::batch::{Compared, is_a_sequence};
use conformance::clock::TickingClock;
use conformance::promise::{KINDS, Promise};
use conformance::random::Random;
use conformance::trace;
use tidegate::{Ask, Limit, Map, PermitId, Ticks, Timestamp, Zone};
use tidegate_rules::{Admission, Attributes, Gate, GateStore, HeldPermit};

use crate::requests::{admit, policy};

/// The operations that a rule does not support.
const UNKNOWN: [&str; 3] = ["charge", "refund", "reset"];

/// The features of traces that a rule does not have.
const CANNOT: [&str; 2] = ["give-back", "ticks"];

/// A gate with one rule. Several takes at once form a stretch of a batch.
struct OnGate {
    store: fn(Arc<TickingClock>) -> GateStore,
    clock: Arc<TickingClock>,
    gate: Gate,
    permits: HashMap<(String, PermitId), HeldPermit>,
}

impl OnGate {
    fn new(store: fn(Arc<TickingClock>) -> GateStore, limit: Limit) -> OnGate {
        let clock = Arc::new(TickingClock::new());
        let gate =
            Gate::new(policy(&rule(limit)), store(clock.clone())).expect("the store supports the policy");
        OnGate { store, clock, gate, permits: HashMap::new() }
    }
}

impl OnGate {
    fn note(&mut self, key: &str, admission: &Admission) -> Answer {
        let held = admission.permits().iter().map(|permit| ((key.to_owned(), permit.id), permit.clone()));
        self.permits.extend(held);
        admission.binding().expect("a limit decides").decision.into()
    }
}

fn rule(limit: Limit) -> String {
    format!("[[rule]]\nname = 'judged'\nkey = ['user']\nlimit = '{limit}'\nmax_wait = '365d'\n")
}

fn request(key: &str, ask: Ask) -> Attributes<'_> {
    Attributes::new().set("user", key).cost(ask.cost).max_wait(ask.max_wait.to_duration())
}

impl Arm for OnGate {
    fn name(&self) -> &str {
        "gate"
    }

    fn can(&self, need: &str) -> bool {
        !matches!(need, "give-back" | "ticks")
    }

    fn begin(&mut self, limit: Limit) {
        *self = OnGate::new(self.store, limit);
    }

    fn change(&mut self, limit: Limit) {
        self.gate.replace(policy(&rule(limit))).expect("a store in memory holds every limit");
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn tick(&mut self, step: Ticks) -> bool {
        self.clock.tick(step);
        true
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        let admission = admit(&self.gate, &request(key, ask));
        self.note(key, &admission)
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let batch = self.gate.batch();
        let stretch = batch.stretch();
        let mut context = Context::from_waker(Waker::noop());
        let admit =
            |take: &Take<'_>| match pin!(stretch.admit(&request(take.key, take.ask))).poll(&mut context) {
                Poll::Ready(Ok(admission)) => self.note(take.key, &admission),
                other => panic!("a store in memory answers at once, not {other:?}"),
            };
        takes.iter().map(admit).collect()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        let explained =
            self.gate.explain(&request(key, ask)).now().expect("a store in memory answers at once");
        explained.rules[0].decision.expect("it counts").into()
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        let held = &self.permits[&(key.to_owned(), permit)];
        self.gate.release(held).now().expect("a store in memory answers at once")
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        let held = &self.permits[&(key.to_owned(), permit)];
        self.gate.renew(held).now().expect("a store in memory answers at once")
    }
}

const STORES: [fn(Arc<TickingClock>) -> GateStore; 2] =
    [|clock| Zone::with_clock(1 << 16, clock).into(), |clock| Map::with_clock(clock).into()];

#[test]
fn every_recorded_trace_is_played_as_written_by_a_rule() {
    for store in STORES {
        let mut arm = OnGate::new(store, Limit::per_second(1));
        let steps = trace::play_recorded(&mut arm, &UNKNOWN, &CANNOT);
        assert!(steps > 200, "only {steps} steps were played");
    }
}

#[test]
fn every_recorded_trace_is_played_as_written_in_batches_by_a_rule() {
    for (store, tick) in
        STORES.iter().flat_map(|store| [Ticks::ZERO, conformance::ticks(1)].map(|tick| (store, tick)))
    {
        let mut arm = OnGate::new(*store, Limit::per_second(1));
        // Where a limit changes, a tick may lie between two windows.
        let without = [&UNKNOWN[..], if tick == Ticks::ZERO { &[] } else { &["limit"] }].concat();
        let all = trace::play_recorded_in_batches(&mut arm, &without, &CANNOT, tick);
        assert!(all.steps > 200 && all.calls > 100, "only {all:?}");
    }
}

#[test]
fn random_batches_are_answered_as_single_takes_by_a_rule() {
    let first = Random::seed_from_environment();
    for (kind, seed) in KINDS.iter().flat_map(|kind| (first..first + 4).map(move |seed| (kind, seed))) {
        let promise = Promise::modest(kind, &mut Random::new(seed));
        let mut all = Compared::default();
        for store in STORES {
            let (mut gate, mut pure) = (OnGate::new(store, promise.limit()), Pure::default());
            pure.begin(promise.limit());
            match is_a_sequence(&mut gate, &mut pure, &promise, (seed, 40), Ticks::ZERO) {
                Ok(compared) => all.add(compared),
                Err(what) => panic!("{kind}, TIDEGATE_SEED={seed}: {what}"),
            }
        }
        assert!(all.new > 0 && all.repeated > 0 && all.denied > 0, "{kind}: {all:?}");
    }
}
