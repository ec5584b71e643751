//! Those that are compared, with the same promise.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use governor::RateLimiter;
use throttlecrab::{AdaptiveStore, PeriodicStore, Store};
use tidegate::{Limiter, Map, Zone};

use super::side::{Keys, Side};
use crate::promise::{Crab, Promise};

pub(super) const EMPTY: &str = "(no decision: keys only)";
pub(super) const ZONE: &str = "tidegate Zone";
pub(super) const BATCHES_OF_16: &str = "tidegate Zone, batches of 16";
pub(super) const BATCHES_OF_64: &str = "tidegate Zone, batches of 64";
pub(super) const FILE: &str = "tidegate Zone in a file";
pub(super) const MAP: &str = "tidegate Map";
pub(super) const GOVERNOR: &str = "governor keyed, dashmap (its default)";

/// More at once than all rounds ask for, and never clear between two visits of a few keys.
pub(super) const FEW_KEYS: &str = "1000/1s burst 1000000000";
/// Far less than is asked for.
pub(super) const DENIED: &str = "10/1s burst 10";
/// More than all rounds ask for, and whoever was met stays live while many others are asked about.
pub(super) const MANY_KEYS: &str = "1/200s burst 1000000";

/// Bytes of a zone per key that it has to hold: those for which it is made.
pub(super) const BYTES_PER_KEY: usize = 24;
/// The smallest zone of a comparison.
const LEAST_BYTES: usize = 1 << 16;

/// A limiter on a new zone for so many keys.
pub(super) fn zone_for(keys: u32, promise: Promise) -> Limiter {
    on(&Zone::new(zone_bytes(keys)), promise)
}

pub(super) fn on(zone: &Zone, promise: Promise) -> Limiter {
    Limiter::on(zone, "user", promise.limit())
}

pub(super) fn zone_bytes(keys: u32) -> usize {
    (keys as usize * BYTES_PER_KEY).max(LEAST_BYTES)
}

/// Nobody, the zone, and those that are worth their memory also with very many keys.
pub(super) fn main_sides<'a>(zone: &Limiter, promise: Promise, count: u32, keys: Keys<'a>) -> Vec<Side<'a>> {
    let zone = zone.clone();
    let map = Map::new().max_keys(2 * count as usize).max_bytes(4 << 30);
    let map = Limiter::on(&map, "user", promise.limit());
    let governor = RateLimiter::dashmap(promise.quota());
    vec![
        Side::new(EMPTY, keys, |key| !black_box(key).is_empty()),
        Side::new(ZONE, keys, move |key| zone.admit(key).is_allowed()).meet(count),
        Side::new(MAP, keys, move |key| map.admit(key).is_allowed()).meet(count),
        Side::new(GOVERNOR, keys, move |key| governor.check_key(key).is_ok()).meet(count),
    ]
}

/// All others, behind the same keys. throttlecrab is behind a lock, as its documentation says, and its tables are
/// made for the keys.
pub(super) fn other_sides(promise: Promise, count: u32, keys: Keys<'_>) -> Vec<Side<'_>> {
    let governor = RateLimiter::hashmap(promise.quota());
    let adaptive = Mutex::new(promise.throttlecrab(AdaptiveStore::with_capacity(count as usize)));
    let periodic = Mutex::new(promise.throttlecrab(PeriodicStore::with_capacity(count as usize)));
    vec![
        Side::new("governor keyed, hashmap", keys, move |key| governor.check_key(key).is_ok()).meet(count),
        Side::new("throttlecrab adaptive, Mutex", keys, move |key| locked(&adaptive, key)).meet(count),
        Side::new("throttlecrab periodic, Mutex", keys, move |key| locked(&periodic, key)).meet(count),
    ]
}

fn locked<S: Store>(crab: &Mutex<Crab<S>>, key: &str) -> bool {
    crab.lock().unwrap_or_else(PoisonError::into_inner).is_allowed(key)
}
