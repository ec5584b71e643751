//! Tests of single keys of a rule: a peek changes nothing, a reset gives the whole limit back, a correction reaches the
//! limit in force.

use std::sync::Arc;

use tidegate::{Adjusted, Adjustment, Cost, DecidedBy, SECOND, Verdict};
use tidegate_rules::{Admission, Attributes, Gate, Instead, ManualCalendar, RuleKeyError};

use crate::changed_numbers::{ana, each, limit_of, passed, rule};
use crate::faulty::{Health, one_of};
use crate::requests::{admit, policy, remaining, stores};

const RULES: &str = "
[[rule]]
name = 'office'
when = { ip = '10.0.0.0/8' }
decision = 'allow'
[[rule]]
name = 'login'
when = { path = '/login' }
key = ['user', 'ip']
limit = '5/h'
cost = 2
[[rule]]
name = 'tighter'
candidate_for = 'login'
limit = '1/h'
[[rule]]
name = 'measured'
key = ['user']
limit = '5/h'
mode = 'shadow'
[[rule]]
name = 'site'
limit = '10/h'
";

fn gate(text: &str) -> Gate {
    let [(_, store, _), _] = stores();
    Gate::new(policy(text), store).expect("the store supports the policy")
}

fn peek(gate: &Gate, rule: &str, key: &Attributes<'_>) -> Admission {
    gate.rule_key(rule, key).expect("there is such a key").peek().now().expect("memory answers at once")
}

fn reset(gate: &Gate, rule: &str, key: &Attributes<'_>) -> bool {
    gate.rule_key(rule, key).expect("there is such a key").reset().now().expect("memory answers at once")
}

fn adjust(gate: &Gate, rule: &str, key: &Attributes<'_>, units: i64) -> Adjusted {
    let cost = Cost::of(units.unsigned_abs());
    let adjustment = if units < 0 { Adjustment::Refund(cost) } else { Adjustment::Charge(cost) };
    let key = gate.rule_key(rule, key).expect("there is such a key");
    key.adjust(adjustment).now().expect("memory answers at once")
}

fn left(admission: &Admission) -> u64 {
    admission.binding().expect("a limit decided").decision.remaining()
}

#[test]
fn a_peek_is_the_next_decision_of_the_rule_and_changes_nothing() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store).expect("it is supported");
        for used in 0..8_u64 {
            let seen: Vec<_> = (0..3).map(|_| peek(&gate, "a", &ana())).collect();
            clock.advance(SECOND);
            let next = peek(&gate, "a", &ana());
            let answer = admit(&gate, &ana());
            assert_eq!(next.verdict(), answer.verdict(), "{what}, {used}");
            assert_eq!((next.rule(), next.decided_by()), (Some("a"), DecidedBy::Memory));
            assert_eq!(seen.iter().map(left).collect::<Vec<_>>(), [5_u64.saturating_sub(used); 3], "{what}");
            assert_eq!(seen[0].limits().len(), 1);
        }
        assert_eq!(gate.counts()[0].1.allowed, 5, "{what}: a peek is not counted as a decision");
    });
}

#[test]
fn a_reset_gives_the_whole_limit_back_and_reaches_no_other_key() {
    each(|algorithm, what, (store, _)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store).expect("it is supported");
        let bob = Attributes::new().set("user", "bob");
        assert_eq!(passed(&gate, 9), 5, "{what}");
        assert!(admit(&gate, &bob).is_allowed());
        assert!(reset(&gate, "a", &ana()), "{what}");
        assert!(!reset(&gate, "a", &ana()), "{what}: nothing is left to reset");
        assert_eq!((passed(&gate, 9), left(&peek(&gate, "a", &bob))), (5, 4), "{what}");
    });
}

#[test]
fn a_reset_reaches_the_counts_under_previous_numbers() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store).expect("it is supported");
        for amount in [9, 12, 7] {
            assert!(admit(&gate, &ana()).is_allowed(), "{what}");
            clock.advance(SECOND);
            gate.replace(policy(&rule(&limit_of(amount, "h", algorithm)))).expect("memory holds every limit");
        }
        assert!(left(&peek(&gate, "a", &ana())) < 7, "{what}");
        assert!(reset(&gate, "a", &ana()), "{what}");
        assert_eq!(passed(&gate, 20), 7, "{what}");
    });
}

