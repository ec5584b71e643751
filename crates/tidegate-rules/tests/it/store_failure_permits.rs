//! Tests that permits are released in the store that granted them, also those granted while the remote store failed.

use tidegate::SECOND;
use tidegate_rules::{Attributes, Gate, HeldPermit};

use crate::faulty::{Health, Node, one_of};
use crate::requests::{admit, policy};

const UPLOADS: &str = "[[rule]]\nname = 'uploads'\nkey = ['user']\nlimit = '6/60s concurrency'\n";

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

fn take(node: &Node) -> Option<HeldPermit> {
    let answer = admit(&node.gate, &ana());
    assert_eq!(answer.is_allowed(), answer.permits().len() == 1);
    answer.permits().first().cloned()
}

fn in_flight(node: &Node) -> Vec<HeldPermit> {
    std::iter::from_fn(|| take(node)).collect()
}

#[test]
fn each_permit_is_released_in_the_store_that_granted_it() {
    let node = one_of(UPLOADS, 3);
    let of_store = in_flight(&node);
    assert!(of_store.len() == 6 && of_store.iter().all(|held| !held.is_local));
    node.store.is(Health::Down);
    let local = in_flight(&node);
    assert!(local.len() == 2 && local.iter().all(|held| held.is_local), "a third of six");
    assert!(local.iter().all(|held| held.limit == of_store[0].limit), "it says what the rule says");

    assert!(node.gate.release(&of_store[0]).now().is_err(), "the store cannot know");
    assert!(node.gate.renew(&of_store[0]).now().is_err());
    assert_eq!(node.gate.renew(&local[0]).now().ok(), Some(true));
    assert_eq!(node.gate.release(&local[0]).now().ok(), Some(true));
    assert_eq!(node.gate.release(&local[0]).now().ok(), Some(false), "once is enough");
    assert_eq!(in_flight(&node).len(), 1, "its place is free again");

    node.store.is(Health::Up);
    assert!(take(&node).is_none(), "six are in flight there");
    assert_eq!(node.gate.release(&local[1]).now().ok(), Some(true), "also when the store is back");
    assert!(take(&node).is_none(), "and that is no place of the store");
    assert_eq!(node.gate.release(&of_store[0]).now().ok(), Some(true));
    assert_eq!(in_flight(&node).len(), 1);
}

#[test]
fn a_lease_ends_by_itself_and_a_renewed_one_later() {
    let node = one_of(UPLOADS, 3);
    node.store.is(Health::Down);
    let local = in_flight(&node);
    node.clock.advance(30 * SECOND);
    assert_eq!(node.gate.renew(&local[0]).now().ok(), Some(true));
    node.clock.advance(40 * SECOND);
    assert_eq!(in_flight(&node).len(), 1, "the other has ended");
    assert_eq!(node.gate.renew(&local[1]).now().ok(), Some(false));
}

#[test]
fn they_find_their_way_back_after_other_rules_came() {
    let node = one_of(UPLOADS, 3);
    node.store.is(Health::Down);
    let local = in_flight(&node);
    node.gate.replace(policy(&UPLOADS.replace("6/60s", "3/60s"))).expect("it fits");
    assert!(take(&node).is_none());
    assert_eq!(node.gate.release(&local[0]).now().ok(), Some(true));
    node.gate.replace(policy("")).expect("it fits");
    assert_eq!(node.gate.release(&local[1]).now().ok(), Some(true), "also when the rule is gone");
}

#[test]
fn where_nothing_can_fail_there_is_no_place_without_the_store() {
    let gate =
        Gate::new(policy(UPLOADS), tidegate::Zone::new(1 << 16)).expect("the store supports the policy");
    let held = admit(&gate, &ana()).permits()[0].clone();
    let forged = held.clone().in_local_store(true);
    assert_eq!(gate.release(&forged).now().ok(), Some(false));
    assert_eq!(gate.renew(&forged).now().ok(), Some(false));
    assert_eq!(gate.release(&held).now().ok(), Some(true));
}
