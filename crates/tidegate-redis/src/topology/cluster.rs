//! The topology of a cluster: the node of each slot.
//!
//! The slot map is read at the start, when a node fails or reports a moved slot, and at intervals. A redirection is
//! followed immediately. Links to nodes stay open while the map contains them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redis::{PushInfo, Value};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::slots::{SLOTS, SlotMap};
use super::{BETWEEN_LOOKS, Health, jittered};
use crate::background::go_on;
use crate::dial::Dialer;
use crate::fault::{ErrorReply, Fault, describe};
use crate::link::{Link, LinkContext};
use crate::url::Address;

/// The timeout of a node for the slot map.
const TIMEOUT: Duration = Duration::from_millis(500);
/// The interval between reads of the map while a node is down.
const WHILE_DOWN: Duration = Duration::from_millis(100);
/// The interval between reads of the map in normal operation.
const NOW_AND_THEN: Duration = Duration::from_secs(10);
/// The maximum number of nodes that are stored, whatever redirections report.
const MOST_NODES: usize = 1024;

/// The nodes of a cluster. One link is kept for each primary of the map. Replicas are never used: they cannot execute a
/// take.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The nodes of the URL, queried if no known node answers.
    seeds: Vec<Address>,
    trunk: Arc<LinkContext>,
    /// The map and the links. The lock is never held across an await.
    known: Mutex<KnownNodes>,
    /// True once the map was read, or could not be read.
    is_settled: watch::Sender<bool>,
}

/// The current view of the cluster.
#[derive(Debug, Default)]
struct KnownNodes {
    /// The owner of each slot; `None` until a map was read.
    map: Option<SlotMap>,
    /// The links to nodes, of the map and of recent redirections.
    links: HashMap<Address, Arc<Link>>,
    /// The reason why the last read of the map failed; empty if it succeeded.
    why_not: String,
}

impl Cluster {
    /// Starts the task that reads the map. It ends when the cluster is dropped.
    pub(super) fn new(seeds: &[Address], trunk: &Arc<LinkContext>) -> Arc<Cluster> {
        let (is_settled, _) = watch::channel(false);
        let known = Mutex::default();
        let this = Arc::new(Cluster { seeds: seeds.to_vec(), trunk: trunk.clone(), known, is_settled });
        let weak = Arc::downgrade(&this);
        go_on(&trunk.handle, move || follow(weak.clone()));
        this
    }

    /// Returns the link to the owner of a slot. Waits only before the first map was read.
    pub(super) async fn owner(&self, slot: u16) -> Result<Arc<Link>, Fault> {
        if !*self.is_settled.borrow() {
            self.settled().await;
        }
        let mut known = self.known();
        // A map is available from the first successful read on, and is never removed.
        let owner = match &known.map {
            Some(map) => map.owner(slot).cloned(),
            None => {
                return Err(Fault::Down(format!(
                    "no node of the cluster tells its slots: {}",
                    known.why_not
                )));
            }
        };
        match owner {
            Some(owner) => Ok(self.link(&mut known, &owner)),
            None => Err(Fault::Down(format!("slot {slot} has no node; add one to the cluster"))),
        }
    }

    /// Returns the link to the owner of a slot, if both are known. No link is opened.
    pub(super) fn owner_now(&self, slot: u16) -> Option<Arc<Link>> {
        let known = self.known();
        known.links.get(known.map.as_ref()?.owner(slot)?).cloned()
    }

    /// Records a `MOVED` redirection for its slot, requests a new map, and returns the link to the new owner.
    pub(super) fn moved(&self, slot: u16, to: &Address) -> Arc<Link> {
        let mut known = self.known();
        if let Some(map) = &mut known.map {
            map.set_owner(slot, to);
        }
        self.trunk.doubts.notify_one();
        self.link(&mut known, to)
    }

    /// Returns the link to a node, and opens one if needed.
    pub(super) fn node(&self, address: &Address) -> Arc<Link> {
        self.link(&mut self.known(), address)
    }

    /// Resolves when the first map was read or failed, and each link is up or down.
    pub(super) async fn settled(&self) {
        // This cannot fail while the sender exists.
        let _ = self.is_settled.subscribe().wait_for(|settled| *settled).await;
        let links: Vec<_> = self.known().links.values().cloned().collect();
        for link in links {
            link.settled().await;
        }
    }

    /// Returns the availability: all slots need an owner that answers. The first fault is described.
    pub(super) fn health(&self) -> Health {
        let known = self.known();
        let Some(map) = &known.map else {
            let why = if known.why_not.is_empty() { "not reached yet" } else { &known.why_not };
            return Health { is_up: false, what: format!("no node of the cluster tells its slots: {why}") };
        };
        let mut down = map.nodes.iter().filter_map(|node| known.links.get(node)?.why_not());
        // Missing slots are reported before nodes that are down, because they need an administrator.
        match (map.missing(), down.next()) {
            (0, None) => Health { is_up: true, what: format!("{} primaries answer", map.nodes.len()) },
            (0, Some(why)) => Health { is_up: false, what: why },
            (missing, _) => Health { is_up: false, what: format!("{missing} of {SLOTS} slots have no node") },
        }
    }

