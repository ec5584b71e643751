//! A primary, two replicas, and three sentinels that watch them.
//!
//! Two sentinels have to agree that a primary is gone, which they notice after a second.
//! A primary that was killed comes back as a replica of the primary that took its place.
//! With so little max wait they may be wrong at times and fail over once more: `failovers` says how often it was.

use std::net::SocketAddr;
use std::time::Duration;

use crate::flavour::Flavour;
use crate::redis::{Place, Redis, field};
use crate::resp::Reply;
use crate::settings::Settings;
use harness::Port;
use harness::until;

/// What the sentinels call the primary.
const NAME: &str = "tide";

/// How long everything may take to be as it should.
const WHOLE: Duration = Duration::from_secs(60);

/// Three servers and three sentinels.
#[derive(Debug)]
pub struct Sentinels {
    nodes: Vec<Redis>,
    sentinels: Vec<Redis>,
}

impl Sentinels {
    /// Starts all six, and waits until they know each other.
    pub fn start(flavour: Flavour) -> Sentinels {
        let settings = Settings::new(flavour);
        let primary = Redis::with(&settings);
        let follow = format!("{}replicaof 127.0.0.1 {}\n", settings.text(), primary.address().port());
        let replica = || Redis::launch(&settings, &follow, place(false));
        let nodes = vec![replica(), replica(), primary];
        let watch = watch(nodes[2].address());
        let sentinels = (0..3).map(|_| Redis::launch(&settings, &watch, place(true))).collect();
        let group = Sentinels { nodes, sentinels };
        if !flavour.is_older_than_seven() {
            group.sentinels.iter().for_each(look_often);
        }
        group.wait_until_whole();
        group
    }

    /// What the sentinels call the primary.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// Where the sentinels are.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sentinels.iter().map(Redis::address).collect()
    }

    /// The three servers, in no order.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// The three sentinels.
    pub fn sentinels(&self) -> &[Redis] {
        &self.sentinels
    }

    /// The server of this address.
    pub fn node(&self, address: SocketAddr) -> &Redis {
        let found = self.nodes.iter().find(|node| node.address() == address);
        found.unwrap_or_else(|| panic!("{address} is no server of this group"))
    }

    /// Where the primary is, if at least two sentinels say the same.
    pub fn primary_address(&self) -> Option<SocketAddr> {
        let said: Vec<_> = self.sentinels.iter().filter_map(primary_according_to).collect();
        said.iter().copied().find(|one| said.iter().filter(|other| *other == one).count() >= 2)
    }

    /// The primary according to the sentinels.
    pub fn primary(&self) -> &Redis {
        self.node(until("a primary that two sentinels agree on", WHOLE, || self.primary_address()))
    }

    /// How many failovers there were, or a few more: elections are counted, also those that led to nothing.
    pub fn failovers(&self) -> u64 {
        let count = |sentinel: &Redis| entry(&ask(sentinel, "MASTER"), "config-epoch")?.parse().ok();
        self.sentinels.iter().filter_map(count).max().unwrap_or_default()
    }

    /// Ends the primary at once, as `kill -9` does, and says where it was.
    pub fn kill_primary(&self) -> SocketAddr {
        let primary = self.primary();
        primary.kill();
        primary.address()
    }

    /// Waits until the sentinels name another server, which calls itself primary.
    pub fn wait_for_failover(&self, from: SocketAddr) -> SocketAddr {
        until(&format!("another primary than {from}"), WHOLE, || {
            let address = self.primary_address().filter(|address| *address != from)?;
            is_primary(self.node(address)).then_some(address)
        })
    }

    /// Starts a server that was killed again, as a replica of the present primary.
    pub fn bring_back(&self, address: SocketAddr) {
        let node = self.node(address);
        let primary = self.primary().address();
        assert_ne!(
            primary, address,
            "{address} is the primary; it can come back when another one has its place"
        );
        node.rewrite("replicaof", &format!("replicaof 127.0.0.1 {}", primary.port()));
        node.restart();
    }

    /// Waits until there is one primary with two replicas in step, and every sentinel sees that.
    pub fn wait_until_whole(&self) {
        until("a primary, two replicas and three sentinels in agreement", WHOLE, || {
            self.is_whole().then_some(())
        });
    }

    fn is_whole(&self) -> bool {
        let Some(primary) = self.primary_address() else { return false };
        let is_well = |node: &Redis| match node.address() == primary {
            true => has_replicas_in_step(node, 2),
            false => is_replica_in_step(node),
        };
        self.nodes.iter().all(is_well) && self.sentinels.iter().all(|sentinel| sees_all(sentinel, primary))
    }
}

