//! Tests of concurrency permits under rules: a release affects that permit and no other.

use std::sync::Arc;

use tidegate::{Limit, ManualClock, SECOND};
use tidegate_rules::{Admission, Attributes, Gate, HeldPermit, Instead};

use crate::requests::{policy, still_zone};

fn rule(limit: &str) -> String {
    format!("[[rule]]\nname = 'reports'\nkey = ['user']\nlimit = '{limit}'\n")
}

fn gate_with_clock(text: &str) -> (Gate, Arc<ManualClock>) {
    let (zone, clock) = still_zone();
    (Gate::new(policy(text), zone).expect("the store supports the policy"), clock)
}

fn ask(gate: &Gate) -> Admission {
    gate.admit(&Attributes::new().set("user", "ana")).now().expect("memory answers at once")
}

fn taken(gate: &Gate) -> HeldPermit {
    let admission = ask(gate);
    assert!(admission.is_allowed());
    admission.permits()[0].clone()
}

#[test]
fn a_permit_says_whose_place_it_is_and_not_how_long_others_hold_theirs() {
    let (gate, _) = gate_with_clock(&rule("1/60s concurrency"));
    let held = taken(&gate);
    let forged = |limit: &str, id| {
        HeldPermit::new(held.rule.clone(), held.key.clone(), limit.parse().expect("a limit"), id)
    };
    let unknown = tidegate::PermitId::from_number(7).expect("a number");
    for limit in ["1/1us concurrency", "1048576/3650d concurrency"] {
        assert_eq!(gate.release(&forged(limit, unknown)).now().ok(), Some(false));
        assert_eq!(gate.renew(&forged(limit, unknown)).now().ok(), Some(false));
        assert!(!ask(&gate).is_allowed(), "the place is still held");
    }
    assert_eq!(gate.renew(&forged("1/3650d concurrency", held.id)).now().ok(), Some(true));
    assert_eq!(ask(&gate).binding().and_then(|binding| binding.decision.retry_after()), Some(60 * SECOND));
}

#[test]
fn an_old_permit_does_not_end_the_longer_leases_of_others() {
    let (gate, clock) = gate_with_clock(&rule("2/2s concurrency"));
    let old = taken(&gate);
    gate.replace(policy(&rule("2/300s concurrency"))).expect("no zones");
    let _new = taken(&gate);
    assert_eq!(gate.release(&old).now().ok(), Some(true));
    let _third = taken(&gate);
    clock.advance(10 * SECOND);
    assert!(!ask(&gate).is_allowed(), "two are in flight for five minutes");
}

#[test]
fn a_lease_is_as_long_as_the_rule_says_now_and_ends_with_it() {
    let (gate, clock) = gate_with_clock(&rule("1/10s concurrency"));
    let held = taken(&gate);
    gate.replace(policy(&rule("1/60s concurrency"))).expect("no zones");
    assert_eq!(gate.renew(&held).now().ok(), Some(true));
    clock.advance(59 * SECOND);
    assert!(!ask(&gate).is_allowed());
    gate.replace(policy("")).expect("no zones");
    assert_eq!(gate.renew(&held).now().ok(), Some(false), "no rule gives a lease time");
    assert_eq!(gate.release(&held).now().ok(), Some(true));
}

#[test]
fn under_another_limit_for_one_key_its_leases_are_those() {
    let (gate, clock) = gate_with_clock(&rule("1/10s concurrency"));
    let ana = Attributes::new().set("user", "ana");
    let longer: Limit = "2/60s concurrency".parse().expect("a limit");
    gate.put_override("reports", &ana, Instead::Limit(longer), i64::MAX).expect("there is such a rule");
    let (one, two) = (taken(&gate), taken(&gate));
    assert_eq!(gate.renew(&one).now().ok(), Some(true));
    clock.advance(30 * SECOND);
    assert!(!ask(&gate).is_allowed());
    assert_eq!(gate.release(&two).now().ok(), Some(true));
    assert!(ask(&gate).is_allowed());
}

/// Regression: permits had consecutive numbers, so a holder could release the permit of its neighbor.
#[test]
fn a_holder_cannot_count_on_to_the_permit_of_its_neighbour() {
    let (gate, _) = gate_with_clock(&rule("2/60s concurrency"));
    let (mine, neighbours) = (taken(&gate), taken(&gate));
    for step in 1..100 {
        for number in [mine.id.number().wrapping_add(step), mine.id.number().wrapping_sub(step)] {
            let id = tidegate::PermitId::from_number(number).expect("a number far from zero");
            let forged = HeldPermit::new(mine.rule.clone(), mine.key.clone(), mine.limit, id);
            assert_eq!(gate.release(&forged).now().ok(), Some(false), "{step}");
        }
    }
    assert!(!ask(&gate).is_allowed(), "both places are still held");
    assert_eq!(gate.release(&neighbours).now().ok(), Some(true));
}

#[test]
fn a_place_is_found_in_the_zone_that_it_was_taken_in() {
    let in_zone = |zone: &str| {
        format!("[zone.old]\nsize = '64KiB'\n[zone.new]\nsize = '64KiB'\n{}{zone}", rule("2/1h concurrency"))
    };
    let texts = ["", "zone = 'old'\n", "zone = 'new'\n"].map(in_zone);
    let without = "[zone.old]\nsize = '64KiB'\n[zone.new]\nsize = '64KiB'\n";
    for before in &texts {
        for after in texts.iter().map(String::as_str).chain([without]) {
            let (gate, _) = gate_with_clock(before);
            let held = [taken(&gate), taken(&gate)];
            gate.replace(policy(after)).expect("there is memory");
            let is_renewed = after != without;
            assert_eq!(gate.renew(&held[0]).now().ok(), Some(is_renewed), "{before} then {after}");
            assert_eq!(gate.release(&held[0]).now().ok(), Some(true), "{before} then {after}");
            gate.release_later(&held[1..]);
            gate.replace(policy(before)).expect("there is memory");
            let _both = [taken(&gate), taken(&gate)];
        }
    }
}
