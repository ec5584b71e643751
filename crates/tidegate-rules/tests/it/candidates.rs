//! Tests that a candidate is measured as if it were in the place of its rule.
//!
//! The law, with one rule: a candidate sees every request that the rule sees. So it counts and decides exactly as a
//! gate with the candidate's limit in place of the rule's. The rule decides as if there were no candidates.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Cost, ManualClock, Verdict};
use tidegate_rules::{Admission, Attributes, Gate, GateStore, HeldPermit, RuleCounts};

use crate::random::{Random, seed};
use crate::requests::{admit, policy, stores};

const REQUESTS: usize = 10_000;
const USERS: [&str; 4] = ["ana", "bob", "eva", "ida"];

/// A limit, a looser one and a stricter one.
pub(crate) const LIMITS: [[&str; 3]; 11] = [
    ["20/s burst 6", "40/s burst 12", "10/s burst 3"],
    ["20/s burst 6", "40/s sliding-log", "10/s fixed-window"],
    ["20/s queue 5 leaky-bucket", "40/s queue 10 leaky-bucket", "10/s queue 2 delay-after 1 leaky-bucket"],
    ["8/s fixed-window", "16/s fixed-window", "4/s align first-hit fixed-window"],
    ["8/s sliding-log", "16/s sliding-log", "4/s sliding-log"],
    ["8/s count-denied sliding-log", "16/s count-denied sliding-log", "4/s count-denied sliding-log"],
    ["8/s sliding-window", "16/s slots 4 sliding-window", "4/s sliding-window"],
    ["8/s mode estimate sliding-window", "16/s mode estimate sliding-window", "4/s sliding-window"],
    ["20/s pacer", "40/s burst 2s pacer", "10/s warm-up 1s pacer"],
    ["3/500ms concurrency", "6/1s concurrency", "2/200ms concurrency"],
    ["3/500ms concurrency", "20/s", "8/s count-denied sliding-log"],
];

/// One request of a script, the same for every gate that plays it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) wait: Duration,
    pub(crate) user: &'static str,
    pub(crate) team: &'static str,
    pub(crate) cost: u64,
    pub(crate) max_wait: Option<Duration>,
    /// The number of further requests after which it ends.
    pub(crate) held: usize,
}

impl Event {
    pub(crate) fn request(&self) -> Attributes<'static> {
        let request = Attributes::new().set("user", self.user).set("team", self.team);
        let request = request.cost(Cost::of(self.cost));
        self.max_wait.map_or(request.clone(), |max_wait| request.max_wait(max_wait))
    }
}

pub(crate) fn script(seed: u64) -> Vec<Event> {
    let mut random = Random::new(seed);
    let event = |random: &mut Random| Event {
        wait: Duration::from_micros(if random.once_in(3) { 0 } else { random.below(40_000) as u64 }),
        user: random.pick(&USERS),
        team: random.pick(&["red", "blue"]),
        // A rare cost that exceeds every limit here.
        cost: if random.once_in(50) { 100 } else { 1 + (random.below(8) / 6) as u64 },
        max_wait: random.once_in(4).then(|| Duration::from_millis(random.below(200) as u64)),
        held: random.below(12),
    };
    (0..REQUESTS).map(|_| event(&mut random)).collect()
}

/// Permits that are released after a number of further requests.
#[derive(Debug)]
pub(crate) struct InFlight<P>(VecDeque<Vec<P>>);

impl<P> InFlight<P> {
    pub(crate) fn new() -> InFlight<P> {
        InFlight(VecDeque::new())
    }

    /// Returns the permits that are released now.
    pub(crate) fn ended(&mut self) -> Vec<P> {
        self.0.pop_front().unwrap_or_default()
    }

    pub(crate) fn hold(&mut self, held: usize, permits: impl IntoIterator<Item = P>) {
        while self.0.len() <= held {
            self.0.push_back(Vec::new());
        }
        self.0[held].extend(permits);
    }
}