#[test]
fn a_reset_reaches_the_counts_of_windows_and_overrides_and_leaves_the_override() {
    const NOON: i64 = 43_200;
    each(|algorithm, what, (store, clock)| {
        let (usual, noon) = (limit_of(5, "h", algorithm), limit_of(8, "h", algorithm));
        let window = format!("schedule = [{{ from = '12:00', to = '13:00', limit = '{noon}' }}]\n");
        let calendar = Arc::new(ManualCalendar::at(NOON - 60));
        let gate = Gate::builder(policy(&(rule(&usual) + &window)), store).calendar(calendar.clone());
        let gate = gate.build().expect("it is supported");
        assert_eq!(passed(&gate, 3), 3, "{what}");
        clock.advance(SECOND);
        calendar.set(NOON);
        assert_eq!(passed(&gate, 2), 2, "{what}");
        assert!(reset(&gate, "a", &ana()), "{what}");
        assert_eq!(passed(&gate, 20), 8, "{what}: the whole limit of the window");
        calendar.set(NOON + 3600);
        clock.advance(SECOND);
        assert!(reset(&gate, "a", &ana()), "{what}");
        assert_eq!(left(&peek(&gate, "a", &ana())), 5, "{what}: the whole limit of the rule");

        let other = limit_of(20, "h", algorithm).parse().expect("a limit");
        assert_eq!(passed(&gate, 2), 2, "{what}");
        gate.put_override("a", &ana(), Instead::Limit(other), NOON + 7200).expect("it is supported");
        clock.advance(SECOND);
        assert_eq!(passed(&gate, 4), 4, "{what}");
        assert_eq!(left(&peek(&gate, "a", &ana())), 14, "{what}");
        assert!(reset(&gate, "a", &ana()), "{what}");
        assert_eq!((left(&peek(&gate, "a", &ana())), gate.overrides().len()), (20, 1), "{what}");
        calendar.set(NOON + 7200);
        assert_eq!(passed(&gate, 9), 5, "{what}: nothing comes back with the end of the override");
    });
}

#[test]
fn an_override_that_decides_by_itself_is_what_a_peek_reports() {
    let gate = gate(RULES);
    let key = ana().ip("192.0.2.7".parse().expect("an address"));
    for (instead, is_allowed) in [(Instead::Deny, false), (Instead::Allow, true)] {
        gate.put_override("login", &key, instead, i64::MAX).expect("there is such a rule");
        let seen = peek(&gate, "login", &key);
        assert_eq!(
            (seen.is_allowed(), seen.rule(), seen.binding().is_none()),
            (is_allowed, Some("login"), true)
        );
        assert_eq!(adjust(&gate, "login", &key, 1), Adjusted::Whole);
        assert!(reset(&gate, "login", &key), "the counts of the rule, while the override decides");
        assert!(gate.remove_override("login", &key).expect("there is such a rule"));
        assert_eq!(left(&peek(&gate, "login", &key)), 5);
    }
}

#[test]
fn a_correction_is_weighted_as_a_request_is_and_capped_at_the_whole_limit() {
    let gate = gate(RULES);
    let key = ana().ip("192.0.2.7".parse().expect("an address")).path("/login");
    assert!(admit(&gate, &key).is_allowed());
    let now = || left(&peek(&gate, "login", &key));
    assert_eq!(now(), 3);
    assert_eq!((adjust(&gate, "login", &key, 1), now()), (Adjusted::Whole, 1));
    assert_eq!((adjust(&gate, "login", &key, -2), now()), (Adjusted::Whole, 5));
    assert_eq!((adjust(&gate, "login", &key, -1), now()), (Adjusted::Capped, 5));
    let weighty = peek(&gate, "login", &key.clone().cost(Cost::of(3)));
    assert_eq!(weighty.verdict(), Verdict::Impossible, "three requests of cost two are more than five");
    assert_eq!(remaining(&gate, "site", &key), 9, "other rules are not corrected");
}

