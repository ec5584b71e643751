//! Tests of many concurrent clients on several servers.

use std::sync::Barrier;
use std::thread;

use super::place::{Node, decided_by, redis, store};

const NODES: usize = 4;
const CLIENTS: usize = 64;
const BURST: usize = 10;

/// Returns the number of rounds: more of them in a full run.
fn rounds() -> usize {
    if std::env::var_os("TIDEGATE_FULL").is_some() { 1000 } else { 20 }
}

#[test]
fn exactly_the_burst_is_admitted_over_all_servers() {
    let redis = redis();
    let nodes: Vec<_> = (0..NODES).map(|nth| Node::start(&format!("crowd_{nth}"), &store(&redis))).collect();
    let (barrier, rounds) = (Barrier::new(CLIENTS), rounds());
    let allowed: Vec<Vec<bool>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|nth| {
                let (mut client, barrier) = (nodes[nth % NODES].resp(), &barrier);
                scope.spawn(move || {
                    let take = |round| {
                        barrier.wait();
                        let answer = client.say(&format!("TG.TAKE round{round} LIMIT {BURST}/h"));
                        assert_eq!(decided_by(&answer), "redis");
                        answer.number("allowed") == 1
                    };
                    (0..rounds).map(take).collect()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client comes to its end")).collect()
    });
    for round in 0..rounds {
        assert_eq!(allowed.iter().filter(|client| client[round]).count(), BURST, "round {round}");
    }
}
