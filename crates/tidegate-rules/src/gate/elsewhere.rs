//! A store that several nodes share, and what this node has of its own for when it fails.

use std::num::NonZeroU64;
use std::sync::Arc;

use tidegate::{Map, Memory, Store, Zones};

use super::unfit::NoMemory;
use crate::policy::NamedZone;

/// The memory for what is decided without the store, in bytes, unless it is told otherwise. States of more than one
/// word take at most as much again.
pub const LOCAL_BYTES: usize = 16 << 20;
/// What a store is called that has no name.
const UNNAMED: &str = "store";
/// What the memory for decisions without the store is called.
const LOCAL: &str = "local";

/// What was said about a store elsewhere, before there is memory beside it.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) store: Arc<dyn Store>,
    pub(super) name: &'static str,
    pub(super) nodes: NonZeroU64,
    pub(super) local: Local,
}

/// Where this node counts by itself.
#[derive(Clone, Debug)]
pub(super) enum Local {
    Bytes(usize),
    Given(Memory),
}

impl Draft {
    pub(super) fn new(store: Arc<dyn Store>) -> Draft {
        Draft { store, name: UNNAMED, nodes: NonZeroU64::MIN, local: Local::Bytes(LOCAL_BYTES) }
    }
}

/// A store that several nodes share, with memory of this one beside it; clones share both.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    pub(super) store: Arc<dyn Store>,
    pub(super) name: &'static str,
    pub(super) nodes: NonZeroU64,
    pub(super) local: Zones,
}

impl Elsewhere {
    pub(super) fn new(draft: &Draft) -> Result<Elsewhere, NoMemory> {
        let local = match &draft.local {
            Local::Given(memory) => Zones::new(memory),
            Local::Bytes(bytes) => {
                let zone = || NamedZone { name: LOCAL.into(), bytes: *bytes };
                let no_memory = |cause| NoMemory { zone: zone(), cause };
                // A zone beside another store has its name, and a bound for what needs more than a word.
                let beside = Zones::new(&Map::new()).with(LOCAL, *bytes).map_err(no_memory)?;
                beside.named(LOCAL).map_or_else(|| beside.clone(), Zones::new)
            }
        };
        Ok(Elsewhere { store: draft.store.clone(), name: draft.name, nodes: draft.nodes, local })
    }
}