#[test]
fn a_correction_reaches_counts_that_are_carried_over() {
    each(|algorithm, what, (store, clock)| {
        let gate = Gate::new(policy(&rule(&limit_of(5, "h", algorithm))), store).expect("it is supported");
        assert_eq!(passed(&gate, 4), 4, "{what}");
        clock.advance(SECOND);
        gate.replace(policy(&rule(&limit_of(8, "h", algorithm)))).expect("memory holds every limit");
        assert_eq!(adjust(&gate, "a", &ana(), -3), Adjusted::Whole, "{what}");
        assert_eq!(left(&peek(&gate, "a", &ana())), 7, "{what}");
        assert_eq!(passed(&gate, 20), 7, "{what}");
    });
}

#[test]
fn what_names_no_key_of_an_enforced_rule_is_an_error_with_a_remedy() {
    let gate = gate(RULES);
    let ip = "192.0.2.7".parse().expect("an address");
    let [whole, no_ip] = [ana().ip(ip), ana()];
    for (name, key, said) in [
        ("lgoin", &whole, "rule \"lgoin\": there is no rule of this name; did you mean \"login\"?"),
        ("nothing-like-it", &whole, "there is no rule of this name; name one that is in force"),
        ("office", &whole, "rule \"office\": has a decision in place of a limit, so it counts nothing"),
        (
            "tighter",
            &whole,
            "rule \"tighter\": is a candidate, which decides nothing; name the rule that decides, \"login\"",
        ),
        (
            "measured",
            &whole,
            "rule \"measured\": is in shadow mode now and decides nothing; explain a request",
        ),
        ("login", &no_ip, "key: \"ip\" is a part of the key of rule \"login\" and missing; send its value"),
    ] {
        let error = gate.rule_key(name, key).map(|_| ()).expect_err(said);
        assert!(error.to_string().contains(said), "{error}");
    }
    let text = "[[rule]]\nname = 'a'\nkey = ['query.account']\nlimit = '1/h'\n";
    gate.replace(policy(text)).expect("memory holds every limit");
    let twice = Attributes::new().add("query.account", "x").add("query.account", "y");
    let error = gate.rule_key("a", &twice).map(|_| ()).expect_err("two accounts");
    assert!(matches!(&error, RuleKeyError::RepeatedPart { part, .. } if part == "query.account"), "{error}");
}

#[test]
fn a_rule_that_a_window_puts_in_shadow_mode_is_one_only_then() {
    let text = "[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '5/h'\n\
                schedule = [{ from = '12:00', to = '13:00', mode = 'shadow' }]\n";
    let calendar = Arc::new(ManualCalendar::at(43_200));
    let [(_, store, _), _] = stores();
    let gate =
        Gate::builder(policy(text), store).calendar(calendar.clone()).build().expect("it is supported");
    assert!(matches!(gate.rule_key("a", &ana()), Err(RuleKeyError::Shadow(rule)) if rule == "a"));
    calendar.set(43_200 + 3600);
    assert_eq!(left(&peek(&gate, "a", &ana())), 5);
}

#[test]
fn keys_are_read_as_those_of_requests() {
    let text = "[[rule]]\nname = 'a'\nkey = ['ip', 'host']\nlimit = '5/h'\n";
    let gate = gate(text);
    let of = |ip: &str, host| Attributes::new().ip(ip.parse().expect("an address")).set("host", host);
    assert!(admit(&gate, &of("2001:db8::1", "Shop.example:80")).is_allowed());
    assert_eq!(left(&peek(&gate, "a", &of("2001:db8::ffff", "shop.example"))), 4, "one network, one host");
    assert!(reset(&gate, "a", &of("2001:db8::2", "SHOP.example.")));
    assert_eq!(left(&peek(&gate, "a", &of("2001:db8::1", "shop.example"))), 5);
}

#[test]
fn while_the_store_is_down_nothing_is_looked_at_or_changed_in_its_place() {
    let text = "[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '9/h'\non_store_failure = 'open'\n";
    let node = one_of(text, 3);
    let key = node.gate.rule_key("a", &ana()).expect("there is such a key");
    assert_eq!(key.peek().now().expect("it is up").decided_by(), DecidedBy::Remote);
    node.store.is(Health::Down);
    assert!(key.peek().now().is_err());
    assert!(key.reset().now().is_err());
    assert!(key.adjust(Adjustment::Charge(Cost::of(3))).now().is_err());
    node.store.is(Health::Up);
    assert_eq!(left(&key.peek().now().expect("it is up")), 9);
}
