//! Helpers for tests: a valid policy, a clock that stands still, an immediate decision.

use std::sync::Arc;

use tidegate::{ManualClock, Map, Zone};
use tidegate_rules::{Admission, Attributes, Gate, GateStore, Policy};

/// Parses a valid policy.
pub(crate) fn policy(text: &str) -> Policy {
    Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}\nin\n{text}"))
}

/// Creates a zone whose clock stands still until it is moved.
pub(crate) fn still_zone() -> (Zone, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Zone::with_clock(1 << 20, clock.clone()), clock)
}

/// Returns each kind of store, with its clock.
pub(crate) fn stores() -> [(&'static str, GateStore, Arc<ManualClock>); 2] {
    let (zone, of_zone) = still_zone();
    let of_map = Arc::new(ManualClock::new());
    let map = Map::with_clock(of_map.clone());
    [("zone", zone.into(), of_zone), ("map", map.into(), of_map)]
}

/// Creates a gate whose clock stands still.
pub(crate) fn still_gate(text: &str) -> Gate {
    Gate::new(policy(text), still_zone().0).expect("the store supports the policy")
}

/// Returns the admission of a gate with an in-memory store.
pub(crate) fn admit(gate: &Gate, request: &Attributes<'_>) -> Admission {
    gate.admit(request).now().expect("a store in memory answers at once")
}

/// Returns the remaining quota of a rule for a request.
pub(crate) fn remaining(gate: &Gate, rule: &str, request: &Attributes<'_>) -> u64 {
    let explained = gate.explain(request).now().expect("a store in memory answers at once");
    let explained = explained
        .rules
        .into_iter()
        .find(|explained| explained.rule.name() == rule)
        .expect("there is such a rule");
    explained.decision.expect("it counts").remaining()
}
