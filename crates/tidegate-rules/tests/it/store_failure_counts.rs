//! Tests of a store that fails at random: the counts equal the decisions, and the limit is not exceeded.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::{DecidedBy, WithoutStore};
use tidegate_rules::{Attributes, Gate, RuleCounts};

use crate::faulty::{Health, Node, nodes, one_of};
use crate::random::{Random, seed, tries};
use crate::requests::admit;

const USERS: [&str; 3] = ["ana", "bob", "eva"];

fn rule(name: &str, limit: &str, more: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{more}limit = '{limit}'\n")
}

fn counts(gate: &Gate, rule: &str) -> RuleCounts {
    gate.counts().into_iter().find(|(known, _)| known.name() == rule).expect("there is such a rule").1
}

fn tally(of: &mut WithoutStore, by: DecidedBy, is_allowed: bool) {
    match (by, is_allowed) {
        (DecidedBy::Local, true) => of.local_allowed += 1,
        (DecidedBy::Local, false) => of.local_denied += 1,
        (DecidedBy::Open, _) => of.open += 1,
        (DecidedBy::Closed, _) => of.closed += 1,
        _ => {}
    }
}

#[test]
fn what_was_counted_is_what_was_answered() {
    let text = ["open", "closed", "local"].map(|policy| {
        let when =
            format!("when = {{ path = '/{policy}' }}\nkey = ['user']\non_store_failure = '{policy}'\n");
        rule(policy, "9/m burst 3", &when)
    });
    let node = one_of(&text.concat(), 2);
    let mut random = Random::new(seed());
    let mut by_rule: HashMap<&str, (WithoutStore, u64, u64)> = HashMap::new();
    let (mut all, mut failed) = (WithoutStore::default(), 0);
    for _ in 0..tries(200_000, 20_000) {
        let is_down = random.below(3) > 0;
        node.store.is(if is_down { Health::Down } else { Health::Up });
        node.clock.advance(Duration::from_millis(random.below(4000) as u64));
        let path = random.pick(&["/open", "/closed", "/local", "/nowhere"]);
        let request = Attributes::new().set("user", random.pick(&USERS)).path(path);
        let answer = admit(&node.gate, &request);
        let Some(rule) = ["open", "closed", "local"].into_iter().find(|rule| answer.rule() == Some(*rule))
        else {
            assert_eq!((answer.is_allowed(), answer.decided_by()), (true, DecidedBy::Memory));
            continue;
        };
        failed += u64::from(is_down);
        assert_eq!(answer.decided_by() == DecidedBy::Remote, !is_down);
        assert_eq!(is_down.then_some(rule), is_down.then(|| answer.decided_by().as_str()));
        let (of_rule, allowed, denied) = by_rule.entry(rule).or_default();
        tally(of_rule, answer.decided_by(), answer.is_allowed());
        tally(&mut all, answer.decided_by(), answer.is_allowed());
        *(if answer.is_allowed() { allowed } else { denied }) += 1;
    }
    for (rule, (without_store, allowed, denied)) in by_rule {
        let counted = counts(&node.gate, rule);
        assert_eq!(
            (counted.without_store, counted.allowed, counted.denied),
            (without_store, allowed, denied)
        );
        assert!(without_store.total() > 0 && allowed > 0, "{rule}: {counted:?}");
    }
    let failures = node.gate.store_failures();
    assert_eq!((failures.decided, failures.failed), (all, failed));
}

