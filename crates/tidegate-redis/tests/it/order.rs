//! Tests that concurrent takes are decided in their order, also before the server is reached or has a script.

use testbed::{Cluster, Flavour};
use tidegate::{Ask, Store as _};
use tidegate_redis::RedisStore;

use crate::setup::{Someone, cluster_url, forgetful, redis, wait, wait_for_all};

/// The number of concurrent takes.
const TAKES: u64 = 64;

/// One limit for each script that a take may need.
const LIMITS: [&str; 6] = [
    "100/h",
    "100/h fixed-window",
    "100/h sliding-log",
    "100/h sliding-window",
    "100/30s concurrency",
    "100/h leaky-bucket queue 99 delay-after all",
];

/// Returns the remaining quota after each of many takes of one new key.
fn remaining(store: &RedisStore, name: &str, limit: &str) -> Vec<u64> {
    let ana = Someone::new(name, limit);
    let asks = [(ana.subject(), Ask::ONE)];
    let answers = wait_for_all((0..TAKES).map(|_| store.take(&asks)));
    answers.into_iter().map(|answer| answer.expect("the server answers").each()[0].remaining()).collect()
}

fn in_order() -> Vec<u64> {
    (0..TAKES).map(|before| 99 - before).collect()
}

/// Regression: callers that waited for the first connection were woken in any order, and sent in that order.
#[test]
fn takes_that_wait_for_the_first_connection_keep_their_order() {
    let redis = redis();
    for round in 0..10 {
        for limit in LIMITS {
            let name = format!("{limit} {round}");
            assert_eq!(remaining(&forgetful(&redis.url()), &name, limit), in_order(), "{name}");
        }
    }
}

#[test]
fn takes_that_wait_for_the_slots_of_a_cluster_keep_their_order() {
    let cluster = Cluster::start(Flavour::Redis7);
    for round in 0..10 {
        let name = format!("round {round}");
        assert_eq!(remaining(&forgetful(&cluster_url(&cluster)), &name, "100/h"), in_order(), "{name}");
    }
}

/// Regression: the first take of a script that the server did not have was repeated behind later ones.
#[test]
fn takes_by_a_script_that_is_not_known_yet_keep_their_order() {
    for round in 0..5 {
        let redis = redis();
        let store = forgetful(&redis.url());
        wait(store.reset(Someone::new("unused", "1/h").subject())).expect("the server is reached");
        for limit in LIMITS {
            assert_eq!(remaining(&store, limit, limit), in_order(), "{limit} in round {round}");
        }
        assert_eq!(store.status().rejected, 0);
    }
}
