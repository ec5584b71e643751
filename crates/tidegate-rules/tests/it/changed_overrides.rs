//! Tests that an override changes the numbers of one key: counts are carried over at its beginning and its end.

use std::sync::Arc;

use tidegate::{SECOND, Zone};
use tidegate_rules::{Attributes, Gate, Instead, ManualCalendar};

use crate::changed_numbers::{COUNTING, ana, each, limit_of, passed, rule};
use crate::requests::{policy, remaining, stores};

const END: i64 = 1000;

/// Overrides the rule's limit until [`END`].
fn put(gate: &Gate, limit: &str) {
    let limit = limit.parse().expect("a limit");
    gate.put_override("a", &ana(), Instead::Limit(limit), END).expect("it is supported");
}

#[test]
fn an_override_that_raises_a_limit_gives_the_difference_and_its_end_takes_it_back() {
    for is_removed in [true, false] {
        each(|algorithm, what, (store, clock)| {
            let calendar = Arc::new(ManualCalendar::at(0));
            let text = rule(&limit_of(5, "h", algorithm));
            let gate = Gate::builder(policy(&text), store)
                .calendar(calendar.clone())
                .build()
                .expect("the store supports the policy");
            assert_eq!(passed(&gate, 9), 5, "{what}");
            clock.advance(SECOND);
            put(&gate, &limit_of(100, "h", algorithm));
            assert_eq!(remaining(&gate, "a", &ana()), 95, "{what}");
            assert_eq!(passed(&gate, 20), 20, "{what}");
            assert_eq!(remaining(&gate, "a", &ana()), 75, "{what}: it is carried over once");
            end(&gate, &calendar, is_removed);
            assert_eq!(passed(&gate, 9), 0, "{what}: the rule's own state is used");
        });
    }
}

fn end(gate: &Gate, calendar: &ManualCalendar, is_removed: bool) {
    if is_removed {
        assert_eq!(gate.remove_override("a", &ana()), Ok(true));
        assert_eq!(gate.remove_override("a", &ana()), Ok(false));
    } else {
        calendar.set(END);
    }
    assert!(gate.overrides().is_empty());
}

#[test]
fn what_was_used_under_an_override_counts_when_it_ends() {
    for is_removed in [true, false] {
        each(|algorithm, what, (store, clock)| {
            let calendar = Arc::new(ManualCalendar::at(0));
            let text = rule(&limit_of(5, "h", algorithm));
            let gate = Gate::builder(policy(&text), store)
                .calendar(calendar.clone())
                .build()
                .expect("the store supports the policy");
            put(&gate, &limit_of(100, "h", algorithm));
            assert_eq!(passed(&gate, 3), 3, "{what}");
            clock.advance(SECOND);
            end(&gate, &calendar, is_removed);
            assert_eq!(remaining(&gate, "a", &ana()), 2, "{what}");
            assert_eq!(passed(&gate, 9), 2, "{what}");
            // Another limit of the rule comes into force while counts of the override still matter.
            clock.advance(SECOND);
            gate.replace(policy(&rule(&limit_of(8, "h", algorithm)))).expect("memory holds every limit");
            assert_eq!(remaining(&gate, "a", &ana()), 3, "{what}");
            // The counts expire eventually.
            clock.advance(3 * 3600 * SECOND);
            calendar.set(END + 3 * 3600);
            assert_eq!(passed(&gate, 9), 8, "{what}");
        });
    }
}

#[test]
fn a_rule_whose_only_key_had_an_override_is_in_force_afterwards() {
    each(|algorithm, what, (store, clock)| {
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate = Gate::builder(policy(&rule(&limit_of(5, "d", algorithm))), store)
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        put(&gate, &limit_of(100, "s", algorithm));
        assert_eq!(passed(&gate, 1), 1, "{what}");
        end(&gate, &calendar, true);
        let reload = |amount| {
            let text = rule(&limit_of(amount, "d", algorithm));
            gate.replace(policy(&text)).expect("memory holds every limit");
        };
        reload(8);
        // No other key is used, so the limit of the rule comes into force with this key, which returns to it.
        let used = passed(&gate, 3) as u64;
        assert_eq!(used, 3, "{what}");
        // The override is removed, but the key's use of the rule's limit is not.
        clock.advance(60 * SECOND);
        calendar.set(60);
        reload(20);
        assert_eq!(remaining(&gate, "a", &ana()), 20 - 1 - used, "{what}: one was used under the override");
    });
}

#[test]
fn a_limit_that_is_used_up_under_an_override_is_not_fresh_when_the_override_ends() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store)
            .expect("the store supports the policy");
        put_for_ever(&gate, &limit_of(100, "h", algorithm));
        assert_eq!(passed(&gate, 50), 50, "{what}");
        clock.advance(SECOND);
        assert_eq!(gate.remove_override("a", &ana()), Ok(true));
        assert_eq!(passed(&gate, 9), 0, "{what}");
    });
}

