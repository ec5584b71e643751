//! Tests of late charges and refunds: exactly the units that a request took are corrected, whatever is in force by
//! then.

use std::sync::Arc;

use tidegate::{Adjusted, Cost, HOUR, SECOND};
use tidegate_rules::{Attributes, Charges, Gate, Instead, ManualCalendar};

use crate::faulty::{Health, Node, one_of};
use crate::requests::{admit, policy, remaining, still_gate, still_zone, stores};

const TWO: &str = "
[[rule]]
name = 'user'
key = ['user']
limit = '100/h'
[[rule]]
name = 'site'
limit = '1000/h'
cost = 2
[[rule]]
name = 'other'
when = { path = '/other' }
limit = '10/h'
[[rule]]
name = 'watched'
mode = 'shadow'
limit = '50/h'
";

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

/// Returns the bill of an allowed request.
fn bill_of(gate: &Gate, request: &Attributes<'_>) -> Charges {
    let (answer, bill) = gate.admit_tracked(request).now().expect("this store answers at once");
    assert!(answer.is_allowed());
    bill
}

/// Returns the number of requests that are allowed at one instant.
fn passed(gate: &Gate, request: &Attributes<'_>) -> usize {
    (0..50).filter(|_| admit(gate, request).is_allowed()).count()
}

fn hourly(rule: &str, limit: &str) -> String {
    format!("[[rule]]\nname = '{rule}'\nkey = ['user']\nlimit = '{limit}'\n")
}

#[test]
fn a_charge_and_a_refund_reach_every_rule_that_took_something() {
    for (name, store, _) in stores() {
        let gate = Gate::new(policy(TWO), store).expect("the store supports the policy");
        assert!(gate.is_in_memory());
        let mut bill = bill_of(&gate, &ana().cost(Cost::of(10)));
        let left = |rule| remaining(&gate, rule, &ana());
        assert_eq!((left("user"), left("site"), left("watched")), (90, 980, 40), "{name}");
        assert_eq!(bill.taken().collect::<Vec<_>>(), [("user", 10), ("site", 20), ("watched", 10)]);
        assert_eq!(gate.charge(&mut bill, 5).now().unwrap(), Adjusted::Whole);
        assert_eq!((left("user"), left("site"), left("watched")), (85, 970, 35), "{name}");
        assert_eq!(gate.refund(&mut bill, 10).now().unwrap(), Adjusted::Whole);
        assert_eq!((left("user"), left("site"), left("watched")), (95, 990, 45), "{name}");
        assert_eq!(gate.charge(&mut bill, 0).now().unwrap(), Adjusted::Whole);
        assert_eq!(remaining(&gate, "other", &ana().path("/other")), 10, "{name}");
    }
}

#[test]
fn no_more_goes_back_than_the_request_took_also_in_several_steps() {
    let gate = still_gate(TWO);
    let _others = bill_of(&gate, &ana().cost(Cost::of(30)));
    let mut bill = bill_of(&gate, &ana().cost(Cost::of(10)));
    assert_eq!(gate.refund(&mut bill, 7).now().unwrap(), Adjusted::Whole);
    assert_eq!(gate.refund(&mut bill, 7).now().unwrap(), Adjusted::Capped, "only three are left of it");
    assert_eq!(gate.refund(&mut bill, 7).now().unwrap(), Adjusted::Capped);
    let left = |rule| remaining(&gate, rule, &ana());
    assert_eq!((left("user"), left("site")), (70, 940));
    assert_eq!(gate.charge(&mut bill, 2).now().unwrap(), Adjusted::Whole);
    assert_eq!(gate.refund(&mut bill, u64::MAX).now().unwrap(), Adjusted::Capped);
    assert_eq!((left("user"), left("site")), (70, 940));
}

/// Limits of twenty, all of whose takes can be refunded in any order.
const TWENTY: [&str; 7] = [
    "20/h burst 20",
    "20/h queue 19 delay-after all leaky-bucket",
    "20/h fixed-window",
    "20/h sliding-log",
    "20/h sliding-window",
    "20/h sliding-window mode estimate",
    "20/h pacer burst 3600s pay self",
];