/// The settings of a sentinel.
fn watch(primary: SocketAddr) -> String {
    let port = primary.port();
    format!(
        "sentinel monitor {NAME} 127.0.0.1 {port} 2\n\
         sentinel down-after-milliseconds {NAME} 1000\n\
         sentinel failover-timeout {NAME} 3000\n\
         sentinel parallel-syncs {NAME} 2\n"
    )
}

fn place(is_sentinel: bool) -> Place {
    Place { port: Port::free(), bus: None, is_sentinel }
}

fn primary_according_to(sentinel: &Redis) -> Option<SocketAddr> {
    let reply = sentinel.try_command(&["SENTINEL", "get-master-addr-by-name", NAME]).ok()?;
    let [ip, port] = reply.parts() else { return None };
    format!("{}:{}", ip.text(), port.text()).parse().ok()
}

fn replication(node: &Redis) -> String {
    node.try_command(&["INFO", "REPLICATION"]).map(|reply| reply.text()).unwrap_or_default()
}

fn is_primary(node: &Redis) -> bool {
    field(&replication(node), "role") == Some("master")
}

/// Whether it is a primary that has this many replicas, all in step.
pub(crate) fn has_replicas_in_step(node: &Redis, wanted: usize) -> bool {
    let text = replication(node);
    field(&text, "role") == Some("master") && text.matches("state=online").count() == wanted
}

/// Whether it is a replica that follows its primary.
pub(crate) fn is_replica_in_step(node: &Redis) -> bool {
    field(&replication(node), "master_link_status") == Some("up")
}

/// Whether a sentinel sees this primary, two replicas and two other sentinels, all well.
///
/// Redis forgets after five seconds that others called a primary dead, and is waited for: what they said counts
/// against the next primary. Valkey keeps it as long as it does not ask again.
fn sees_all(sentinel: &Redis, primary: SocketAddr) -> bool {
    let (master, replicas) = (ask(sentinel, "MASTER"), ask(sentinel, "REPLICAS"));
    let others = ask(sentinel, "SENTINELS");
    let keeps_opinions = sentinel.flavour() == Flavour::Valkey;
    let is_well = |reply: &Reply, flags: &str| entry(reply, "flags").is_some_and(|found| found == flags);
    entry(&master, "port") == Some(primary.port().to_string())
        && is_well(&master, "master")
        && replicas.parts().len() == 2
        && replicas.parts().iter().all(|replica| is_well(replica, "slave"))
        && others.parts().len() == 2
        && others.parts().iter().all(|other| {
            is_well(other, "sentinel") || keeps_opinions && is_well(other, "sentinel,master_down")
        })
}

/// What a sentinel says of everybody that it watches, or of some.
fn ask(sentinel: &Redis, what: &str) -> Reply {
    sentinel.try_command(&["SENTINEL", what, NAME]).unwrap_or(Reply::Nil)
}

/// Has a sentinel look twice as often. By default it connects again only after a second, which is all that a new
/// primary has to be heard of.
fn look_often(sentinel: &Redis) {
    sentinel.command(&["SENTINEL", "DEBUG", "ping-period", "500"]);
}

/// The value after a name in a flat list of both.
fn entry(reply: &Reply, name: &str) -> Option<String> {
    reply.parts().chunks_exact(2).find(|pair| pair[0].text() == name).map(|pair| pair[1].text())
}
