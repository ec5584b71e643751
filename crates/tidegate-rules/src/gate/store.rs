//! The store of a policy in force.
//!
//! A gate has one store for all rules, and one zone for each name in its policy. With a remote store the names of zones
//! have no effect: the remote store decides where it keeps its keys.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{
    Ask, Decisions, FallbackStore, Map, MemoryStore, Store, StoreFuture, Subject, Timestamp, Zone, Zones,
};

use super::unsupported::{NoMemory, UnsupportedPolicy};
use crate::policy::Policy;

/// A store that a gate can use: a [`Zone`] or a [`Map`] in memory, or a remote store with a fallback, which each rule
/// chooses by its `on_store_failure`.
///
/// ```
/// use std::num::NonZeroU64;
/// use std::sync::Arc;
/// use tidegate::{FallbackStore, Map, Zone};
/// use tidegate::rules::{Gate, Policy};
///
/// let remote = Arc::new(Map::new()); // in place of a store that other nodes reach as well
/// let three = NonZeroU64::new(3).expect("not zero");
/// let store = FallbackStore::new(remote, &Zone::new(1 << 20)).nodes(three);
/// let gate = Gate::new(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '30/s'")?, store)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A program rarely names it: every constructor of a gate accepts the stores themselves.
#[derive(Clone, Debug)]
pub struct GateStore(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Memory(MemoryStore),
    Remote(FallbackStore),
}

impl From<FallbackStore> for GateStore {
    fn from(store: FallbackStore) -> GateStore {
        GateStore(Kind::Remote(store))
    }
}

impl From<&Zone> for GateStore {
    fn from(zone: &Zone) -> GateStore {
        GateStore(Kind::Memory(zone.into()))
    }
}

impl From<Zone> for GateStore {
    fn from(zone: Zone) -> GateStore {
        GateStore::from(&zone)
    }
}

impl From<&Map> for GateStore {
    fn from(map: &Map) -> GateStore {
        GateStore(Kind::Memory(map.into()))
    }
}

impl From<Map> for GateStore {
    fn from(map: Map) -> GateStore {
        GateStore::from(&map)
    }
}

/// The store of a policy in force.
#[derive(Clone)]
pub(super) struct InStore {
    store: Arc<dyn Store>,
    /// The same store with the zones that rules name, if it is in memory.
    memory: Option<InMemory>,
}

#[derive(Clone)]
struct InMemory {
    first: MemoryStore,
    zones: Zones,
}

impl InStore {
    /// Creates the store of the first policy, with all zones that it names.
    pub(super) fn new(store: &GateStore, policy: &Policy) -> Result<InStore, UnsupportedPolicy> {
        match &store.0 {
            Kind::Memory(first) => InStore::with_zones(first, &Zones::new(first), policy),
            Kind::Remote(store) => InStore { store: Arc::new(store.clone()), memory: None }.under(policy),
        }
    }

    /// Returns the store for another policy. Zones of the same name keep their contents and their size.
    pub(super) fn under(&self, policy: &Policy) -> Result<InStore, UnsupportedPolicy> {
        match &self.memory {
            Some(InMemory { first, zones }) => InStore::with_zones(first, zones, policy),
            None => {
                UnsupportedPolicy::unless_supported(&*self.store, policy)?;
                Ok(self.clone())
            }
        }
    }

    /// Returns the store made for another policy, with the zones that exist already.
    pub(super) fn going_on_as(&self, made: &InStore) -> InStore {
        match (&self.memory, &made.memory) {
            (Some(InMemory { first, zones: old }), Some(InMemory { zones: made, .. })) => {
                let zones = made.names().fold(Zones::new(first), |zones, name| {
                    let here = if goes_on(old, name) { old } else { made };
                    zones.with_that_of(here, name)
                });
                InStore::in_memory(first, zones)
            }
            _ => made.clone(),
        }
    }

    /// Zones of the same name are reused with their size; the others are created, which may fail for lack of memory.
    fn with_zones(first: &MemoryStore, old: &Zones, policy: &Policy) -> Result<InStore, UnsupportedPolicy> {
        let zones = policy.zones().iter().try_fold(Zones::new(first), |zones, zone| {
            if goes_on(old, &zone.name) {
                return Ok(zones.with_that_of(old, &zone.name));
            }
            zones.with(&zone.name, zone.bytes).map_err(|cause| NoMemory { zone: zone.clone(), cause })
        })?;
        UnsupportedPolicy::unless_kept(&zones, policy)?;
        Ok(InStore::in_memory(first, zones))
    }

