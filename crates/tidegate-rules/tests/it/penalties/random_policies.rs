//! Tests that a gate with penalties decides as the evaluator does: random policies, and random requests in time.
//!
//! Compared are the explanation and the peek before a request, its answer, what remains after it, and all counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate::{Cost, Decision, ManualClock, Map, Zone};
use tidegate_rules::{Admission, Attributes, Gate, GateStore, RuleCounts};

use super::evaluator::{Answer, Counts, Evaluator, Penalty, Predicted, Request, Rule, Written, minutes};
use super::{Said, banned, said};
use crate::random::{Random, seed, tries};
use crate::requests::policy;

const USERS: [&str; 3] = ["ana", "bob", "eva"];
const TEAMS: [&str; 2] = ["red", "blue"];
const PATHS: [&str; 2] = ["/a", "/b"];
const STEPS: usize = 30;
/// The time at which each test begins, in minutes.
const START: u64 = 1000;

fn limit(random: &mut Random, with_permits: bool) -> Written {
    let (amount, span) = (1 + random.below(3) as u64, 1 + random.below(9) as u64);
    match random.below(if with_permits { 4 } else { 3 }) {
        0 => Written::Bucket { burst: amount, interval: span },
        1 => Written::Window { amount, period: span },
        2 => Written::Log { amount, period: span },
        _ => Written::Permits { most: amount, lease: span },
    }
}

fn rule(random: &mut Random, number: usize, with_permits: bool) -> Rule {
    let keys: [&[&'static str]; 5] = [&[], &["user"], &["user"], &["team"], &["user", "team"]];
    let penalty = (!random.once_in(3)).then(|| Penalty {
        after: 1 + random.below(4) as u64,
        within: 1 + random.below(12) as u64,
        lasts: 1 + random.below(15) as u64,
    });
    Rule {
        name: format!("r{number}"),
        path: random.once_in(4).then(|| PATHS[random.below(2)]),
        group: random.once_in(4).then(|| ["g", "h"][random.below(2)]),
        key: keys[random.below(keys.len())].to_vec(),
        limit: limit(random, with_permits),
        weight: if random.once_in(6) { 2 } else { 1 },
        is_shadow: random.once_in(5),
        penalty,
        candidate: random.once_in(6).then(|| limit(random, with_permits)),
    }
}

fn request(random: &mut Random) -> Request {
    let users = if random.once_in(3) { USERS.len() } else { 1 };
    Request {
        user: USERS[random.below(users)],
        team: TEAMS[random.below(2)],
        path: PATHS[random.below(2)],
        cost: match random.below(20) {
            0 => 9,
            1 => 3,
            2 | 3 => 2,
            _ => 1,
        },
    }
}

fn attributes(request: &Request) -> Attributes<'static> {
    let Request { user, team, path, cost } = *request;
    Attributes::new().set("user", user).set("team", team).path(path).cost(Cost::of(cost)).all_limits()
}

/// Returns what a decision says and what it leaves.
fn of_decision(decision: &Decision) -> Predicted {
    let wait = decision.retry_after();
    let said = match (decision.ban(), decision.is_allowed()) {
        (None, true) => Said::Allowed,
        (None, false) => Said::Denied(wait),
        (Some(tidegate::Ban::Begun), _) => Said::Begun(wait),
        (Some(tidegate::Ban::InForce), _) => Said::Banned(wait),
    };
    (said, decision.remaining())
}

fn compare(expected: &Answer, answer: &Admission) {
    let limits: BTreeMap<_, _> = answer
        .limits()
        .map(|limit| (limit.rule.to_string(), (said(limit), limit.decision.remaining())))
        .collect();
    assert_eq!(limits, expected.limits);
    assert_eq!(answer.is_allowed(), expected.is_allowed);
}

/// Compares the explanation of a request, and peeks at its keys, with the prediction.
fn compare_peeks(evaluator: &Evaluator, gate: &Gate, request: &Request) {
    let attributes = attributes(request);
    let predicted = evaluator.explain(request);
    let explained = gate.explain(&attributes).now().expect("memory answers at once");
    let applying = explained.rules.iter().filter(|rule| rule.applies);
    let decision = |rule: &tidegate_rules::RuleExplained| rule.decision.expect("it counts");
    let found: BTreeMap<_, _> =
        applying.map(|rule| (rule.rule.name().to_owned(), of_decision(&decision(rule)))).collect();
    assert_eq!(found, predicted);
    for rule in evaluator.rules.iter().filter(|rule| !rule.is_shadow && predicted.contains_key(&rule.name)) {
        let key = gate.rule_key(&rule.name, &attributes).expect("an enforced rule");
        let peeked = key.peek().now().expect("memory answers at once");
        let decision = peeked.binding().expect("a limit decides").decision;
        assert_eq!(of_decision(&decision), predicted[&rule.name]);
    }
}

fn compare_counts(evaluator: &Evaluator, gate: &Gate) {
    for (rule, counts) in gate.counts() {
        let RuleCounts { allowed, denied, impossible, bans, banned, looser, stricter, .. } = counts;
        let found = Counts { allowed, denied, impossible, bans, banned, looser, stricter };
        let expected = evaluator.counts.get(rule.name()).copied().unwrap_or_default();
        assert_eq!(found, expected, "{}", rule.name());
    }
    let mut listed = banned(gate, None);
    listed.sort();
    assert_eq!(listed, evaluator.bans());
}

/// A guard that prints the case when a test panics.
struct Case {
    text: String,
    history: Vec<String>,
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TIDEGATE_SEED={}\n{}\n{}", seed(), self.text, self.history.join("\n"));
        }
    }
}

