//! Tests of limits for single values of a key, in the rule itself.

use std::sync::Arc;

use tidegate::{Adjustment, Cost, Limit, SECOND};
use tidegate_rules::{Attributes, Gate, Instead, LimitSource, ManualCalendar};

use crate::changed_numbers::{ana, each, limit_of, passed, rule};
use crate::requests::{admit, policy, remaining, still_gate};

/// Returns the rule with limits for single values of its key.
pub(crate) fn valued(limit: &str, limit_for: &str) -> String {
    format!("{}limit_for = {{ {limit_for} }}\n", rule(limit))
}

fn bob() -> Attributes<'static> {
    Attributes::new().set("user", "bob")
}

/// Returns the limit in force for ana, and its source.
fn explained(gate: &Gate) -> (String, LimitSource) {
    let explained = gate.explain(&ana()).now().expect("memory answers at once");
    let limit = explained.rules[0].limit.expect("the rule has a limit").to_string();
    (limit, explained.rules[0].limit_from.expect("the rule has a limit"))
}

#[test]
fn a_value_with_a_limit_of_its_own_has_it_and_others_have_that_of_the_rule() {
    each(|algorithm, what, (store, _)| {
        let text = valued(&limit_of(5, "h", algorithm), &format!("ana = '{}'", limit_of(9, "h", algorithm)));
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        assert_eq!(remaining(&gate, "a", &bob()), 5, "{what}");
        assert_eq!(passed(&gate, 20), 9, "{what}");
        assert_eq!(remaining(&gate, "a", &bob()), 5, "{what}: it is a count of its own");
    });
}

#[test]
fn an_override_comes_before_a_value_and_a_value_before_the_schedule() {
    let schedule =
        "schedule = [{ from = '09:00', to = '17:00', timezone = 'UTC', limit = '7/d', cost = 2 }]\n";
    let calendar = Arc::new(ManualCalendar::at(10 * 3600));
    let gate = |text: &str| {
        let store = crate::requests::still_zone().0;
        Gate::builder(policy(text), store).calendar(calendar.clone()).build().expect("there is memory")
    };
    let plain = gate(&(rule("5/d") + schedule));
    assert_eq!(explained(&plain), ("7/d".to_owned(), LimitSource::Schedule));
    calendar.set(0);
    assert_eq!(explained(&plain), ("5/d".to_owned(), LimitSource::Limit));
    let gate = gate(&(valued("5/d", "ana = '9/d'") + schedule));
    for hour in [0, 10] {
        calendar.set(hour * 3600);
        assert_eq!(explained(&gate), ("9/d".to_owned(), LimitSource::LimitFor), "{hour}:00");
    }
    assert_eq!(passed(&gate, 9), 4, "the cost is that of the window");
    gate.put_override("a", &ana(), Instead::Limit("20/d".parse().expect("a limit")), 11 * 3600)
        .expect("there is a rule");
    assert_eq!(explained(&gate), ("20/d".to_owned(), LimitSource::Override));
    assert_eq!(remaining(&gate, "a", &ana()), 12, "8 are used");
    assert_eq!(passed(&gate, 2), 2);
    calendar.set(11 * 3600);
    assert_eq!(explained(&gate), ("9/d".to_owned(), LimitSource::LimitFor));
    assert!(remaining(&gate, "a", &ana()) <= 1, "what was used under both counts");
    gate.put_override("a", &ana(), Instead::Deny, None).expect("there is a rule");
    assert!(!admit(&gate, &ana()).is_allowed());
    assert_eq!(gate.remove_override("a", &ana()), Ok(true));
    assert_eq!(explained(&gate).1, LimitSource::LimitFor);
}

#[test]
fn a_value_that_comes_changes_or_goes_in_a_reload_keeps_what_its_key_has_used() {
    each(|algorithm, what, (store, clock)| {
        let limit = |amount| limit_of(amount, "h", algorithm);
        let gate = Gate::new(policy(&rule(&limit(5))), store).expect("the store supports the policy");
        let reload = |text: &str| gate.replace(policy(text)).expect("memory holds every limit");
        assert_eq!(passed(&gate, 4), 4, "{what}");
        clock.advance(SECOND);
        reload(&valued(&limit(5), &format!("ana = '{}'", limit(10))));
        assert_eq!(remaining(&gate, "a", &ana()), 6, "{what}: it came");
        assert_eq!(passed(&gate, 2), 2, "{what}");
        clock.advance(SECOND);
        reload(&valued(&limit(3), &format!("ana = '{}'", limit(10))));
        assert_eq!(remaining(&gate, "a", &ana()), 4, "{what}: only the limit of the rule has changed");
        reload(&valued(&limit(3), &format!("ana = '{}'", limit(20))));
        assert_eq!(remaining(&gate, "a", &ana()), 14, "{what}: it has changed");
        assert_eq!(passed(&gate, 1), 1, "{what}");
        clock.advance(SECOND);
        reload(&rule(&limit(9)));
        assert_eq!(remaining(&gate, "a", &ana()), 2, "{what}: it is gone, and seven are used");
    });
}

#[test]
fn a_key_that_is_missing_or_repeated_has_no_limit_of_a_value() {
    let gate = still_gate(&valued("5/h", "ana = '9/h', '' = '7/h'"));
    let several = Attributes::new().add("user", "ana").add("user", "bob");
    assert_eq!(remaining(&gate, "a", &several), 5);
    assert_eq!(remaining(&gate, "a", &Attributes::new()), 5);
    assert_eq!(remaining(&gate, "a", &Attributes::new().set("user", "")), 7, "an empty value is a value");
}

