//! Who is to be asked: the one server, the primary that Sentinels name, or the owner of a slot.

mod cluster;
mod sentinel;
mod slots;
mod view;

use std::sync::Arc;
use std::time::Duration;

use crate::dial::Dialer;
use crate::fault::Fault;
use crate::link::{Link, Seat, Trunk};
use crate::options::Options;
use crate::url::{Address, Place};
use cluster::Cluster;
pub(crate) use cluster::ask_slots;
use sentinel::Sentinels;
pub(crate) use slots::SLOTS;
pub(crate) use view::ask_sentinel;

/// The shortest time between two looks at who is who.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Who is to be asked.
#[derive(Debug)]
pub(crate) enum Topology {
    Standalone(Arc<Link>),
    Sentinel(Arc<Sentinels>),
    Cluster(Arc<Cluster>),
}

/// Whether decisions can be had, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) is_up: bool,
    pub(crate) what: String,
}

impl Topology {
    /// Begins to find out. Needs to be called where tasks can run.
    pub(crate) fn new(options: &Options, trunk: &Arc<Trunk>) -> Topology {
        match &options.url.place {
            Place::Standalone(address) => Topology::Standalone(Link::new(address.clone(), trunk)),
            Place::Sentinel { sentinels, service } => {
                let dialer = Dialer::for_sentinels(options);
                Topology::Sentinel(Sentinels::new((sentinels, service), dialer, trunk))
            }
            Place::Cluster(nodes) => Topology::Cluster(Cluster::new(nodes, trunk)),
        }
    }

    /// Whether keys of different slots are in different hands.
    pub(crate) fn has_slots(&self) -> bool {
        matches!(self, Topology::Cluster(_))
    }

    /// Who has a slot.
    pub(crate) async fn link(&self, slot: u16) -> Result<Arc<Link>, Fault> {
        match self {
            Topology::Standalone(link) => Ok(link.clone()),
            Topology::Sentinel(sentinels) => sentinels.primary().await,
            Topology::Cluster(cluster) => cluster.owner(slot).await,
        }
    }

    /// The memory that a slot is in now, if its server is connected.
    pub(crate) fn seat(&self, slot: u16) -> Option<Seat> {
        match self {
            Topology::Standalone(link) => link.seat(),
            Topology::Sentinel(sentinels) => sentinels.primary_now()?.seat(),
            Topology::Cluster(cluster) => cluster.owner_now(slot)?.seat(),
        }
    }

    /// A slot has moved to a node.
    pub(crate) fn moved(&self, slot: u16, to: &Address) -> Option<Arc<Link>> {
        match self {
            Topology::Cluster(cluster) => Some(cluster.moved(slot, to)),
            Topology::Standalone(_) | Topology::Sentinel(_) => None,
        }
    }

    /// A node that is to be asked once.
    pub(crate) fn node(&self, address: &Address) -> Option<Arc<Link>> {
        match self {
            Topology::Cluster(cluster) => Some(cluster.node(address)),
            Topology::Standalone(_) | Topology::Sentinel(_) => None,
        }
    }

    /// Resolves when it is known whether decisions can be had.
    pub(crate) async fn settled(&self) {
        match self {
            Topology::Standalone(link) => link.settled().await,
            Topology::Sentinel(sentinels) => sentinels.settled().await,
            Topology::Cluster(cluster) => cluster.settled().await,
        }
    }

    pub(crate) fn health(&self) -> Health {
        match self {
            Topology::Standalone(link) => health_of(link),
            Topology::Sentinel(sentinels) => sentinels.health(),
            Topology::Cluster(cluster) => cluster.health(),
        }
    }
}

fn health_of(link: &Link) -> Health {
    match link.why_not() {
        Some(what) => Health { is_up: false, what },
        None => Health { is_up: true, what: format!("{} answers", link.address) },
    }
}

/// A pause that is another one each time.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64())
}
