//! Tests of a replaced policy: the counts that are kept and those that start anew.

use std::time::Duration;

use tidegate::Zone;
use tidegate_rules::{Attributes, Gate, Policy, RuleCounts};

use crate::requests::{admit, policy, remaining, still_gate, stores};

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

fn rule(name: &str, more: &str) -> String {
    format!("[[rule]]\nname = '{name}'\nkey = ['user']\n{more}\n")
}

fn counts(gate: &Gate, rule: &str) -> RuleCounts {
    let found = gate.counts().into_iter().find(|(known, _)| known.name() == rule);
    found.expect("there is such a rule").1
}

/// Returns the number of requests that are allowed before the first denial.
fn passing(gate: &Gate) -> u64 {
    let mut passed = 0;
    while admit(gate, &ana()).is_allowed() {
        passed += 1;
        assert!(passed < 1_000_000, "nothing is ever refused");
    }
    passed
}

#[test]
fn rules_that_only_move_in_the_file_keep_their_counts() {
    let (first, second) = (rule("first", "limit = '5/h'"), rule("second", "limit = '9/h'"));
    let other = rule("other", "limit = '100/h'");
    let gate = still_gate(&format!("{first}{second}"));
    for _ in 0..3 {
        admit(&gate, &ana());
    }
    for text in [
        format!("{second}{first}"),
        format!("{other}{second}{other}{first}").replacen(&other, "", 1),
        format!("{second}{other}{first}"),
    ] {
        gate.replace(policy(&text)).expect("there is memory");
        assert_eq!((remaining(&gate, "first", &ana()), remaining(&gate, "second", &ana())), (2, 6), "{text}");
        assert_eq!((counts(&gate, "first").allowed, counts(&gate, "second").allowed), (3, 3), "{text}");
    }
    assert_eq!(counts(&gate, "other"), RuleCounts::default());
    assert_eq!(passing(&gate), 2);
}

#[test]
fn a_rule_with_another_name_begins_anew_and_finds_its_debt_again_under_the_old_one() {
    let gate = still_gate(&rule("before", "limit = '2/h'"));
    assert_eq!(passing(&gate), 2);
    gate.replace(policy(&rule("after", "limit = '2/h'"))).expect("there is memory");
    assert_eq!((passing(&gate), counts(&gate, "after").allowed), (2, 2));
    gate.replace(policy(&rule("before", "limit = '2/h'"))).expect("there is memory");
    assert_eq!(passing(&gate), 0, "its keys still owe, though what was counted is gone");
}

#[test]
fn other_numbers_keep_the_debt_and_never_let_more_pass_than_they_hold() {
    let words = ["", "leaky-bucket queue", "fixed-window", "sliding-log", "sliding-window"];
    for word in words {
        let limit = |amount: u64| match word {
            "leaky-bucket queue" => {
                rule("rule", &format!("limit = '{amount}/h queue {} leaky-bucket'", amount - 1))
            }
            word => rule("rule", &format!("limit = '{amount}/h {word}'")),
        };
        for (before, after) in [(10_u64, 5_u64), (10, 20), (100, 1), (1, 100), (7, 7)] {
            for (name, store, clock) in stores() {
                let gate = Gate::new(policy(&limit(before)), store).expect("the store supports the policy");
                let what = format!("{word} {before} {after} on a {name}");
                // The middle of a window, so that none ends while the clock advances.
                clock.advance(Duration::from_secs(1800));
                assert_eq!(passing(&gate), before, "{what}");
                gate.replace(policy(&limit(after))).expect("there is memory");
                assert!(
                    passing(&gate) <= after.saturating_sub(before.min(after)).max(after.saturating_sub(1)),
                    "{what}"
                );
                assert_eq!(passing(&gate), 0, "{what}");
                // After a long enough wait the key is full.
                clock.advance(Duration::from_secs(7200));
                assert_eq!(passing(&gate), after, "{what}: a debt larger than the limit holds was kept");
            }
        }
    }
}

#[test]
fn a_refused_key_stays_refused_whatever_else_changes() {
    let kept = rule("kept", "limit = '1/h'");
    let gate = still_gate(&kept);
    assert_eq!(passing(&gate), 1);
    for text in [
        format!("{}{kept}", rule("other", "limit = '1/s'")),
        format!(
            "{kept}{}",
            rule("beside", "limit = '9/h'").replace("key = ['user']", "candidate_for = 'kept'")
        ),
        kept.replace("key =", "when = { user = '*' }\nkey ="),
        kept.replace("'1/h'", "'1/h'\nmax_wait = '1s'\non_store_failure = 'open'\nwhen_full = 'forget'"),
        format!("[zone.z]\nsize = '64KiB'\n{kept}"),
        kept.replace("'1/h'", "'1/h burst 1'"),
    ] {
        gate.replace(policy(&text)).expect("there is memory");
        assert!(!admit(&gate, &ana()).is_allowed(), "{text}");
    }
}

