//! Where the counts of a policy are.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use tidegate::{Map, Memory, Store, Zone, Zones};

use crate::config::Bytes;
use crate::policy::{NamedZone, Policy};

/// A store that a gate can use: a [`Zone`] or a [`Map`] in memory, or any other [`Store`].
#[derive(Clone, Debug)]
pub struct GateStore(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Memory(Memory),
    Other(Arc<dyn Store>),
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

impl From<Arc<dyn Store>> for GateStore {
    fn from(store: Arc<dyn Store>) -> GateStore {
        GateStore(Kind::Other(store))
    }
}

/// The system has no memory for a zone of a policy.
#[derive(Debug)]
pub struct NoMemory {
    zone: NamedZone,
    cause: io::Error,
}

impl NoMemory {
    /// The zone that cannot be had.
    pub fn zone(&self) -> &NamedZone {
        &self.zone
    }
}

impl fmt::Display for NoMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bytes) = (&self.zone.name, Bytes(self.zone.bytes));
        write!(out, "zone {name:?}: the system has no {bytes} of memory for it; write a smaller size")
    }
}

impl Error for NoMemory {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// The store of a policy in force, with the zones that its rules name.
#[derive(Clone)]
pub(super) enum InStore {
    Memory { first: Memory, zones: Zones },
    Other(Arc<dyn Store>),
}

impl InStore {
    pub(super) fn new(store: &GateStore, policy: &Policy) -> Result<InStore, NoMemory> {
        match &store.0 {
            Kind::Memory(first) => InStore::with_zones(first, &Zones::new(first), policy),
            Kind::Other(store) => Ok(InStore::Other(store.clone())),
        }
    }

    /// The same for another policy; zones of the same name go on with what they hold, in the size they have.
    pub(super) fn under(&self, policy: &Policy) -> Result<InStore, NoMemory> {
        match self {
            InStore::Memory { first, zones } => InStore::with_zones(first, zones, policy),
            InStore::Other(store) => Ok(InStore::Other(store.clone())),
        }
    }

    /// What was made for another policy, with the zones that are here already.
    pub(super) fn going_on_as(&self, made: &InStore) -> InStore {
        match (self, made) {
            (InStore::Memory { first, zones: old }, InStore::Memory { zones: made, .. }) => {
                let zones = made.names().fold(Zones::new(first), |zones, name| {
                    let here = old.named(name).map_or(made, |_| old);
                    zones.with_that_of(here, name)
                });
                InStore::Memory { first: first.clone(), zones }
            }
            _ => made.clone(),
        }
    }

    fn with_zones(first: &Memory, old: &Zones, policy: &Policy) -> Result<InStore, NoMemory> {
        let zones = policy.zones().iter().try_fold(Zones::new(first), |zones, zone| {
            if old.named(&zone.name).is_some() {
                return Ok(zones.with_that_of(old, &zone.name));
            }
            zones.with(&zone.name, zone.bytes).map_err(|cause| NoMemory { zone: zone.clone(), cause })
        })?;
        Ok(InStore::Memory { first: first.clone(), zones })
    }

    pub(super) fn store(&self) -> &dyn Store {
        match self {
            InStore::Memory { zones, .. } => zones,
            InStore::Other(store) => &**store,
        }
    }

    pub(super) fn zones(&self) -> Vec<(String, Zone)> {
        match self {
            InStore::Memory { zones, .. } => {
                zones.names().filter_map(|name| Some((name.to_owned(), zones.named(name)?.clone()))).collect()
            }
            InStore::Other(_) => Vec::new(),
        }
    }
}

impl fmt::Debug for InStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store().fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gate;
    use super::*;
    use crate::attributes::Attributes;
    use crate::seen::Slots;

    #[test]
    fn a_zone_that_cannot_be_had_leaves_the_policy_in_force() {
        let text = "[[rule]]\nname = 'a'\nlimit = '1/h'\n";
        let gate = Gate::new(Policy::from_toml(text).unwrap(), Zone::new(1 << 16));
        let zone = NamedZone { name: "large".into(), bytes: 1 << 60 };
        let policy = || Policy::new(Vec::new(), vec![zone.clone()], Slots::default());
        let error = gate.replace(policy()).expect_err("no machine has that much");
        assert_eq!(
            error.to_string(),
            "zone \"large\": the system has no 1073741824 GiB of memory for it; write a smaller size"
        );
        assert_eq!(error.zone(), &zone);
        assert_eq!((gate.with_policy(|policy| policy.rules().len()), gate.zones().len()), (1, 0));
        assert!(gate.admit_now(&Attributes::new()).is_ok_and(|answer| answer.is_allowed()));
        assert!(InStore::new(&Zone::new(1 << 16).into(), &policy()).is_err());
    }

    #[test]
    fn zones_that_came_in_between_go_on_with_what_they_hold() {
        let text = "[zone.z]\nsize = '64KiB'\n[[rule]]\nname = 'a'\nlimit = '1/h'\nzone = 'z'\n";
        let policy = || Policy::from_toml(text).unwrap();
        let gate = Gate::new(Policy::default(), Zone::new(1 << 16));
        let prepared = gate.prepare(policy()).unwrap();
        gate.replace(policy()).unwrap();
        assert!(gate.admit_now(&Attributes::new()).is_ok_and(|answer| answer.is_allowed()));
        prepared.put_in_force();
        assert!(gate.admit_now(&Attributes::new()).is_ok_and(|answer| !answer.is_allowed()));
    }
}
