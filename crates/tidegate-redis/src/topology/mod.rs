//! The topology: the single server, the primary that Sentinels report, or the owner of a slot.
//!
//! Each kind of deployment has a task that keeps its view current. Decisions use the view as it is, and never wait for
//! a discovery, except for the first one.

mod cluster;
mod sentinel;
mod slots;
mod view;

use std::sync::Arc;
use std::time::Duration;

use crate::dial::Dialer;
use crate::fault::Fault;
use crate::link::{Link, LinkContext, MemoryId};
use crate::options::Options;
use crate::url::{Address, Deployment};
use cluster::Cluster;
pub(crate) use cluster::ask_slots;
use sentinel::Sentinels;
pub(crate) use slots::SLOTS;
pub(crate) use view::ask_sentinel;

/// The minimum interval between two discoveries.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The servers that decide. The kind is fixed by the URL.
#[derive(Debug)]
pub(crate) enum Topology {
    /// A single server, whatever its role becomes.
    Standalone(Arc<Link>),
    /// The primary of a service with Sentinels.
    Sentinel(Arc<Sentinels>),
    /// The primaries of a cluster, by slot.
    Cluster(Arc<Cluster>),
}

/// The availability of the store, with a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    /// True if every server that decides is connected and accepts requests.
    pub(crate) is_up: bool,
    /// The description in one line, with a remedy if there is a fault.
    pub(crate) what: String,
}

impl Topology {
    /// Starts discovery, in tasks on the runtime of the trunk.
    pub(crate) fn new(options: &Options, trunk: &Arc<LinkContext>) -> Topology {
        match &options.url.place {
            Deployment::Standalone(address) => Topology::Standalone(Link::new(address.clone(), trunk)),
            Deployment::Sentinel { sentinels, service } => {
                let dialer = Dialer::for_sentinels(options);
                Topology::Sentinel(Sentinels::new((sentinels, service), dialer, trunk))
            }
            Deployment::Cluster(nodes) => Topology::Cluster(Cluster::new(nodes, trunk)),
        }
    }

    /// Returns true if keys of different slots may be on different servers.
    pub(crate) fn has_slots(&self) -> bool {
        matches!(self, Topology::Cluster(_))
    }

    /// Returns the link to the server of a slot. With Sentinels the slot is ignored. Fails if no server is known, with
    /// the reason.
    pub(crate) async fn link(&self, slot: u16) -> Result<Arc<Link>, Fault> {
        match self {
            Topology::Standalone(link) => Ok(link.clone()),
            Topology::Sentinel(sentinels) => sentinels.primary().await,
            Topology::Cluster(cluster) => cluster.owner(slot).await,
        }
    }

    /// Returns the identity of the memory of a slot, if its server is connected. It never waits. `None` means that
    /// nothing cached can be verified now.
    pub(crate) fn seat(&self, slot: u16) -> Option<MemoryId> {
        match self {
            Topology::Standalone(link) => link.seat(),
            Topology::Sentinel(sentinels) => sentinels.primary_now()?.seat(),
            Topology::Cluster(cluster) => cluster.owner_now(slot)?.seat(),
        }
    }

    /// Records that a slot has moved to a node, and returns its link. Returns `None` outside a cluster, where a
    /// redirection is a misconfiguration.
    pub(crate) fn moved(&self, slot: u16, to: &Address) -> Option<Arc<Link>> {
        match self {
            Topology::Cluster(cluster) => Some(cluster.moved(slot, to)),
            Topology::Standalone(_) | Topology::Sentinel(_) => None,
        }
    }

    /// Returns the link to a node for a single request. The slot map is not changed: `ASK` concerns one request only.
    pub(crate) fn node(&self, address: &Address) -> Option<Arc<Link>> {
        match self {
            Topology::Cluster(cluster) => Some(cluster.node(address)),
            Topology::Standalone(_) | Topology::Sentinel(_) => None,
        }
    }

    /// Resolves when the availability is known.
    pub(crate) async fn settled(&self) {
        match self {
            Topology::Standalone(link) => link.settled().await,
            Topology::Sentinel(sentinels) => sentinels.settled().await,
            Topology::Cluster(cluster) => cluster.settled().await,
        }
    }

    /// Returns the availability, from the state of the links. No request is sent.
    pub(crate) fn health(&self) -> Health {
        match self {
            Topology::Standalone(link) => health_of(link),
            Topology::Sentinel(sentinels) => sentinels.health(),
            Topology::Cluster(cluster) => cluster.health(),
        }
    }
}

/// Returns the availability of a single server.
fn health_of(link: &Link) -> Health {
    match link.why_not() {
        Some(what) => Health { is_up: false, what },
        None => Health { is_up: true, what: format!("{} answers", link.address) },
    }
}

/// Returns a pause with jitter. It is between half and one and a half times the given one, so that many processes do
/// not query at the same time.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64())
}