#[test]
fn a_zone_keeps_what_it_holds_as_long_as_it_has_its_name() {
    let zone = |name: &str, size: &str| format!("[zone.{name}]\nsize = '{size}'\n");
    let logins = rule("login", "limit = '1/h'\nzone = 'logins'");
    for (_, store, _) in stores() {
        let gate = Gate::new(policy(&format!("{}{logins}", zone("logins", "64KiB"))), store)
            .expect("the store supports the policy");
        assert_eq!(passing(&gate), 1);
        let bytes = gate.zones()[0].1.bytes();
        gate.replace(policy(&format!("{}{}{logins}", zone("another", "64KiB"), zone("logins", "1MiB"))))
            .expect("there is memory");
        assert_eq!(passing(&gate), 0, "another size is another day's work, and no reason to forget");
        let names: Vec<_> = gate.zones().into_iter().map(|(name, zone)| (name, zone.bytes())).collect();
        assert!(names.contains(&("logins".to_owned(), bytes)) && names.len() == 2, "{names:?}");
        gate.replace(policy(&rule("login", "limit = '1/h'"))).expect("there is memory");
        assert_eq!(
            (passing(&gate), gate.zones().len()),
            (1, 0),
            "without its zone it is counted in the main store"
        );
        gate.replace(policy(&format!("{}{logins}", zone("logins", "64KiB")))).expect("there is memory");
        assert_eq!(passing(&gate), 1, "what a zone held is gone with it");
    }
}

#[test]
fn a_place_in_flight_can_be_given_back_after_other_rules_came() {
    let text = rule("uploads", "limit = '1/h concurrency'");
    for (_, store, _) in stores() {
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        let held = admit(&gate, &ana());
        assert!(held.is_allowed() && !admit(&gate, &ana()).is_allowed());
        gate.replace(policy(&format!("{}{}", rule("x", "limit = '100/s'"), text.replace("1/h", "1/m"))))
            .expect("there is memory");
        assert!(!admit(&gate, &ana()).is_allowed());
        assert_eq!(gate.release(&held.permits()[0]).now().ok(), Some(true));
        assert!(admit(&gate, &ana()).is_allowed());
    }
}

#[test]
fn an_override_goes_on_under_other_rules() {
    let text = rule("rule", "limit = '1/h'");
    let gate = still_gate(&text);
    let three = tidegate_rules::Instead::Limit("3/h".parse().expect("a limit"));
    gate.put_override("rule", &ana(), three, i64::MAX).expect("a rule with a limit");
    gate.replace(policy(&format!("{}{text}", rule("x", "limit = '100/s'")))).expect("there is memory");
    assert_eq!(passing(&gate), 3);
    assert_eq!(gate.remove_override("rule", &ana()), Ok(true));
    assert_eq!(passing(&gate), 0);
}

#[test]
fn a_candidate_has_no_overrides_as_it_decides_nothing() {
    let gate = still_gate(&format!(
        "{}[[rule]]\nname = 'beside'\ncandidate_for = 'rule'\nlimit = '2/h'\n",
        rule("rule", "limit = '1/h'")
    ));
    let deny = tidegate_rules::Instead::Deny;
    assert!(gate.put_override("beside", &ana(), deny, i64::MAX).is_err());
    assert!(gate.put_override("rule", &ana(), deny, i64::MAX).is_ok());
    // A rule that becomes a candidate loses its overrides.
    gate.replace(policy(&format!(
        "{}[[rule]]\nname = 'rule'\ncandidate_for = 'beside'\nlimit = '2/h'\n",
        rule("beside", "limit = '1/h'")
    )))
    .expect("there is memory");
    let explained = gate.explain(&ana()).now().expect("at once");
    assert!(
        explained.rules.iter().all(|explained| !explained.is_overridden && explained.decision.is_some()),
        "{explained:?}"
    );
}

/// A front reads only the attributes that the rules in force use, so it has to decide by the same rules.
#[test]
fn a_pinned_policy_decides_although_it_was_replaced() {
    let banned =
        |user: &str| format!("[[rule]]\nname = '{user}'\nwhen = {{ user = '{user}' }}\ndecision = 'deny'\n");
    let policy = |user: &str| Policy::from_toml(&banned(user)).expect("it is valid");
    let gate = Gate::new(policy("ana"), Zone::new(1 << 16)).expect("the store supports it");
    let pinned = gate.pin();
    let batch = pinned.to_batch();
    gate.replace(policy("bob")).expect("the store supports it");
    let ana = Attributes::new().set("user", "ana");
    let decided = [
        pinned.admit(&ana).now().expect("memory does not fail"),
        pinned.admit_tracked(&ana).now().expect("memory does not fail").0,
        batch.admit(&ana).now().expect("memory does not fail"),
        batch.admit_tracked(&ana).now().expect("memory does not fail").0,
    ];
    for admission in decided {
        assert!(admission.is_forbidden() && admission.rule() == Some("ana"), "{admission:?}");
    }
    assert!(gate.admit(&ana).now().expect("memory does not fail").is_allowed());
}