#[test]
fn one_override_after_another_keeps_what_was_used_under_both() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store)
            .expect("the store supports the policy");
        for (amount, left) in [(10, 10), (20, 17), (30, 24), (100, 91)] {
            put_for_ever(&gate, &limit_of(amount, "h", algorithm));
            assert_eq!(remaining(&gate, "a", &ana()), left, "{what}: {amount}/h");
            assert_eq!(passed(&gate, 3), 3, "{what}");
            clock.advance(SECOND);
        }
    });
}

fn put_for_ever(gate: &Gate, limit: &str) {
    let limit = limit.parse().expect("a limit");
    gate.put_override("a", &ana(), Instead::Limit(limit), i64::MAX).expect("it is supported");
}

#[test]
fn a_reload_and_an_edge_of_the_schedule_leave_the_limit_of_an_override() {
    let schedule = "schedule = [{ from = '09:00', to = '17:00', timezone = 'UTC', limit = '7/d' }]\n";
    each(|algorithm, what, (store, clock)| {
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate = Gate::builder(policy(&rule("1/d")), store)
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        put_for_ever(&gate, &limit_of(10, "d", algorithm));
        assert_eq!(passed(&gate, 4), 4, "{what}");
        for hour in [0, 10, 20] {
            clock.advance(SECOND);
            calendar.set(hour * 3600);
            gate.replace(policy(&format!("{}{schedule}", rule("2/d")))).expect("memory holds every limit");
            assert_eq!(passed(&gate, 1), 1, "{what}: {hour}:00");
        }
        assert_eq!(remaining(&gate, "a", &ana()), 3, "{what}");
    });
}

/// Returns the warnings about an override with this limit.
fn warned(text: &str, limit: &str) -> Vec<String> {
    let gate = Gate::new(policy(text), Zone::new(1 << 16)).expect("the store supports the policy");
    let limit = limit.parse().expect("a limit");
    let put = gate.put_override("a", &ana(), Instead::Limit(limit), i64::MAX).expect("it is supported");
    assert_eq!(gate.overrides(), [put.put]);
    put.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn an_override_of_another_algorithm_begins_anew_and_is_warned_of() {
    for algorithm in COUNTING {
        for (name, store, _) in stores() {
            let what = format!("{algorithm} on a {name}");
            let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store)
                .expect("the store supports the policy");
            assert_eq!(passed(&gate, 9), 5, "{what}");
            for other in COUNTING {
                let limit = limit_of(5, "h", other).parse().expect("a limit");
                let put = gate.put_override("a", &ana(), Instead::Limit(limit), i64::MAX);
                let warnings = put.expect("it is supported").warnings;
                let begins_anew = other != algorithm;
                assert_eq!(passed(&gate, 9), if begins_anew { 5 } else { 0 }, "{what}: {other}");
                assert_eq!(warnings.len(), usize::from(begins_anew), "{what}: {other}");
            }
        }
    }
    assert_eq!(
        warned(&rule("5/h"), "9/h sliding-log"),
        [
            "limit \"9/h sliding-log\": is a sliding-log and rule \"a\" a token-bucket, so what this key has used \
          does not count under the override, nor the other way round; write a limit of the same algorithm"
        ]
    );
}

#[test]
fn an_override_is_warned_of_if_any_window_of_its_rule_has_another_algorithm() {
    let window =
        |limit: &str| format!("schedule = [{{ from = '02:00', to = '04:00', limit = '{limit}' }}]\n");
    let log = rule("5/h sliding-log");
    assert_eq!(warned(&(log.clone() + &window("6/h sliding-log")), "9/h sliding-log"), [""; 0]);
    let warnings = warned(&(log + &window("6/h fixed-window")), "9/h sliding-log");
    assert!(warnings.len() == 1 && warnings[0].contains("and rule \"a\" a fixed-window"), "{warnings:?}");
}

#[test]
fn an_override_that_cannot_be_forgotten_is_put_and_warned_of() {
    let forgets = rule("5/h fixed-window") + "when_full = 'forget'\n";
    assert_eq!(warned(&forgets, "9/h fixed-window"), [""; 0]);
    let warnings = warned(&forgets, "9/h fixed-window align first-hit");
    assert_eq!(
        warnings,
        [
            "limit \"9/h align first-hit fixed-window\": its keys are not kept in the cells of a zone, so when_full = \
          \"forget\" of rule \"a\" has no effect on this key; write a token-bucket, or a fixed-window that is aligned to the \
          epoch, of at least 3ms and less than 16777216 units"
        ]
    );
    assert_eq!(warned(&forgets, "9/h sliding-log").len(), 2);
    assert_eq!(warned(&rule("5/h fixed-window"), "9/h fixed-window align first-hit"), [""; 0]);
}

