//! Tests of slots that move, nodes that fail, and limits in different slots.

use testbed::{Cluster, Flavour};
use tidegate::{Ask, Store as _};

use crate::setup::{Someone, cluster_url, eventually, forgetful, wait};

#[test]
fn limits_in_different_slots_are_taken_together_or_not_at_all() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    for limit in [
        "3/d",
        "3/d sliding-log",
        "3/d fixed-window",
        "3/d sliding-window",
        "3/d pacer burst 16h",
        "3/30s concurrency",
        "3/d queue 2 delay-after all leaky-bucket",
    ] {
        let all = Someone::new("all", "100/d");
        let people: Vec<_> = (0..8).map(|nth| Someone::new(&format!("{limit} {nth}"), limit)).collect();
        wait(store.reset(all.subject())).unwrap();
        let mut passed = 0;
        for _ in 0..5 {
            for person in &people {
                let asks = [(all.subject(), Ask::ONE), (person.subject(), Ask::ONE)];
                passed += u64::from(wait(store.take(&asks)).unwrap().is_allowed());
            }
        }
        assert_eq!(passed, 24, "{limit}");
        let left = wait(store.peek(all.subject(), Ask::ONE)).unwrap().remaining();
        assert_eq!(left, 100 - passed, "{limit}: refusals spend nothing of the other");
    }
    assert!(store.status().given_back > 0, "some were in different slots");
}

#[test]
fn more_limits_than_one_script_decides_are_taken_all_or_none_across_slots() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let mut people: Vec<_> = (0..300).map(|nth| Someone::new(&format!("person {nth}"), "5/d")).collect();
    let last = Someone::new("last", "1/d");
    people.push(last);
    let asks: Vec<_> = people.iter().map(|person| (person.subject(), Ask::ONE)).collect();
    let take = || wait(store.take(&asks)).unwrap();
    let left = |nth: usize| wait(store.peek(people[nth].subject(), Ask::ONE)).unwrap().remaining();
    assert!(take().is_allowed());
    let refused = take();
    assert_eq!((refused.is_allowed(), refused.binding()), (false, Some(300)));
    assert_eq!((0..301).map(left).sum::<u64>(), 300 * 4, "nothing was spent");
}

#[test]
fn slots_that_move_are_followed_while_they_do() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let people: Vec<_> = (0..200).map(|nth| Someone::new(&format!("person {nth}"), "5/d")).collect();
    for person in &people {
        assert!(person.is_allowed(&store));
    }
    let from = cluster.primary_of(100).address();
    let to = cluster
        .primaries()
        .into_iter()
        .map(testbed::Redis::address)
        .find(|address| *address != from)
        .unwrap();
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| cluster.move_slots(0..1000, to));
        while !moving.is_finished() {
            for person in &people {
                assert!(wait(store.peek(person.subject(), Ask::ONE)).is_ok());
            }
        }
    });
    for person in &people {
        assert_eq!(person.passes(&store, 10), 4, "what was owed has moved along");
    }
    assert!(store.status().redirected > 0, "some requests were redirected");
}

#[test]
fn a_key_that_is_on_its_way_is_asked_for_where_it_is() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let ana = Someone::new("ana", "5/d");
    assert_eq!(ana.passes(&store, 2), 2);
    let key = cluster.nodes().iter().map(|node| node.command(&["KEYS", "*"])).find(|keys| !keys.is_empty());
    let slot = cluster.slot_of(key.expect("a node has it").trim());
    let from = cluster.primary_of(slot).address();
    let to = cluster
        .primaries()
        .into_iter()
        .map(testbed::Redis::address)
        .find(|address| *address != from)
        .unwrap();
    cluster.begin_move(slot, to);
    assert!(ana.is_allowed(&store), "the old node still has it");
    cluster.move_keys(slot, to);
    assert!(ana.is_allowed(&store), "the old node says who has it");
    cluster.finish_move(slot, to);
    assert_eq!(ana.passes(&store, 5), 1);
}

#[test]
fn who_takes_over_for_a_dead_node_is_found() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let people: Vec<_> = (0..50).map(|nth| Someone::new(&format!("person {nth}"), "5/d")).collect();
    for person in &people {
        assert!(person.is_allowed(&store));
    }
    let dead = cluster.kill_primary_of(0);
    eventually("all decide again", || {
        people.iter().all(|person| wait(store.peek(person.subject(), Ask::ONE)).is_ok()).then_some(())
    });
    for person in &people {
        let passed = person.passes(&store, 10);
        assert!((4..=5).contains(&passed), "{passed} passed after 1 of 5");
    }
    cluster.bring_back(dead);
    cluster.wait_until_whole();
    for person in &people {
        assert!(!person.is_allowed(&store));
    }
}
