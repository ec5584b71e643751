//! Tests of failovers with Sentinels.

use testbed::{Flavour, Reply, Sentinels};

use crate::setup::{Someone, eventually, forgetful, sentinel_url, wait};

#[test]
fn the_new_primary_is_found_and_the_old_one_is_left() {
    let sentinels = Sentinels::start(Flavour::Redis7);
    let store = forgetful(&sentinel_url(&sentinels));
    let ana = Someone::new("ana", "10/d");
    assert_eq!(ana.passes(&store, 4), 4);
    let old = sentinels.kill_primary();
    let new = sentinels.wait_for_failover(old);
    assert_ne!(old, new);
    eventually("decisions come from the new primary", || ana.take(&store).ok());
    // The replica may lack the last takes, but has none that did not happen.
    let passed = 1 + ana.passes(&store, 20);
    assert!((6..=10).contains(&passed), "{passed} passed after 4 of 10");

    sentinels.bring_back(old);
    sentinels.wait_until_whole();
    assert!(!ana.is_allowed(&store), "the store did not return to the old primary");
    let again = sentinels.kill_primary();
    sentinels.wait_for_failover(again);
    eventually("and once more", || ana.take(&store).ok());
}

#[test]
fn one_sentinel_is_enough_to_find_the_primary() {
    let sentinels = Sentinels::start(Flavour::Redis7);
    for sentinel in &sentinels.sentinels()[..2] {
        sentinel.kill();
    }
    let store = forgetful(&sentinel_url(&sentinels));
    assert!(Someone::new("ana", "10/d").is_allowed(&store));
}

/// Regression: the leader of a failover reports the new epoch with the old address until all replicas have followed.
/// Stores that used it returned to an old primary that was only paused.
#[test]
fn the_sentinel_that_leads_a_failover_names_the_new_primary() {
    let sentinels = Sentinels::start(Flavour::Redis7);
    let old = sentinels.primary();
    let port = old.address().port().to_string();
    old.stop();
    let leader = eventually("a Sentinel that tells both addresses", || {
        sentinels.sentinels().iter().find(|sentinel| {
            let reported = |what| sentinel.try_command(&["SENTINEL", what, sentinels.name()]);
            let (Ok(address), Ok(all)) = (reported("GET-MASTER-ADDR-BY-NAME"), reported("MASTER")) else {
                return false;
            };
            let has_old = |pair: &[Reply]| pair[0].text() == "port" && pair[1].text() == port;
            let names_old = address.parts().last().is_some_and(|named| named.text() == port);
            !names_old && all.parts().chunks_exact(2).any(has_old)
        })
    });
    let store = forgetful(&format!("redis+sentinel://{}/{}", leader.address(), sentinels.name()));
    wait(store.ready()).expect("the new primary is there already");
    let what = store.status().what;
    assert!(!what.contains(&old.address().to_string()), "{what}");
}
