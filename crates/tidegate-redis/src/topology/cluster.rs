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

/// The nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    seeds: Vec<Address>,
    trunk: Arc<LinkContext>,
    known: Mutex<KnownNodes>,
    /// True once the map was read, or could not be read.
    is_settled: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct KnownNodes {
    map: Option<SlotMap>,
    links: HashMap<Address, Arc<Link>>,
    why_not: String,
}

impl Cluster {
    pub(super) fn new(seeds: &[Address], trunk: &Arc<LinkContext>) -> Arc<Cluster> {
        let (is_settled, _) = watch::channel(false);
        let known = Mutex::default();
        let this = Arc::new(Cluster { seeds: seeds.to_vec(), trunk: trunk.clone(), known, is_settled });
        let weak = Arc::downgrade(&this);
        go_on(&trunk.handle, move || follow(weak.clone()));
        this
    }

    pub(super) async fn owner(&self, slot: u16) -> Result<Arc<Link>, Fault> {
        if !*self.is_settled.borrow() {
            self.settled().await;
        }
        let mut known = self.known();
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

    pub(super) fn owner_now(&self, slot: u16) -> Option<Arc<Link>> {
        let known = self.known();
        known.links.get(known.map.as_ref()?.owner(slot)?).cloned()
    }

    pub(super) fn moved(&self, slot: u16, to: &Address) -> Arc<Link> {
        let mut known = self.known();
        if let Some(map) = &mut known.map {
            map.set_owner(slot, to);
        }
        self.trunk.doubts.notify_one();
        self.link(&mut known, to)
    }

    pub(super) fn node(&self, address: &Address) -> Arc<Link> {
        self.link(&mut self.known(), address)
    }

    pub(super) async fn settled(&self) {
        // This cannot fail while the sender exists.
        let _ = self.is_settled.subscribe().wait_for(|settled| *settled).await;
        let links: Vec<_> = self.known().links.values().cloned().collect();
        for link in links {
            link.settled().await;
        }
    }

    pub(super) fn health(&self) -> Health {
        let known = self.known();
        let Some(map) = &known.map else {
            let why = if known.why_not.is_empty() { "not reached yet" } else { &known.why_not };
            return Health { is_up: false, what: format!("no node of the cluster tells its slots: {why}") };
        };
        let mut down = map.nodes.iter().filter_map(|node| known.links.get(node)?.why_not());
        match (map.missing(), down.next()) {
            (0, None) => Health { is_up: true, what: format!("{} primaries answer", map.nodes.len()) },
            (0, Some(why)) => Health { is_up: false, what: why },
            (missing, _) => Health { is_up: false, what: format!("{missing} of {SLOTS} slots have no node") },
        }
    }

    /// Reads the map from one node after the other, until one succeeds: first from connected nodes, then from other
    /// known nodes.
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
        for node in others {
            match timeout(TIMEOUT, ask_slots(&self.trunk.dialer, &node)).await {
                Ok(Ok(map)) => return self.adopt(map),
                Ok(Err(why)) => why_not = why,
                Err(_) => why_not = format!("{node}: no answer"),
            }
        }
        self.known().why_not = why_not;
        self.is_settled.send_replace(true);
    }

    fn adopt(&self, map: SlotMap) {
        let mut known = self.known();
        let nodes: Vec<_> = map.nodes.clone();
        known.links.retain(|address, _| nodes.contains(address));
        for node in &nodes {
            self.link(&mut known, node);
        }
        known.map = Some(map);
        known.why_not.clear();
        drop(known);
        self.is_settled.send_replace(true);
    }

    fn link(&self, known: &mut KnownNodes, address: &Address) -> Arc<Link> {
        if let Some(link) = known.links.get(address) {
            return link.clone();
        }
        let link = Link::new(address.clone(), &self.trunk);
        if known.links.len() < MOST_NODES {
            known.links.insert(address.clone(), link.clone());
        }
        link
    }

    fn known(&self) -> MutexGuard<'_, KnownNodes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slots_question() -> redis::Cmd {
    let mut question = redis::cmd("CLUSTER");
    question.arg("SLOTS");
    question
}

/// Reads the map from a node that may be a replica or down.
pub(crate) async fn ask_slots(dialer: &Dialer, node: &Address) -> Result<SlotMap, String> {
    let deaf = |_: PushInfo| Ok::<(), ()>(());
    let mut connection = dialer.connect(node, deaf).await.map_err(|error| describe(node, &error))?;
    let answer = connection.send_packed_command(&slots_question()).await;
    read_map(answer.map_err(|error| describe(node, &error))?, node)
}

fn read_map(answer: Value, node: &Address) -> Result<SlotMap, String> {
    if let Value::ServerError(error) = answer {
        let refusal = ErrorReply::new(node, &error);
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

/// Reads the map when notified, and at intervals.
async fn follow(cluster: Weak<Cluster>) {
    loop {
        let Some(held) = cluster.upgrade() else { return };
        held.look().await;
        let pause = if held.health().is_up { NOW_AND_THEN } else { WHILE_DOWN };
        let trunk = held.trunk.clone();
        drop(held);
        sleep(jittered(BETWEEN_LOOKS)).await;
        let _ = timeout(jittered(pause), trunk.doubts.notified()).await;
    }
}
