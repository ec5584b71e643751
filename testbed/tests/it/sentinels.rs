//! Sentinels find another primary.

use testbed::{Flavour, Sentinels};

/// Kills the primary of one flavour, several times.
fn fails_over(flavour: Flavour, rounds: u64) {
    if let Err(missing) = flavour.program() {
        eprintln!("skipped: {missing}");
        return;
    }
    let group = Sentinels::start(flavour);
    assert_eq!((group.addresses().len(), group.nodes().len()), (3, 3));
    let said = group.sentinels()[0].command(&["SENTINEL", "get-master-addr-by-name", group.name()]);
    assert_eq!(said.replace('\n', ":"), group.primary().address().to_string());

    group.primary().command(&["SET", "a", "b"]);
    group.primary().command(&["WAIT", "2", "5000"]);
    for round in 1..=rounds {
        let old = group.kill_primary();
        let new = group.wait_for_failover(old);
        assert_ne!(new, old);
        assert!(group.failovers() >= round);
        assert_eq!(group.primary().command(&["GET", "a"]), "b");

        group.bring_back(old);
        group.wait_until_whole();
        let replicas = group.nodes().iter().filter(|node| node.command(&["ROLE"]).starts_with("slave"));
        assert_eq!(replicas.count(), 2);
    }
}

#[test]
fn a_killed_primary_is_replaced_and_comes_back_as_a_replica() {
    fails_over(Flavour::Redis7, 2);
}

#[test]
fn redis_6_fails_over_as_well() {
    fails_over(Flavour::Redis6, 1);
}

#[test]
fn valkey_fails_over_as_well() {
    fails_over(Flavour::Valkey, 1);
}