#[test]
fn twenty_requests_in_flight_come_back_in_any_order() {
    for limit in TWENTY {
        for (name, store, clock) in stores() {
            clock.advance(HOUR);
            let gate = Gate::new(policy(&hourly("a", limit)), store).expect("the store supports the policy");
            let mut bills: Vec<_> = (0..20).map(|_| Some(bill_of(&gate, &ana()))).collect();
            assert_eq!(passed(&gate, &ana()), 0, "{limit} ({name})");
            for at in 0..20 {
                let mut bill = bills[at * 7 % 20].take().expect("each once");
                assert_eq!(gate.refund(&mut bill, 1).now().unwrap(), Adjusted::Whole, "{limit} ({name})");
            }
            assert_eq!(passed(&gate, &ana()), 20, "{limit} ({name})");
        }
    }
}

#[test]
fn what_time_has_repaid_does_not_come_back() {
    for limit in TWENTY {
        for (name, store, clock) in stores() {
            clock.advance(HOUR);
            let gate = Gate::new(policy(&hourly("a", limit)), store).expect("the store supports the policy");
            let mut bills: Vec<_> = (0..20).map(|_| bill_of(&gate, &ana())).collect();
            clock.advance(3 * HOUR);
            assert_eq!(passed(&gate, &ana()), 20, "{limit} ({name})");
            for bill in &mut bills {
                assert_eq!(gate.refund(bill, 1).now().unwrap(), Adjusted::Capped, "{limit} ({name})");
            }
            assert_eq!(passed(&gate, &ana()), 0, "{limit} ({name})");
        }
    }
}

#[test]
fn a_late_charge_comes_back_before_the_take() {
    for (name, store, _) in stores() {
        let gate = Gate::new(policy(&hourly("a", "20/h")), store).expect("the store supports the policy");
        let mut bill = bill_of(&gate, &ana());
        assert_eq!(gate.charge(&mut bill, 25).now().unwrap(), Adjusted::Whole, "{name}");
        assert_eq!(gate.refund(&mut bill, 25).now().unwrap(), Adjusted::Whole, "{name}");
        assert_eq!(remaining(&gate, "a", &ana()), 19, "{name}");
        assert_eq!(bill.taken().collect::<Vec<_>>(), [("a", 1)], "{name}");
    }
}

#[test]
fn a_charge_is_never_refused_and_goes_below_empty() {
    let gate = still_gate("[[rule]]\nname = 'a'\nlimit = '10/h'\n");
    let mut bill = bill_of(&gate, &Attributes::new());
    assert_eq!(gate.charge(&mut bill, 15).now().unwrap(), Adjusted::Whole);
    assert!(!admit(&gate, &Attributes::new()).is_allowed());
    assert_eq!(gate.charge(&mut bill, 15).now().unwrap(), Adjusted::Capped);
}

#[test]
fn under_other_rules_no_caller_gets_a_refund_of_units_that_those_have_taken() {
    for before in ["key = ['user']\n", ""] {
        let gate = still_gate(&format!("[[rule]]\nname = 'before'\n{before}limit = '1000/h'\n"));
        let mut bills: Vec<_> = (0..5).map(|_| bill_of(&gate, &ana())).collect();
        gate.replace(policy(&hourly("after", "5/h"))).expect("no zones");
        assert_eq!(passed(&gate, &ana()), 5);
        for bill in &mut bills {
            assert_eq!(gate.refund(bill, 1).now().unwrap(), Adjusted::Whole);
        }
        assert_eq!(passed(&gate, &ana()), 0);
        gate.replace(policy(&format!("[[rule]]\nname = 'before'\n{before}limit = '1000/h'\n")))
            .expect("no zones");
        assert_eq!(remaining(&gate, "before", &ana()), 1000, "it went where it was taken");
    }
}

