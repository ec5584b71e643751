//! Two rules, one of which denies most requests: the other has spent exactly for the allowed requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidegate_rules::{Attributes, Gate, GateStore};

use crate::random::{Random, tries};
use crate::requests::{admit, policy, remaining, stores};

const THREADS: u64 = 8;
const USERS: [&str; 5] = ["ana", "bob", "eva", "ida", "uwe"];
const WIDE: u64 = 1_000_000;

/// Loads a gate from many threads, and then checks the remaining quota of its rules.
fn what_passed_is_what_was_spent(gate: &Gate, (narrow, wide): (u64, u64), requests: usize) {
    let passed: [AtomicU64; USERS.len()] = Default::default();
    let spent = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (gate, passed, spent) = (gate, &passed, &spent);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..requests / THREADS as usize {
                    let (user, cost) = (random.below(USERS.len()), 1 + random.below(3) as u64);
                    let request = Attributes::new().set("user", USERS[user]);
                    let request = request.cost(tidegate::Cost::of(cost));
                    if admit(gate, &request).is_allowed() {
                        passed[user].fetch_add(cost, Ordering::Relaxed);
                        spent.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let of = |user: usize| passed[user].load(Ordering::Relaxed);
    let total: u64 = (0..USERS.len()).map(of).sum();
    for (user, name) in USERS.into_iter().enumerate() {
        let request = Attributes::new().set("user", name);
        assert_eq!(remaining(gate, "narrow", &request), narrow - of(user), "{name}");
        assert_eq!(remaining(gate, "wide", &request), wide - total, "{name}");
        assert!(of(user) > narrow - 3, "{name} was refused too early, having {}", of(user));
    }
    for (rule, counts) in gate.counts() {
        assert_eq!(counts.allowed, spent.load(Ordering::Relaxed), "{}", rule.name());
        let refused = counts.denied + counts.impossible + counts.store_full;
        assert!(rule.name() == "narrow" || refused == 0, "{}: {counts:?}", rule.name());
    }
}

/// Returns both rules: the words after each limit, and the zone of each.
fn both(narrow: (&str, &str), wide: (&str, &str)) -> String {
    let ((narrow, first), (wide, second)) = (narrow, wide);
    format!(
        "[[rule]]\nname = 'narrow'\nkey = ['user']\nlimit = '200/h {narrow}'\n{first}\n\
         [[rule]]\nname = 'wide'\nlimit = '{WIDE}/h {wide}'\n{second}\n"
    )
}

fn hammer(text: &str, store: GateStore, requests: usize) {
    what_passed_is_what_was_spent(
        &Gate::new(policy(text), store).expect("the store supports the policy"),
        (200, WIDE),
        requests,
    );
}

#[test]
fn a_rule_that_allowed_spends_nothing_when_another_refused() {
    for (_, store, _) in stores() {
        hammer(&both(("", ""), ("", "")), store, tries(1_000_000, 150_000));
    }
}

#[test]
fn it_spends_nothing_in_another_zone_either() {
    let rules = both(("", "zone = 'a'"), ("", "zone = 'b'"));
    let text = format!("[zone.a]\nsize = '64KiB'\n[zone.b]\nsize = '64KiB'\n{rules}");
    for (_, store, _) in stores() {
        hammer(&text, store, tries(1_000_000, 150_000));
    }
}

#[test]
fn it_spends_nothing_whatever_the_algorithms() {
    let words = ["fixed-window", "sliding-log", "sliding-window", "token-bucket"];
    for narrow in words {
        for wide in words {
            let (_, store, _) = stores().into_iter().next().expect("a zone");
            hammer(&both((narrow, ""), (wide, "")), store, tries(200_000, 10_000));
        }
    }
}