    fn in_memory(first: &MemoryStore, zones: Zones) -> InStore {
        let (store, first) = (Arc::new(zones.clone()), first.clone());
        InStore { store, memory: Some(InMemory { first, zones }) }
    }

    /// Returns the store for everything but the fast path of an in-memory decision.
    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns true if the store answers immediately and cannot fail.
    pub(super) fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the time by the clock of an in-memory store. A remote store reads its own clock for each take.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.memory.as_ref().map(|memory| memory.zones.now())
    }

    /// Takes all or none. An in-memory store decides as of this time, if it is given.
    pub(super) fn take<'a>(
        &'a self,
        asks: &'a [(Subject<'a>, Ask)],
        at: Option<Timestamp>,
    ) -> StoreFuture<'a, Decisions> {
        match (self.memory(), at) {
            (Some(zones), Some(at)) => StoreFuture::ready(zones.take_all_as_of(at, asks)),
            _ => self.store.take(asks),
        }
    }

    /// Returns the store, if it is in memory.
    #[inline]
    pub(super) fn memory(&self) -> Option<&Zones> {
        self.memory.as_ref().map(|memory| &memory.zones)
    }

    /// Returns the zones that rules name, without the first one. A remote store has none.
    pub(super) fn zones(&self) -> Vec<(String, Zone)> {
        let Some(InMemory { zones, .. }) = &self.memory else { return Vec::new() };
        zones.names().filter_map(|name| Some((name.to_owned(), zones.named(name)?.clone()))).collect()
    }
}

/// Returns true if a zone of this name exists and owns its states. A zone that was opened while another handle owned
/// its state file is opened again, because that handle may be closed by now.
fn goes_on(zones: &Zones, name: &str) -> bool {
    zones.named(name).is_some_and(|zone| zone.states_owned_by().is_none())
}

impl fmt::Debug for InStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gate;
    use super::*;
    use crate::attributes::Attributes;
    use crate::normalized::Slots;
    use crate::policy::NamedZone;
    use crate::rule::StaticVerdict;

    #[test]
    fn a_zone_that_cannot_be_had_leaves_the_policy_in_force() {
        let text = "[[rule]]\nname = 'a'\nlimit = '1/h'\n";
        let gate = Gate::new(Policy::from_toml(text).unwrap(), Zone::new(1 << 16))
            .expect("the store supports the policy");
        let zone = NamedZone { name: "large".into(), bytes: 1 << 60 };
        let policy = || Policy::new(Vec::new(), vec![zone.clone()], Slots::default(), StaticVerdict::Allow);
        let error = gate.replace(policy()).expect_err("no machine has that much");
        assert_eq!(
            error.to_string(),
            "zone \"large\": the system has no 1073741824 GiB of memory for it; write a smaller size"
        );
        assert!(matches!(error, UnsupportedPolicy::NoMemory(error) if error.zone() == &zone));
        assert_eq!((gate.with_policy(|policy| policy.rules().len()), gate.zones().len()), (1, 0));
        assert!(gate.admit(&Attributes::new()).now().is_ok_and(|answer| answer.is_allowed()));
        assert!(InStore::new(&Zone::new(1 << 16).into(), &policy()).is_err());
    }

    #[test]
    fn zones_that_came_in_between_go_on_with_what_they_hold() {
        let text = "[zone.z]\nsize = '64KiB'\n[[rule]]\nname = 'a'\nlimit = '1/h'\nzone = 'z'\n";
        let policy = || Policy::from_toml(text).unwrap();
        let gate = Gate::new(Policy::default(), Zone::new(1 << 16)).expect("the store supports the policy");
        let prepared = gate.prepare(policy()).unwrap();
        gate.replace(policy()).unwrap();
        assert!(gate.admit(&Attributes::new()).now().is_ok_and(|answer| answer.is_allowed()));
        prepared.put_in_force();
        assert!(gate.admit(&Attributes::new()).now().is_ok_and(|answer| !answer.is_allowed()));
    }
}