#[test]
fn under_another_limit_a_refund_goes_to_the_state_that_was_charged_and_a_charge_to_the_limit_in_force() {
    for (old, new) in [("10/s burst 20", "5/h"), ("1000/h", "5/h"), ("5/60s sliding-log", "5/h sliding-log")]
    {
        let gate = still_gate(&hourly("a", old));
        let mut bill = bill_of(&gate, &ana());
        gate.replace(policy(&hourly("a", new))).expect("no zones");
        let before = passed(&gate, &ana());
        assert!(before <= 5);
        assert_eq!(gate.refund(&mut bill, 1).now().unwrap(), Adjusted::Whole, "{old} {new}");
        assert_eq!(passed(&gate, &ana()), 0, "{old} {new}: the state of the new limit is another one");
    }
    let (zone, clock) = still_zone();
    let gate =
        Gate::new(policy(&hourly("a", "5/h fixed-window")), zone).expect("the store supports the policy");
    let mut bill = bill_of(&gate, &ana());
    clock.advance(SECOND);
    gate.replace(policy(&hourly("a", "10/h fixed-window"))).expect("no zones");
    assert_eq!(remaining(&gate, "a", &ana()), 9);
    assert_eq!(gate.refund(&mut bill, 1).now().unwrap(), Adjusted::Whole);
    assert_eq!(remaining(&gate, "a", &ana()), 10, "nothing is left to be carried over");
    let gate = still_gate(&hourly("a", "10/s burst 20"));
    let mut bill = bill_of(&gate, &ana());
    gate.replace(policy(&hourly("a", "100/h"))).expect("no zones");
    let left = remaining(&gate, "a", &ana());
    assert_eq!(gate.charge(&mut bill, 7).now().unwrap(), Adjusted::Whole);
    assert_eq!(remaining(&gate, "a", &ana()), left - 7);
    assert_eq!(
        gate.refund(&mut bill, 7).now().unwrap(),
        Adjusted::Whole,
        "by the receipt of the late charge"
    );
    assert_eq!(remaining(&gate, "a", &ana()), left);
}

#[test]
fn what_goes_back_is_not_carried_over_to_an_override_that_came_in_between() {
    let gate = still_gate(&hourly("a", "1000/h"));
    let mut bills: Vec<_> = (0..5).map(|_| bill_of(&gate, &ana())).collect();
    let strict = "2/d".parse().expect("a limit");
    gate.put_override("a", &ana(), Instead::Limit(strict), i64::MAX).expect("there is such a rule");
    assert_eq!(passed(&gate, &ana()), 0);
    for bill in &mut bills {
        assert_eq!(gate.refund(bill, 1).now().unwrap(), Adjusted::Whole);
    }
    assert_eq!(passed(&gate, &ana()), 2, "nothing was used under either limit");
}

#[test]
fn the_state_in_another_window_of_the_schedule_stays_as_it_is() {
    let schedule =
        "schedule = [{ from = '09:00', to = '17:00', timezone = 'UTC', limit = '5/h fixed-window' }]\n";
    let calendar = Arc::new(ManualCalendar::at(0));
    let text = format!("{}{schedule}", hourly("a", "20/m fixed-window"));
    let (zone, clock) = still_zone();
    let gate = Gate::builder(policy(&text), zone)
        .calendar(calendar.clone())
        .build()
        .expect("the store supports the policy");
    let mut bills: Vec<_> = (0..3).map(|_| bill_of(&gate, &ana())).collect();
    clock.advance(SECOND);
    calendar.set(10 * 3600);
    assert_eq!(passed(&gate, &ana()), 2);
    for bill in &mut bills {
        assert_eq!(gate.refund(bill, 1).now().unwrap(), Adjusted::Whole);
    }
    assert_eq!(passed(&gate, &ana()), 0);
}

