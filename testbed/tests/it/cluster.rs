//! A cluster fails over, and its slots move.

use testbed::{Cluster, Flavour, Redis, SLOTS};

/// A node that is not the primary of this slot.
fn another(cluster: &Cluster, slot: u16) -> &Redis {
    let address = cluster.primary_of(slot).address();
    cluster.primaries().into_iter().find(|node| node.address() != address).expect("there are three")
}

#[test]
fn every_flavour_makes_a_cluster_whose_slots_move_with_their_keys() {
    for flavour in Flavour::available() {
        let cluster = Cluster::start(flavour);
        assert_eq!((cluster.addresses().len(), cluster.primaries().len()), (6, 3));
        let slot = cluster.slot_of("ana");
        let (old, new) = (cluster.primary_of(slot), another(&cluster, slot));
        assert_eq!(old.command(&["SET", "ana", "1"]), "OK");
        let moved = new.try_command(&["GET", "ana"]).unwrap().text();
        assert_eq!(moved, format!("-MOVED {slot} {}", old.address()));

        let first = slot.min(SLOTS - 5);
        cluster.move_slots(first..first + 5, new.address());

        assert_eq!(cluster.primary_of(slot).address(), new.address());
        assert_eq!(new.command(&["GET", "ana"]), "1");
        let moved = old.try_command(&["GET", "ana"]).unwrap().text();
        assert_eq!(moved, format!("-MOVED {slot} {}", new.address()));
        cluster.wait_until_whole();
    }
}

#[test]
fn keys_of_a_slot_on_the_move_are_asked_of_both() {
    let cluster = Cluster::start(Flavour::Redis7);
    let slot = cluster.slot_of("{ana}");
    let (old, new) = (cluster.primary_of(slot), another(&cluster, slot));
    old.command(&["SET", "{ana}1", "here"]);

    cluster.begin_move(slot, new.address());
    assert_eq!(old.command(&["GET", "{ana}1"]), "here");
    let ask = format!("-ASK {slot} {}", new.address());
    assert_eq!(old.try_command(&["GET", "{ana}2"]).unwrap().text(), ask);
    let both = old.try_command(&["MGET", "{ana}1", "{ana}2"]).unwrap().text();
    assert!(both.starts_with("-TRYAGAIN"), "{both}");

    cluster.move_keys(slot, new.address());
    assert_eq!(old.try_command(&["GET", "{ana}1"]).unwrap().text(), ask);
    let mut asking = new.connection();
    asking.call(&["ASKING"]).unwrap();
    assert_eq!(asking.call(&["GET", "{ana}1"]).unwrap().text(), "here");

    cluster.finish_move(slot, new.address());
    cluster.wait_until_whole();
    assert_eq!(cluster.primary_of(slot).address(), new.address());
}

#[test]
fn a_killed_primary_is_replaced_and_comes_back_as_a_replica() {
    let cluster = Cluster::start(Flavour::Redis7);
    let old = cluster.kill_primary_of(0);
    let new = cluster.wait_for_failover(0, old);
    assert_ne!(old, new);
    cluster.bring_back(old);
    cluster.wait_until_whole();
    assert!(cluster.node(old).command(&["ROLE"]).starts_with("slave"));
}
