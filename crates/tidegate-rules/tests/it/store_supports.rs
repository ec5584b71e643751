//! Tests of a remote store's check of a policy before it is in force, and of the calls that follow.

use std::sync::atomic::Ordering;

use tidegate::{FallbackStore, Zone};
use tidegate_rules::{Attributes, Gate, Instead, OverrideError, UnsupportedPolicy};

use crate::faulty::{Faulty, TOO_FAST, one_of};
use crate::requests::{admit, policy};

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

fn rule(limit: &str) -> String {
    format!("[[rule]]\nname = 'api'\nkey = ['user']\nlimit = '{limit}'\n")
}

#[test]
fn a_policy_that_the_store_cannot_hold_does_not_come_into_force() {
    let node = one_of(&rule("10/s"), 3);
    let expected = "rule \"api\": limit \"5000000/s\": this is faster than can be counted; \
                    write at most \"1000000/s\"";
    let too_fast = rule(TOO_FAST);
    let error = node.gate.replace(policy(&too_fast)).expect_err("it is too fast");
    assert!(matches!(&error, UnsupportedPolicy::Unsupported { rule, .. } if &**rule == "api"));
    assert_eq!(error.to_string(), expected);
    let store = FallbackStore::new(node.store.clone(), &Zone::new(1 << 16));
    let error = Gate::new(policy(&too_fast), store);
    assert_eq!(error.expect_err("it is too fast").to_string(), expected);
    let window = format!("from = '11-11T00:00', to = '11-12T00:00', limit = '{TOO_FAST}'");
    let in_a_window = format!(
        "{}schedule = [{{ {window} }}]
",
        rule("10/s")
    );
    assert_eq!(node.gate.prepare(policy(&in_a_window)).expect_err("it is too fast").to_string(), expected);
    assert_eq!(
        node.gate.with_policy(|policy| policy.rules()[0].limit().map(ToString::to_string)).as_deref(),
        Some("10/s")
    );
}

#[test]
fn an_override_that_the_store_cannot_hold_is_refused() {
    let node = one_of(&rule("10/s"), 3);
    let too_fast = Instead::Limit(TOO_FAST.parse().expect("a limit"));
    let error = node.gate.put_override("api", &ana(), too_fast, i64::MAX).expect_err("it is too fast");
    assert!(matches!(&error, OverrideError::Unsupported { .. }));
    assert_eq!(
        error.to_string(),
        "limit \"5000000/s\": this is faster than can be counted; write at most \"1000000/s\""
    );
    assert_eq!(node.gate.overrides(), []);
}

#[test]
fn refusals_that_the_store_remembers_are_forgotten_when_something_else_holds() {
    let node = one_of(&rule("10/s"), 3);
    let forgotten = |store: &Faulty| store.forgotten.load(Ordering::SeqCst);
    node.gate.replace(policy(&rule("20/s"))).expect("it fits");
    assert_eq!(forgotten(&node.store), 1);
    node.gate.put_override("api", &ana(), Instead::Allow, i64::MAX).expect("there is such a rule");
    assert_eq!(forgotten(&node.store), 2);
    assert_eq!(node.gate.remove_override("api", &ana()), Ok(true));
    assert_eq!(forgotten(&node.store), 3);
    assert!(admit(&node.gate, &ana()).is_allowed());
    assert_eq!(forgotten(&node.store), 3);
}