/// Plays a script, and reports each admission with the counts since the previous one.
pub(crate) fn play(
    (gate, clock): (&Gate, &ManualClock),
    script: &[Event],
    mut tell: impl FnMut(usize, &Admission, Vec<RuleCounts>),
) {
    let mut in_flight: InFlight<HeldPermit> = InFlight::new();
    for (at, event) in script.iter().enumerate() {
        clock.advance(event.wait);
        for permit in in_flight.ended() {
            let _ = gate.release(&permit).now().expect("a store in memory answers at once");
        }
        let answer = admit(gate, &event.request());
        in_flight.hold(event.held, answer.permits().iter().cloned());
        tell(at, &answer, gate.counts().into_iter().map(|(_, counts)| counts).collect());
    }
}

/// Returns the decisions of one limit in the rule's place about each request of a script, and its counts.
fn alone(
    limit: &str,
    (store, clock): (GateStore, Arc<ManualClock>),
    script: &[Event],
) -> (Vec<Verdict>, RuleCounts) {
    let text = format!("[[rule]]\nname = 'rule'\nkey = ['user']\nlimit = '{limit}'\n");
    let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
    let (mut verdicts, mut counted) = (Vec::new(), RuleCounts::default());
    play((&gate, &clock), script, |_, answer, counts| {
        verdicts.push(answer.verdict());
        counted = counts[0];
    });
    (verdicts, counted)
}

/// Returns true if the last request counted by a rule was allowed.
fn passed(before: &RuleCounts, after: &RuleCounts) -> bool {
    let sum = |counts: &RuleCounts| counts.allowed + counts.denied + counts.impossible + counts.store_full;
    assert_eq!(sum(after), sum(before) + 1, "each request is counted once");
    after.allowed > before.allowed
}

fn a_candidate_counts_as_in_the_rules_place(limits: [&str; 3], script: &[Event]) {
    let [rule, looser, stricter] = limits;
    let text = format!(
        "[[rule]]\nname = 'looser'\ncandidate_for = 'rule'\nlimit = '{looser}'\n\
         [[rule]]\nname = 'rule'\nkey = ['user']\nlimit = '{rule}'\n\
         [[rule]]\nname = 'stricter'\ncandidate_for = 'rule'\nlimit = '{stricter}'\n"
    );
    for (place, (name, store, clock)) in stores().into_iter().enumerate() {
        let fresh = || {
            let [zone, map] = stores();
            let (_, store, clock) = if place == 0 { zone } else { map };
            (store, clock)
        };
        let separate = [looser, rule, stricter].map(|limit| alone(limit, fresh(), script));
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        let mut before = vec![RuleCounts::default(); 3];
        play((&gate, &clock), script, |at, answer, counts| {
            let what = || format!("{limits:?} on a {name}, request {at}: {:?}", script[at]);
            assert_eq!(answer.verdict(), separate[1].0[at], "{}", what());
            for which in 0..3 {
                let is_allowed = matches!(separate[which].0[at], Verdict::Allowed { .. });
                assert_eq!(passed(&before[which], &counts[which]), is_allowed, "{which} {}", what());
            }
            before = counts;
        });
        let is_allowed = |which: usize, at: usize| matches!(separate[which].0[at], Verdict::Allowed { .. });
        for (which, (_, alone)) in separate.iter().enumerate() {
            let differ = |candidate: bool| {
                let differs =
                    |at: &usize| is_allowed(which, *at) == candidate && is_allowed(1, *at) != candidate;
                (0..script.len()).filter(differs).count() as u64
            };
            let mut expected = *alone;
            (expected.looser, expected.stricter) = (differ(true), differ(false));
            assert_eq!(before[which], expected, "{limits:?} on a {name}: {which}");
        }
        assert!(before[0].looser > 20 && before[2].stricter > 20, "{limits:?}: {before:?}");
    }
}

#[test]
fn a_candidate_counts_and_decides_as_a_gate_with_its_limit_in_the_rules_place() {
    let script = script(seed());
    LIMITS.into_iter().for_each(|limits| a_candidate_counts_as_in_the_rules_place(limits, &script));
}
