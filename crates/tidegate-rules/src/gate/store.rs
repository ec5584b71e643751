//! Where the counts of a policy are.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use tidegate::{Answer, Ask, Decisions, Map, Memory, Store, Subject, Timestamp, Zone, Zones};

use super::admission::DecidedBy;
use super::elsewhere::{Draft, Elsewhere, Local};
use super::unfit::{NoMemory, Unfit};
use crate::policy::Policy;

/// A store that a gate can use: a [`Zone`] or a [`Map`] in memory, or any other [`Store`] elsewhere, which may fail.
///
/// ```
/// use std::num::NonZeroU64;
/// use std::sync::Arc;
/// use tidegate::Map;
/// use tidegate_rules::{Gate, GateStore, Policy};
///
/// let shared = Arc::new(Map::new()); // in place of a store that other nodes reach as well
/// let three = NonZeroU64::new(3).expect("not zero");
/// let store = GateStore::elsewhere(shared).named("redis").nodes(three).local_bytes(1 << 20);
/// let gate = Gate::new(Policy::from_toml("[[rule]]\nname = 'site'\nlimit = '30/s'")?, store);
/// # Ok::<(), tidegate_rules::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GateStore(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Memory(Memory),
    Elsewhere(Draft),
}

/// What there is to say about a store elsewhere; memory does not fail, and none of it matters there.
impl GateStore {
    /// A store that may take a while and may fail. Then each rule has its own way to go on, as it says in
    /// `on_store_failure`.
    pub fn elsewhere(store: Arc<dyn Store>) -> GateStore {
        GateStore(Kind::Elsewhere(Draft::new(store)))
    }

    /// How many nodes share it; 1 unless set. While it fails, each of them decides by
    /// [its share](tidegate::Limit::shared_among) of a rule's limit.
    #[must_use]
    pub fn nodes(self, nodes: NonZeroU64) -> GateStore {
        self.with(|draft| draft.nodes = nodes)
    }

    /// How much memory there is for what is decided without the store; [`LOCAL_BYTES`](crate::LOCAL_BYTES) unless set.
    #[must_use]
    pub fn local_bytes(self, bytes: usize) -> GateStore {
        self.with(|draft| draft.local = Local::Bytes(bytes))
    }

    /// Memory that is there already, for what is decided without the store.
    #[must_use]
    pub fn local_in(self, memory: impl Into<Memory>) -> GateStore {
        self.with(|draft| draft.local = Local::Given(memory.into()))
    }

    /// What it is called where an answer says who decided.
    #[must_use]
    pub fn named(self, name: &'static str) -> GateStore {
        self.with(|draft| draft.name = name)
    }

    fn with(mut self, change: impl FnOnce(&mut Draft)) -> GateStore {
        if let Kind::Elsewhere(draft) = &mut self.0 {
            change(draft);
        }
        self
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

impl From<Arc<dyn Store>> for GateStore {
    fn from(store: Arc<dyn Store>) -> GateStore {
        GateStore::elsewhere(store)
    }
}

impl<S: Store + 'static> From<Arc<S>> for GateStore {
    fn from(store: Arc<S>) -> GateStore {
        GateStore::elsewhere(store)
    }
}

/// The store of a policy in force, with the zones that its rules name.
#[derive(Clone)]
pub(super) enum InStore {
    Memory { first: Memory, zones: Zones },
    Elsewhere(Elsewhere),
}

impl InStore {
    pub(super) fn new(store: &GateStore, policy: &Policy) -> Result<InStore, Unfit> {
        match &store.0 {
            Kind::Memory(first) => InStore::with_zones(first, &Zones::new(first), policy),
            Kind::Elsewhere(draft) => {
                Unfit::unless_supported(&*draft.store, policy)?;
                Ok(InStore::Elsewhere(Elsewhere::new(draft)?))
            }
        }
    }