#[test]
fn another_zone_of_the_same_rule_gets_nothing_back() {
    let in_zone = |zone: &str| {
        let zones = "[zone.x]\nsize = '64KiB'\n[zone.y]\nsize = '64KiB'\n";
        format!("{zones}{}zone = '{zone}'\n", hourly("a", "5/h"))
    };
    let gate = still_gate(&in_zone("x"));
    let mut bills: Vec<_> = (0..5).map(|_| bill_of(&gate, &ana())).collect();
    gate.replace(policy(&in_zone("y"))).expect("there is memory");
    assert_eq!(passed(&gate, &ana()), 5);
    for bill in &mut bills {
        assert_eq!(gate.refund(bill, 1).now().unwrap(), Adjusted::Whole);
    }
    assert_eq!(passed(&gate, &ana()), 0);
}

#[test]
fn where_nothing_was_taken_there_is_nothing_on_the_bill() {
    let office = "[[rule]]\nname = 'office'\nwhen = { user = 'ana' }\ndecision = 'allow'\n";
    let gate = still_gate(&format!("{office}{}", hourly("a", "10/h")));
    let mut free = bill_of(&gate, &ana());
    assert!(free.is_empty());
    assert_eq!(gate.charge(&mut free, 5).now().unwrap(), Adjusted::Whole);
    assert_eq!(gate.refund(&mut free, 5).now().unwrap(), Adjusted::Whole);
    let places = still_gate(&hourly("few", "3/60s concurrency"));
    assert!(bill_of(&places, &ana()).is_empty(), "a place goes back with its permit");
    let gate = still_gate(&hourly("a", "1/h"));
    assert!(!bill_of(&gate, &ana()).is_empty());
    let (refused, bill) = gate.admit_tracked(&ana()).now().unwrap();
    assert!(!refused.is_allowed() && bill.is_empty());
}

fn node(on_store_failure: &str) -> Node {
    one_of(&format!("{}on_store_failure = '{on_store_failure}'\n", hourly("a", "30/h")), 3)
}

#[test]
fn what_passed_without_the_store_is_not_given_back_by_the_store() {
    for (how, taken) in [("open", 0), ("local", 1)] {
        let node = node(how);
        assert_eq!(passed(&node.gate, &ana()), 30);
        node.store.is(Health::Down);
        let mut bills: Vec<_> = (0..5).map(|_| bill_of(&node.gate, &ana())).collect();
        assert!(bills.iter().all(|bill| bill.taken().map(|(_, units)| units).sum::<u64>() == taken), "{how}");
        node.store.is(Health::Up);
        for bill in &mut bills {
            assert_eq!(node.gate.refund(bill, 1).now().unwrap(), Adjusted::Whole, "{how}");
        }
        assert_eq!(passed(&node.gate, &ana()), 0, "{how}");
        node.store.is(Health::Down);
        if how == "local" {
            let left = admit(&node.gate, &ana()).binding().expect("its share").decision.remaining();
            assert_eq!(left, 9, "a third of 30, all of which came back, less one");
        }
    }
}

#[test]
fn what_the_store_took_is_not_given_back_here_when_it_fails() {
    let node = node("local");
    let mut bill = bill_of(&node.gate, &ana());
    node.store.is(Health::Down);
    assert_eq!(passed(&node.gate, &ana()), 10, "its share");
    assert!(node.gate.refund(&mut bill, 1).now().is_err());
    assert_eq!(passed(&node.gate, &ana()), 0);
    node.store.is(Health::Up);
    assert_eq!(node.gate.refund(&mut bill, 1).now().unwrap(), Adjusted::Capped, "it is not sent again");
}

#[test]
fn a_remote_store_is_charged_and_after_its_failure_the_local_fallback() {
    let node = node("local");
    assert!(!node.gate.is_in_memory());
    let mut bill = bill_of(&node.gate, &ana());
    assert_eq!(node.gate.charge(&mut bill, 9).now().unwrap(), Adjusted::Whole);
    assert_eq!(remaining(&node.gate, "a", &ana()), 20);

    node.store.is(Health::Down);
    assert!(node.gate.charge(&mut bill, 4).now().is_err());
    let local = admit(&node.gate, &ana());
    assert_eq!(local.binding().expect("its share").decision.remaining(), 5, "a third of 30, less 4 and 1");
    node.store.is(Health::Up);
    assert_eq!(remaining(&node.gate, "a", &ana()), 20);
}
