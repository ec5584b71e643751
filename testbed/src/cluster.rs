//! Six nodes: three primaries that share the slots, and a replica for each.
//!
//! Commands tell each node which others to meet and which slots to hold, as `redis-cli --cluster create` would do it,
//! so that the same works for every flavour.

mod moving;
mod view;

use std::net::SocketAddr;
use std::time::Duration;

use crate::flavour::Flavour;
use crate::redis::{Place, Redis, field};
use crate::sentinels::{has_replicas_in_step, is_replica_in_step};
use crate::settings::Settings;
use harness::Port;
use harness::until;
use view::View;

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

const PRIMARIES: usize = 3;

/// How long everything may take to be as it should.
const WHOLE: Duration = Duration::from_secs(60);

/// The options of every node.
const NODE: &str = "cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout 2000\n\
                    cluster-replica-validity-factor 0\ncluster-migration-barrier 99\n";

/// Six servers that are one.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Redis>,
}

impl Cluster {
    /// Starts all six, and waits until they agree.
    pub fn start(flavour: Flavour) -> Cluster {
        let settings = Settings::new(flavour);
        let text = format!("{NODE}{}", settings.text());
        let node = |_| {
            let (port, bus) = Port::with_bus();
            Redis::launch(&settings, &text, Place { port, bus: Some(bus), is_sentinel: false })
        };
        let cluster = Cluster { nodes: (0..2 * PRIMARIES).map(node).collect() };
        cluster.join();
        cluster.wait_until_whole();
        cluster
    }

    /// Where the nodes are.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Redis::address).collect()
    }

    /// All nodes: at the start three primaries and then their replicas.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The node of this address.
    pub fn node(&self, address: SocketAddr) -> &Redis {
        let found = self.nodes.iter().find(|node| node.address() == address);
        found.unwrap_or_else(|| panic!("{address} is no node of this cluster"))
    }

    /// The slot of a key, according to a node.
    pub fn slot_of(&self, key: &str) -> u16 {
        let node = self.nodes.iter().find(|node| node.is_alive()).expect("one node is alive");
        let slot = node.command(&["CLUSTER", "KEYSLOT", key]);
        slot.parse().unwrap_or_else(|_| panic!("slot of {key:?}: {slot} is no number"))
    }

    /// The primary that holds a slot, by its own word; of several, the one that was elected last.
    pub fn primary_of(&self, slot: u16) -> &Redis {
        until(&format!("a primary that holds slot {slot}"), WHOLE, || self.holder(slot))
    }

    /// The slots that a node says are its own.
    pub fn slots_of(&self, node: &Redis) -> Vec<u16> {
        View::of(node).map(|view| view.slots.into_iter().flatten().collect()).unwrap_or_default()
    }

    /// The nodes that call themselves primaries and hold slots.
    pub fn primaries(&self) -> Vec<&Redis> {
        let holds =
            |node: &&Redis| View::of(node).is_some_and(|view| view.is_primary && !view.slots.is_empty());
        self.nodes.iter().filter(holds).collect()
    }

    /// Ends the primary of a slot at once, as `kill -9` does, and says where it was.
    pub fn kill_primary_of(&self, slot: u16) -> SocketAddr {
        let primary = self.primary_of(slot);
        primary.kill();
        primary.address()
    }

    /// Waits until another one than this holds the slot.
    pub fn wait_for_failover(&self, slot: u16, from: SocketAddr) -> SocketAddr {
        until(&format!("another primary of slot {slot} than {from}"), WHOLE, || {
            self.holder(slot).map(Redis::address).filter(|address| *address != from)
        })
    }

    /// Starts a node that was killed again; it follows the primary that took its place.
    pub fn bring_back(&self, address: SocketAddr) {
        self.node(address).restart();
    }

    /// Waits until all nodes call the state well, know the same holders, and every primary has a replica in step.
    pub fn wait_until_whole(&self) {
        until("a cluster of three primaries with a replica each", WHOLE, || self.is_whole().then_some(()));
    }

    fn is_whole(&self) -> bool {
        let is_well = |node: &Redis| {
            let state = node.try_command(&["CLUSTER", "INFO"]).map(|reply| reply.text()).unwrap_or_default();
            field(&state, "cluster_state") == Some("ok") && field(&state, "cluster_slots_ok") == Some("16384")
        };
        let views: Option<Vec<_>> = self.nodes.iter().map(View::of).collect();
        let Some(views) = views else { return false };
        let is_in_step = |(node, view): (&Redis, &View)| match view.is_primary {
            true => has_replicas_in_step(node, 1),
            false => is_replica_in_step(node),
        };
        views.iter().filter(|view| view.is_primary).count() == PRIMARIES
            && views.windows(2).all(|pair| pair[0].holders == pair[1].holders)
            && self.nodes.iter().zip(&views).all(is_in_step)
            && self.nodes.iter().all(is_well)
    }

    fn holder(&self, slot: u16) -> Option<&Redis> {
        let holding = self.nodes.iter().filter_map(|node| {
            let view = View::of(node).filter(|view| view.is_primary && view.holds(slot))?;
            Some((view.epoch, node))
        });
        holding.max_by_key(|(epoch, _)| *epoch).map(|(_, node)| node)
    }

    fn join(&self) {
        let (primaries, replicas) = self.nodes.split_at(PRIMARIES);
        for (epoch, node) in (1..).zip(&self.nodes) {
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &i32::to_string(&epoch)]);
        }
        for (index, node) in primaries.iter().enumerate() {
            let (from, to) = (share(index), share(index + 1));
            let slots: Vec<_> = (from..to).map(|slot| slot.to_string()).collect();
            let words: Vec<_> =
                ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
            node.command(&words);
        }
        for node in &self.nodes[1..] {
            self.nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &node.address().port().to_string()]);
        }
        until("six nodes that know each other", WHOLE, || {
            let knows_all = |node| View::of(node).is_some_and(|view| view.known == 2 * PRIMARIES);
            self.nodes.iter().all(knows_all).then_some(())
        });
        for (primary, replica) in primaries.iter().zip(replicas) {
            replica.command(&["CLUSTER", "REPLICATE", &primary.command(&["CLUSTER", "MYID"])]);
        }
    }
}

/// Where the slots of a primary begin.
fn share(index: usize) -> usize {
    usize::from(SLOTS) * index / PRIMARIES
}
