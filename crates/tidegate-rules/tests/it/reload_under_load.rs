//! Tests of policies that are replaced under load.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tidegate_rules::{Attributes, Gate, Policy};

use crate::random::{Random, seed, tries};
use crate::requests::{admit, policy, remaining, stores};

const THREADS: usize = 4;
const WIDE: u64 = 1_000_000_000;

/// Returns a policy with the permanent rules at random positions among temporary ones.
fn around(kept: &[String], random: &mut Random) -> Policy {
    let mut rules = kept.to_vec();
    for number in 0..random.below(6) {
        let limit = random.pick(&["1000000/s", "1000000/s fixed-window", "unlimited pacer"]);
        let mode = random.pick(&["enforce", "shadow"]);
        let key = random.pick(&["user", "path", "x"]);
        let other = format!(
            "[[rule]]\nname = 'other-{number}'\nkey = ['{key}']\nlimit = '{limit}'\nmode = '{mode}'\n"
        );
        rules.insert(random.below(rules.len() + 1), other);
    }
    for place in (1..rules.len()).rev() {
        rules.swap(place, random.below(place + 1));
    }
    policy(&format!("[zone.z]\nsize = '64KiB'\n{}", rules.concat()))
}

#[test]
fn a_key_that_was_refused_stays_refused_and_exactly_its_limit_passed() {
    let kept = ["", "zone = 'z'\n"]
        .map(|zone| format!("[[rule]]\nname = 'kept{zone:.1}'\nkey = ['user']\nlimit = '50/h'\n{zone}"));
    for (name, store, _) in stores() {
        let mut random = Random::new(seed());
        let gate = Gate::new(around(&kept, &mut random), store).expect("the store supports the policy");
        let (is_over, passed) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                let (gate, is_over, passed) = (&gate, &is_over, &passed);
                scope.spawn(move || {
                    let shared = Attributes::new().set("user", "everybody").path("/x");
                    let mut was_refused = false;
                    while !is_over.load(Ordering::Relaxed) {
                        let is_allowed = admit(gate, &shared).is_allowed();
                        assert!(!(was_refused && is_allowed), "a refused key passed on a {name}");
                        was_refused |= !is_allowed;
                        passed.fetch_add(u64::from(is_allowed), Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..tries(3_000, 300) {
                gate.replace(around(&kept, &mut random)).expect("there is memory");
                thread::yield_now();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        // If the threads did not exhaust the limit, the rest is allowed now.
        let last = Attributes::new().set("user", "everybody").path("/x");
        let rest = (0..50).filter(|_| admit(&gate, &last).is_allowed()).count() as u64;
        assert_eq!(passed.load(Ordering::Relaxed) + rest, 50, "on a {name}");
        for (rule, counts) in gate.counts() {
            assert!(!rule.name().starts_with("kept") || counts.allowed == 50, "{}: {counts:?}", rule.name());
        }
    }
}

#[test]
fn no_request_sees_half_of_a_policy() {
    // Both rules charge the same under each policy, so a mix of two policies leaves a difference.
    let both = |cost: u64, order: bool| {
        let rule = |name: &str, zone: &str| {
            format!("[[rule]]\nname = '{name}'\nlimit = '{WIDE}/h fixed-window'\ncost = {cost}\n{zone}\n")
        };
        let mut rules = [rule("first", ""), rule("second", "zone = 'z'")];
        if order {
            rules.reverse();
        }
        policy(&format!("[zone.z]\nsize = '64KiB'\n{}", rules.concat()))
    };
    for (name, store, _) in stores() {
        let gate = Gate::new(both(1, false), store).expect("the store supports the policy");
        let (is_over, spent) = (AtomicBool::new(false), AtomicU64::new(0));
        let request = Attributes::new();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                let (gate, is_over, spent, request) = (&gate, &is_over, &spent, &request);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let answer = admit(gate, request);
                        if let (true, Some(binding)) = (answer.is_allowed(), answer.binding()) {
                            spent.fetch_add(binding.cost, Ordering::Relaxed);
                        }
                    }
                });
            }
            for turn in 0..tries(3_000, 300) {
                gate.replace(both([1, 1_000][turn % 2], turn % 3 == 0)).expect("there is memory");
                thread::yield_now();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let left = ["first", "second"].map(|rule| WIDE - remaining(&gate, rule, &request));
        assert_eq!(left, [spent.load(Ordering::Relaxed); 2], "on a {name}");
    }
}