#[test]
fn an_address_is_found_by_its_network() {
    let text = "[[rule]]\nname = 'a'\nkey = ['ip']\nlimit = '5/h'\n\
                limit_for = { '2001:db8::/64' = '9/h', '192.0.2.7' = '7/h' }\n";
    let gate = still_gate(text);
    for (ip, left) in [
        ("2001:db8::1", 9),
        ("2001:db8:0:1::1", 5),
        ("192.0.2.7", 7),
        ("::ffff:192.0.2.7", 7),
        ("192.0.2.8", 5),
    ] {
        let request = Attributes::new().ip(ip.parse().expect("an address"));
        assert_eq!(remaining(&gate, "a", &request), left, "{ip}");
    }
}

#[test]
fn limits_of_values_are_checked_against_the_store_and_differ_in_the_log() {
    let (old, new) = (policy(&valued("5/h", "ana = '9/h'")), policy(&valued("5/h", "ana = '8/h'")));
    assert_eq!(tidegate_rules::differences(&old, &new), ["~ rule \"a\": other limits for single values"]);
    let limits: Vec<_> = new.rules()[0].limits().map(ToString::to_string).collect();
    assert_eq!(limits, ["5/h", "8/h"]);
}

/// Regression: whatever names a key of a rule by its name met the limit of the rule, and not that of the value.
#[test]
fn peeks_resets_and_corrections_of_a_value_are_under_its_limit() {
    each(|algorithm, what, (store, _)| {
        let text = valued(&limit_of(5, "h", algorithm), &format!("ana = '{}'", limit_of(9, "h", algorithm)));
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        let key = || gate.rule_key("a", &ana()).expect("the rule has this key");
        let peek = || {
            let admission = key().peek().now().expect("memory answers at once");
            let binding = admission.binding().expect("a limit decided");
            (binding.limit.to_string(), binding.decision.remaining())
        };
        let limit = limit_of(9, "h", algorithm).parse::<Limit>().expect("a limit").to_string();
        assert_eq!(passed(&gate, 3), 3, "{what}");
        assert_eq!(peek(), (limit.clone(), 6), "{what}");
        let two = Cost::new(2).expect("above zero");
        key().adjust(Adjustment::Charge(two)).now().expect("memory answers at once");
        assert_eq!(peek(), (limit, 4), "{what}");
        assert_eq!(passed(&gate, 20), 4, "{what}");
        assert_eq!(key().reset().now().ok(), Some(true), "{what}");
        assert_eq!(passed(&gate, 20), 9, "{what}");
    });
}

/// Regression: a batch by the old policy met the values of the new one.
#[test]
fn a_batch_by_a_pinned_policy_keeps_the_values_of_that_policy() {
    each(|algorithm, what, (store, clock)| {
        let limit = |amount| limit_of(amount, "d", algorithm);
        let text = |amount| valued(&limit(5), &format!("ana = '{}'", limit(amount)));
        let gate = Gate::new(policy(&text(90)), store).expect("the store supports the policy");
        let decided = |batch: &tidegate_rules::Batch| {
            let admissions = batch.admit_all(&[ana(), bob()]).now().expect("memory answers at once");
            let limits =
                admissions.iter().map(|admission| admission.binding().expect("a limit").decision.limit());
            limits.collect::<Vec<_>>()
        };
        let first = gate.pin().to_batch();
        assert_eq!(decided(&first), [90, 5], "{what}");
        clock.advance(SECOND);
        gate.replace(policy(&text(80))).expect("memory holds every limit");
        let second = gate.pin().to_batch();
        assert_eq!((decided(&first), decided(&second)), (vec![90, 5], vec![80, 5]), "{what}: it has changed");
        clock.advance(SECOND);
        gate.replace(policy(&rule(&limit(7)))).expect("memory holds every limit");
        let third = gate.pin().to_batch();
        for _ in 0..2 {
            assert_eq!(decided(&first), [90, 5], "{what}: it is gone");
            assert_eq!(decided(&second), [80, 5], "{what}: it is gone");
            assert_eq!(decided(&third), [7, 7], "{what}: it is gone");
        }
    });
}

/// Regression: a candidate was measured under its own limit for a value that has another one.
#[test]
fn a_candidate_has_the_limits_of_values_of_its_rule() {
    each(|algorithm, what, (store, _)| {
        let limit = |amount| limit_of(amount, "h", algorithm);
        let candidate = format!("[[rule]]\nname = 'b'\ncandidate_for = 'a'\nlimit = '{}'\n", limit(2));
        let text = valued(&limit(5), &format!("ana = '{}'", limit(9))) + &candidate;
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        assert_eq!(passed(&gate, 20), 9, "{what}");
        let counts = |gate: &Gate| gate.counts()[1].1;
        assert_eq!((counts(&gate).stricter, counts(&gate).looser), (0, 0), "{what}");
        let explained = gate.explain(&ana()).now().expect("memory answers at once");
        let of_candidate = &explained.rules[1];
        assert_eq!(of_candidate.limit_from, Some(LimitSource::LimitFor), "{what}");
        assert_eq!(of_candidate.decision.map(|decision| decision.limit()), Some(9), "{what}");
        for _ in 0..5 {
            admit(&gate, &bob());
        }
        assert_eq!((counts(&gate).stricter, counts(&gate).looser), (3, 0), "{what}");
    });
}