/// One step of a test: what happens to the gate and to the evaluator.
fn step(random: &mut Random, evaluator: &mut Evaluator, gate: &Gate, case: &mut Case, has_units: bool) {
    let at_once = "memory answers at once";
    match random.below(16) {
        0 => {
            let request = request(random);
            case.history.push(format!("{} reset {request:?}", evaluator.now));
            for rule in evaluator.rules.clone().iter().filter(|rule| !rule.is_shadow) {
                let key = gate.rule_key(&rule.name, &attributes(&request)).expect("an enforced rule");
                key.reset().now().expect(at_once);
                evaluator.records.remove(&(rule.name.clone(), rule.key(&request)));
            }
        }
        1 | 2 if has_units => {
            let requests: Vec<_> = (0..1 + random.below(3)).map(|_| request(random)).collect();
            case.history.push(format!("{} unit {requests:?}", evaluator.now));
            let expected = evaluator.decide(&requests);
            let all: Vec<_> = requests.iter().map(attributes).collect();
            let answers = gate.admit_all(&all).now().expect(at_once);
            assert_eq!(answers.len(), expected.len());
            expected.iter().zip(&answers).for_each(|(expected, answer)| compare(expected, answer));
        }
        3 if has_units => {
            let request = request(random);
            case.history.push(format!("{} refunded {request:?}", evaluator.now));
            let before: HashMap<_, _> =
                evaluator.records.iter().map(|(key, record)| (key.clone(), record.takes.clone())).collect();
            let expected = evaluator.decide(&[request]).remove(0);
            let attributes = attributes(&request);
            let (answer, mut charges) = gate.admit_tracked(&attributes).now().expect(at_once);
            compare(&expected, &answer);
            // Strikes and bans stay.
            if answer.is_allowed() {
                gate.refund(&mut charges, request.cost).now().expect(at_once);
                for (key, record) in &mut evaluator.records {
                    record.takes = before.get(key).cloned().unwrap_or_default();
                }
            }
        }
        4 => {
            let requests: Vec<_> = (0..2 + random.below(4)).map(|_| request(random)).collect();
            case.history.push(format!("{} batch {requests:?}", evaluator.now));
            let batch = gate.batch();
            let stretch = batch.stretch();
            for request in requests {
                let expected = evaluator.decide(&[request]).remove(0);
                compare(&expected, &stretch.admit(&attributes(&request)).now().expect(at_once));
            }
        }
        _ => {
            let request = request(random);
            case.history.push(format!("{} {request:?}", evaluator.now));
            compare_peeks(evaluator, gate, &request);
            let expected = evaluator.decide(&[request]).remove(0);
            compare(&expected, &gate.admit(&attributes(&request)).now().expect(at_once));
        }
    }
}

#[test]
fn a_gate_with_penalties_decides_as_an_evaluator_that_keeps_lists() {
    println!("TIDEGATE_SEED={}", seed());
    let mut random = Random::new(seed());
    let (mut begun, mut banned, mut allowed) = (0, 0, 0);
    for number in 0..tries(100_000, 2_000) {
        // The permits of a unit are asks of their own, and are no units to refund.
        let has_units = random.once_in(2);
        let rules: Vec<_> = (0..1 + random.below(5)).map(|at| rule(&mut random, at, !has_units)).collect();
        let text: String = rules.iter().map(Rule::text).collect();
        let clock = Arc::new(ManualClock::new());
        clock.advance(minutes(START));
        let store: GateStore = match number % 2 {
            0 => Zone::with_clock(1 << 14, clock.clone()).into(),
            _ => Map::with_clock(clock.clone()).into(),
        };
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        let mut evaluator = Evaluator { rules, now: START, records: HashMap::new(), counts: BTreeMap::new() };
        let mut case = Case { text, history: Vec::new() };
        for _ in 0..STEPS {
            let wait = [0, 0, 0, 1, 1, 2, 3, 5, 9, 20][random.below(10)];
            clock.advance(minutes(wait));
            evaluator.now += wait;
            if random.once_in(40) {
                case.history.push(format!("{} reload", evaluator.now));
                gate.replace(policy(&case.text)).expect("the store supports the policy");
            }
            step(&mut random, &mut evaluator, &gate, &mut case, has_units);
        }
        compare_counts(&evaluator, &gate);
        drop(case);
        for counts in evaluator.counts.values() {
            (begun, banned, allowed) =
                (begun + counts.bans, banned + counts.banned, allowed + counts.allowed);
        }
    }
    println!("{begun} bans, {banned} requests of banned keys, {allowed} allowed");
    assert!(begun > 5_000 && banned > 10_000 && allowed > 10_000, "{begun} {banned} {allowed}");
}