#[test]
fn a_value_that_an_override_denies_is_denied_among_others() {
    let text = "[[rule]]\nname = 'a'\nkey = ['header.x-key', 'query.team', 'user']\nlimit = '100/h'\n";
    let gate = Gate::new(policy(text), Zone::new(1 << 16)).expect("the store supports the policy");
    let evil = Attributes::new().set("header.x-key", "evil").set("query.team", "red").set("user", "ana");
    gate.put_override("a", &evil, Instead::Deny, i64::MAX / 2).expect("it is supported");
    let many: Vec<_> = (0..65).map(|number| number.to_string()).collect();
    let some = |values: &[&'static str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    for (keys, teams, user, is_allowed) in [
        (some(&["good"]), some(&["red"]), Some("ana"), true),
        (some(&["evil"]), some(&["red"]), Some("ana"), false),
        (some(&["evil", "good"]), some(&["red"]), Some("ana"), false),
        (some(&["good", "evil"]), some(&["blue", "red"]), Some("ana"), false),
        (some(&["good", "evil"]), some(&["blue", "green"]), Some("ana"), true),
        (some(&["good", "evil"]), some(&["red"]), Some("bob"), true),
        (some(&["good", "evil"]), some(&["red"]), None, true),
        (some(&["good", "better"]), some(&["red"]), Some("ana"), true),
        (many.clone(), some(&["red"]), Some("ana"), false),
    ] {
        let mut request = Attributes::new();
        for key in &keys {
            request = request.add("header.x-key", key.clone());
        }
        for team in &teams {
            request = request.add("query.team", team.clone());
        }
        if let Some(user) = user {
            request = request.set("user", user);
        }
        let admission = gate.admit(&request).now().expect("memory answers at once");
        assert_eq!(admission.is_allowed(), is_allowed, "{keys:?} {teams:?} {user:?}");
        let explained = gate.explain(&request).now().expect("memory answers at once");
        assert_eq!(explained.is_allowed, is_allowed, "{keys:?} {teams:?} {user:?}");
    }
    assert_eq!(gate.remove_override("a", &evil), Ok(true));
    let several = Attributes::new().add("header.x-key", "good").add("header.x-key", "evil");
    assert!(gate.admit(&several.set("query.team", "red").set("user", "ana")).now().unwrap().is_allowed());
}

/// Regression: from the 65th change on, a key began with what it had used under the limit of the rule.
#[test]
fn an_override_that_changes_very_often_keeps_what_was_used() {
    each(|algorithm, what, (store, clock)| {
        let text = rule(&limit_of(5, "d", algorithm));
        let gate = Gate::new(policy(&text), store).expect("the store supports the policy");
        for change in 0..140 {
            put_for_ever(&gate, &limit_of(1000 + change, "d", algorithm));
            let left = remaining(&gate, "a", &ana());
            // A bucket refills by one unit in about a minute and a half.
            assert_eq!(left, 1000, "{what}: change {change}");
            assert_eq!(passed(&gate, 1), 1, "{what}");
            clock.advance(SECOND / 100);
        }
        assert_eq!(gate.remove_override("a", &ana()), Ok(true));
        assert_eq!(passed(&gate, 9), 0, "{what}");
    });
}

#[test]
fn counts_that_are_dropped_for_one_key_are_reported_under_its_rule() {
    for by_value in [false, true] {
        each(|algorithm, what, (store, clock)| {
            let limit = |amount| limit_of(amount, "d", algorithm);
            let gate = Gate::new(policy(&rule(&limit(10))), store).expect("the store supports the policy");
            assert_eq!(passed(&gate, 1), 1, "{what}");
            for amount in 20..=25 {
                assert_eq!(gate.take_dropped_counts(), [""; 0], "{what}: {amount}");
                if by_value {
                    let values = format!("limit_for = {{ ana = '{}' }}\n", limit(amount));
                    gate.replace(policy(&(rule(&limit(10)) + &values))).expect("memory holds every limit");
                } else {
                    put_for_ever(&gate, &limit(amount));
                }
                assert_eq!(passed(&gate, 1), 1, "{what}");
                clock.advance(SECOND);
                if amount == 24 {
                    assert_eq!(
                        gate.take_dropped_counts(),
                        ["a"],
                        "{what}: the limit of the rule is the fifth"
                    );
                }
            }
            assert_eq!(gate.take_dropped_counts(), ["a"], "{what}");
            assert_eq!(gate.take_dropped_counts(), [""; 0], "{what}: it is reported once");
        });
    }
}
