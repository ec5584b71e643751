//! Slots that move to another primary while everybody asks.

use std::net::SocketAddr;

use conformance::random::Random;
use testbed::{Cluster, Redis};

/// How many slots move at once.
const SOME: usize = 100;

/// Moves a hundred slots of one primary to another, half of those with keys among them. How many that were.
pub(super) fn move_some(cluster: &Cluster, random: &mut Random) -> Result<u64, String> {
    let primaries: Vec<SocketAddr> = cluster.primaries().into_iter().map(Redis::address).collect();
    let from = random.pick(&primaries);
    let others: Vec<_> = primaries.into_iter().filter(|other| *other != from).collect();
    let to = random.pick(&others);
    let slots = slots_of(cluster, cluster.node(from))?;
    for slot in &slots {
        cluster.move_slots(*slot..*slot + 1, to);
    }
    Ok(slots.len() as u64)
}

/// Slots of a node: every other one with keys, and as many empty ones as it takes.
fn slots_of(cluster: &Cluster, node: &Redis) -> Result<Vec<u16>, String> {
    let mut connection = node.connection();
    let mut count = |slot: u16| {
        let reply = connection.call(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]);
        reply.map_err(|error| error.to_string())?.number().ok_or_else(|| "no number of keys".to_owned())
    };
    let (mut full, mut empty) = (Vec::new(), Vec::new());
    for slot in cluster.slots_of(node) {
        if count(slot)? > 0 { full.push(slot) } else { empty.push(slot) }
    }
    let some = full.into_iter().step_by(2).chain(empty);
    Ok(some.take(SOME).collect())
}