    /// Reads the map from one node after the other, until one succeeds: first from connected nodes, then from other
    /// known nodes. Connected nodes are queried in random order, so that a node with an old map is not asked every
    /// time. The map of the first that answers is adopted as a whole.
    async fn look(&self) {
        let (mut up, mut others) = (Vec::new(), Vec::new());
        {
            let known = self.known();
            up.extend(known.links.values().filter(|link| link.is_up()).cloned());
            others.extend(known.map.iter().flat_map(|map| map.nodes.clone()));
        }
        fastrand::shuffle(&mut up);
        // A node that is cut off from the cluster has an old map, and reports that it cannot decide.
        up.sort_by_key(|link| link.why_not().is_some());
        others.extend(self.seeds.iter().cloned());
        others.retain(|node| up.iter().all(|link| link.address != *node));
        let mut why_not = String::new();
        // Connected nodes are queried over their link, without a new connection.
        for link in up {
            match timeout(TIMEOUT, link.call(&slots_question())).await {
                Ok(Ok(answer)) => match read_map(answer.value, &link.address) {
                    Ok(map) => return self.adopt(map),
                    Err(why) => why_not = why,
                },
                Ok(Err(fault)) => why_not = fault.to_string(),
                Err(_) => why_not = link.timed_out().to_string(),
            }
        }
        // The remaining nodes may be down, so each costs up to the timeout.
        for node in others {
            match timeout(TIMEOUT, ask_slots(&self.trunk.dialer, &node)).await {
                Ok(Ok(map)) => return self.adopt(map),
                Ok(Err(why)) => why_not = why,
                Err(_) => why_not = format!("{node}: no answer"),
            }
        }
        // The previous map stays in use: an old map is corrected by redirections.
        self.known().why_not = why_not;
        self.is_settled.send_replace(true);
    }

    /// Replaces the map. Links to nodes that are gone are closed, links to new nodes are opened in advance.
    fn adopt(&self, map: SlotMap) {
        let mut known = self.known();
        let nodes: Vec<_> = map.nodes.clone();
        // Requests in flight on a removed link keep it alive until they end.
        known.links.retain(|address, _| nodes.contains(address));
        for node in &nodes {
            self.link(&mut known, node);
        }
        known.map = Some(map);
        known.why_not.clear();
        drop(known);
        self.is_settled.send_replace(true);
    }

    /// Returns the link to an address. Beyond [`MOST_NODES`] a link is opened for one request only.
    fn link(&self, known: &mut KnownNodes, address: &Address) -> Arc<Link> {
        if let Some(link) = known.links.get(address) {
            return link.clone();
        }
        let link = Link::new(address.clone(), &self.trunk);
        // Redirections come from servers, so the number of stored links has to be bounded.
        if known.links.len() < MOST_NODES {
            known.links.insert(address.clone(), link.clone());
        }
        link
    }

    /// Locks the view.
    fn known(&self) -> MutexGuard<'_, KnownNodes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds `CLUSTER SLOTS`, which every supported version has.
fn slots_question() -> redis::Cmd {
    let mut question = redis::cmd("CLUSTER");
    question.arg("SLOTS");
    question
}

/// Reads the map from a node that may be a replica or down. Opens a connection for this one command. The error is a
/// message with a remedy.
pub(crate) async fn ask_slots(dialer: &Dialer, node: &Address) -> Result<SlotMap, String> {
    let deaf = |_: PushInfo| Ok::<(), ()>(());
    let mut connection = dialer.connect(node, deaf).await.map_err(|error| describe(node, &error))?;
    let answer = connection.send_packed_command(&slots_question()).await;
    read_map(answer.map_err(|error| describe(node, &error))?, node)
}

/// Parses the reply. A map without any owner is an error: the node was not joined to a cluster yet.
fn read_map(answer: Value, node: &Address) -> Result<SlotMap, String> {
    if let Value::ServerError(error) = answer {
        let refusal = ErrorReply::new(node, &error);
        // The usual mistake: a cluster URL for a standalone server.
        if refusal.detail.contains("cluster support disabled") {
            return Err(format!("{node}: this server is in no cluster; write redis:// in the URL"));
        }
        return Err(Fault::Refused(refusal).to_string());
    }
    match SlotMap::read(&answer, node) {
        Some(map) if map.missing() < SLOTS => Ok(map),
        Some(_) => Err(format!("{node} knows of no slots; create the cluster first")),
        None => Err(format!("{node}: its answer to CLUSTER SLOTS makes no sense")),
    }
}

/// Reads the map when notified, and at intervals. While a node is down, the map is read about ten times a second, so
/// that a failover is noticed fast. Otherwise an interval of about ten seconds covers changes that cause no
/// redirection.
async fn follow(cluster: Weak<Cluster>) {
    loop {
        // The task ends with the cluster, and does not keep it alive while it waits.
        let Some(held) = cluster.upgrade() else { return };
        held.look().await;
        let pause = if held.health().is_up { NOW_AND_THEN } else { WHILE_DOWN };
        let trunk = held.trunk.clone();
        drop(held);
        // Many redirections at the same time cause one discovery.
        sleep(jittered(BETWEEN_LOOKS)).await;
        let _ = timeout(jittered(pause), trunk.doubts.notified()).await;
    }
}