#[test]
fn a_rule_that_is_only_measured_skips_a_failed_store_and_is_counted() {
    let text = format!(
        "{}{}{}{}",
        rule("api", "9/h", "key = ['user']\n"),
        rule("stricter", "1/h", "candidate_for = 'api'\n"),
        rule("shadow", "1/h", "key = ['user']\nmode = 'shadow'\n"),
        rule("beside", "2/h", "candidate_for = 'shadow'\n"),
    );
    let node = one_of(&text, 3);
    let ana = Attributes::new().set("user", "ana");
    node.store.is(Health::Down);
    let passed = (0..5).filter(|_| admit(&node.gate, &ana).is_allowed()).count();
    assert_eq!((passed, node.store.takes.load(Ordering::SeqCst)), (3, 5), "once for each request");
    for rule in ["stricter", "shadow", "beside"] {
        let mut expected = RuleCounts::default();
        expected.unmeasured = 3;
        assert_eq!(counts(&node.gate, rule), expected, "{rule}: of the three that happened");
    }
    node.store.is(Health::Up);
    assert!(admit(&node.gate, &ana).is_allowed());
    for rule in ["stricter", "shadow", "beside"] {
        let counted = counts(&node.gate, rule);
        assert_eq!((counted.unmeasured, counted.allowed), (3, 1), "{rule}");
    }
}

#[test]
fn a_store_that_fails_while_it_only_measures_is_asked_once() {
    let shadow = |name: &str| rule(name, "9/h", "key = ['user']\nmode = 'shadow'\n");
    let beside = rule("beside", "9/h", "candidate_for = 'two'\n");
    let node = one_of(&format!("{}{beside}", ["one", "two", "three"].map(shadow).concat()), 3);
    node.store.is(Health::Down);
    let answer = admit(&node.gate, &Attributes::new().set("user", "ana"));
    assert_eq!((answer.is_allowed(), answer.decided_by()), (true, DecidedBy::Memory));
    assert_eq!(node.store.takes.load(Ordering::SeqCst), 1);
    assert!(["one", "two", "three", "beside"].iter().all(|rule| counts(&node.gate, rule).unmeasured == 1));
    let failures = node.gate.store_failures();
    assert_eq!((failures.is_failing, failures.failed, failures.decided.total()), (true, 1, 0));
}

/// Through an outage of length p, n nodes admit together at most n · (1/n) · (B + r · p), as LAWS D-d says. The store,
/// which refills meanwhile, admits at most its own B + r · t in addition.
#[test]
fn an_outage_lets_no_more_pass_than_the_limit_would() {
    const BURST: u64 = 12;
    const PER_MINUTE: u64 = 60;
    let worst_case = |span: Duration| u128::from(BURST) + span.as_millis() * u128::from(PER_MINUTE) / 60_000;
    let text = rule("api", &format!("{PER_MINUTE}/m burst {BURST}"), "key = ['user']\n");
    let ana = Attributes::new().set("user", "ana");
    for (salt, count) in [(2, 3_u64), (3, 5), (4, 12)] {
        let nodes: Vec<Node> = nodes(&text, count);
        let mut random = Random::new(seed() ^ salt);
        let (mut outage, mut total) = (Duration::ZERO, Duration::ZERO);
        let (mut in_outage, mut local, mut by_store) = (0_u128, 0_u128, 0_u128);
        let mut is_down = false;
        for _ in 0..tries(300_000, 30_000) {
            if random.once_in(500) {
                is_down = !is_down;
                nodes[0].store.is(if is_down { Health::Down } else { Health::Up });
                (outage, in_outage) = (Duration::ZERO, 0);
            }
            let wait = Duration::from_millis(random.below(400) as u64);
            nodes[0].clock.advance(wait);
            (outage, total) = (outage + wait, total + wait);
            let answer = admit(&nodes[random.below(nodes.len())].gate, &ana);
            let passed = u128::from(answer.is_allowed());
            if answer.decided_by() == DecidedBy::Local {
                (local, in_outage) = (local + passed, in_outage + passed);
            } else {
                by_store += passed;
            }
            assert!(in_outage <= worst_case(outage), "{count} nodes: {in_outage} in {outage:?}");
            assert!(by_store <= worst_case(total), "{count} nodes: {by_store} by the store in {total:?}");
        }
        assert!(local > 1000 && by_store > 1000, "{count} nodes: {local} and {by_store} show nothing");
    }
}
