//! Tests of the list of limits that decided about a request.

use tidegate::{Cost, Verdict};
use tidegate_rules::{Admission, Attributes, Gate, Instead};

use crate::faulty::{Health, one_of};
use crate::requests::{admit, policy, remaining, stores};

const RULES: &str = "
[[rule]]
name = 'office'
when = { ip = '10.0.0.0/8' }
decision = 'allow'
[[rule]]
name = 'day'
key = ['user']
limit = '100/d'
[[rule]]
name = 'measured'
key = ['user']
limit = '1/h'
mode = 'shadow'
[[rule]]
name = 'hour'
key = ['user']
limit = '3/h'
[[rule]]
name = 'tighter'
candidate_for = 'hour'
limit = '1/h'
[[rule]]
name = 'posts'
when = { method = 'POST' }
key = ['user']
limit = '5/h'
[[rule]]
name = 'everybody'
limit = '1000/h'
";

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana").all_limits()
}

/// Returns the rule, the remaining quota and the verdict of each limit.
fn listed(admission: &Admission) -> Vec<(String, u64, bool)> {
    let each = admission.limits().map(|limit| {
        assert_eq!(limit.is_allowed, admission.is_allowed());
        (limit.rule.to_string(), limit.decision.remaining(), limit.decision.is_allowed())
    });
    each.collect()
}

fn expected(each: &[(&str, u64, bool)]) -> Vec<(String, u64, bool)> {
    each.iter().map(|(rule, remaining, allows)| ((*rule).to_owned(), *remaining, *allows)).collect()
}

#[test]
fn every_enforced_rule_that_decided_is_listed_the_binding_one_first() {
    for (kind, store, _) in stores() {
        let gate = Gate::new(policy(RULES), store).expect("the store supports the policy");
        let first = admit(&gate, &ana());
        let all = [("hour", 2, true), ("day", 99, true), ("everybody", 999, true)];
        assert_eq!(listed(&first), expected(&all), "{kind}");
        assert_eq!(first.limits().len(), 3);
        let with_post = listed(&admit(&gate, &ana().set("method", "POST")));
        let all = [("hour", 1, true), ("day", 98, true), ("posts", 4, true), ("everybody", 998, true)];
        assert_eq!(with_post, expected(&all), "{kind}");
    }
}

#[test]
fn after_a_denial_each_limit_is_as_it_was_before() {
    for (kind, store, _) in stores() {
        let gate = Gate::new(policy(RULES), store).expect("the store supports the policy");
        for _ in 0..3 {
            assert!(admit(&gate, &ana()).is_allowed());
        }
        let denied = admit(&gate, &ana());
        let all = [("hour", 0, false), ("day", 97, true), ("everybody", 997, true)];
        assert_eq!(listed(&denied), expected(&all), "{kind}");
        for limit in denied.limits() {
            assert_eq!(
                limit.decision.remaining(),
                remaining(&gate, &limit.rule, &ana()),
                "{kind}: {}",
                limit.rule
            );
        }
        let never = admit(&gate, &ana().cost(Cost::of(101)));
        let verdicts: Vec<_> = never.limits().map(|limit| (&*limit.rule, limit.decision.verdict())).collect();
        assert_eq!(verdicts.len(), 3);
        assert!(
            verdicts.contains(&("day", Verdict::Impossible))
                && verdicts.contains(&("hour", Verdict::Impossible))
        );
    }
}

#[test]
fn without_the_request_for_all_it_is_the_binding_one_alone() {
    for (_, store, _) in stores() {
        let gate = Gate::new(policy(RULES), store).expect("the store supports the policy");
        let request = Attributes::new().set("user", "ana");
        assert_eq!(listed(&admit(&gate, &request)), expected(&[("hour", 2, true)]));
        let cleared = ana().cleared().set("user", "ana");
        assert_eq!(
            admit(&gate, &cleared).limits().len(),
            1,
            "the next request of a connection asks by itself"
        );
        assert_eq!(admit(&gate, &ana().into_owned()).limits().len(), 3);
    }
}

#[test]
fn rules_that_count_nothing_are_not_listed() {
    for (_, store, _) in stores() {
        let gate = Gate::new(policy(RULES), store).expect("the store supports the policy");
        let office = ana().ip("10.1.2.3".parse().expect("an address"));
        assert_eq!(admit(&gate, &office).limits().len(), 0);
        gate.put_override("hour", &ana(), Instead::Allow, i64::MAX).expect("there is such a rule");
        let all = [("day", 99, true), ("everybody", 999, true)];
        assert_eq!(listed(&admit(&gate, &ana())), expected(&all));
        gate.put_override("day", &ana(), Instead::Deny, i64::MAX).expect("there is such a rule");
        assert_eq!(admit(&gate, &ana()).limits().len(), 0, "a static denial asks no limit");
    }
}

#[test]
fn each_request_of_a_batch_lists_its_own_limits() {
    for (kind, store, _) in stores() {
        let gate = Gate::new(policy(RULES), store).expect("the store supports the policy");
        let requests = [ana(), ana().set("method", "POST"), Attributes::new().set("user", "bob")];
        let answers = gate.admit_all(&requests).now().expect("a store in memory answers at once");
        let lengths: Vec<_> = answers.iter().map(|answer| answer.limits().len()).collect();
        assert_eq!(lengths, [3, 4, 1], "{kind}");
        assert_eq!(listed(&answers[0])[0], ("hour".to_owned(), 1, true), "both of ana are one ask");
    }
}

#[test]
fn a_rule_that_is_open_while_the_store_is_down_has_no_numbers_and_is_left_out() {
    let rule = |name: &str, on_failure: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '9/h'\non_store_failure = '{on_failure}'\n"
        )
    };
    let text = [rule("open", "open"), rule("local", "local"), rule("closed", "closed")].concat();
    let node = one_of(&text, 3);
    assert_eq!(admit(&node.gate, &ana()).limits().len(), 3);
    node.store.is(Health::Down);
    let answer = admit(&node.gate, &ana());
    let rules: Vec<_> = answer.limits().map(|limit| &*limit.rule).collect();
    assert_eq!(rules, ["closed", "local"]);
    assert_eq!(
        answer.limits().nth(1).map(|limit| limit.limit.to_string()).as_deref(),
        Some("3/h"),
        "the share"
    );
}