    /// The same for another policy; zones of the same name go on with what they hold, in the size they have.
    pub(super) fn under(&self, policy: &Policy) -> Result<InStore, Unfit> {
        match self {
            InStore::Memory { first, zones } => InStore::with_zones(first, zones, policy),
            InStore::Elsewhere(elsewhere) => {
                Unfit::unless_supported(&*elsewhere.store, policy)?;
                Ok(self.clone())
            }
        }
    }

    /// What was made for another policy, with the zones that are here already.
    pub(super) fn going_on_as(&self, made: &InStore) -> InStore {
        match (self, made) {
            (InStore::Memory { first, zones: old }, InStore::Memory { zones: made, .. }) => {
                let zones = made.names().fold(Zones::new(first), |zones, name| {
                    let here = if goes_on(old, name) { old } else { made };
                    zones.with_that_of(here, name)
                });
                InStore::Memory { first: first.clone(), zones }
            }
            _ => made.clone(),
        }
    }

    fn with_zones(first: &Memory, old: &Zones, policy: &Policy) -> Result<InStore, Unfit> {
        let zones = policy.zones().iter().try_fold(Zones::new(first), |zones, zone| {
            if goes_on(old, &zone.name) {
                return Ok(zones.with_that_of(old, &zone.name));
            }
            zones.with(&zone.name, zone.bytes).map_err(|cause| NoMemory { zone: zone.clone(), cause })
        })?;
        Unfit::unless_kept(&zones, policy)?;
        Ok(InStore::Memory { first: first.clone(), zones })
    }

    pub(super) fn store(&self) -> &dyn Store {
        match self {
            InStore::Memory { zones, .. } => zones,
            InStore::Elsewhere(elsewhere) => &*elsewhere.store,
        }
    }

    /// The time by the clock of a store in memory; a remote one reads its own for each take.
    pub(super) fn now(&self) -> Option<Timestamp> {
        match self {
            InStore::Memory { zones, .. } => Some(zones.now()),
            InStore::Elsewhere(_) => None,
        }
    }

    /// Takes all or none; in memory as of this time, if there is one.
    pub(super) fn take<'a>(
        &'a self,
        asks: &'a [(Subject<'a>, Ask)],
        at: Option<Timestamp>,
    ) -> Answer<'a, Decisions> {
        match (self, at) {
            (InStore::Memory { zones, .. }, Some(at)) => Answer::ready(zones.take_all_as_of(at, asks)),
            _ => self.store().take(asks),
        }
    }

    /// The store in memory, if it is one.
    pub(super) fn zones_in_memory(&self) -> Option<&Zones> {
        match self {
            InStore::Memory { zones, .. } => Some(zones),
            InStore::Elsewhere(_) => None,
        }
    }

    /// The store that may fail, if it is one.
    pub(super) fn elsewhere(&self) -> Option<&Elsewhere> {
        match self {
            InStore::Memory { .. } => None,
            InStore::Elsewhere(elsewhere) => Some(elsewhere),
        }
    }

    /// Who decides as long as it answers.
    pub(super) fn decided_by(&self) -> DecidedBy {
        self.elsewhere().map_or(DecidedBy::Memory, |elsewhere| DecidedBy::Store(elsewhere.name))
    }

    pub(super) fn zones(&self) -> Vec<(String, Zone)> {
        match self {
            InStore::Memory { zones, .. } => {
                zones.names().filter_map(|name| Some((name.to_owned(), zones.named(name)?.clone()))).collect()
            }
            InStore::Elsewhere(_) => Vec::new(),
        }
    }
}

/// Returns true if a zone of this name is here and owns its states. One that was opened while another handle had its state
/// file is opened again: that handle may be gone.
fn goes_on(zones: &Zones, name: &str) -> bool {
    zones.named(name).is_some_and(|zone| zone.states_owned_by().is_none())
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
    use crate::policy::NamedZone;
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
        assert!(matches!(error, Unfit::NoMemory(error) if error.zone() == &zone));
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
