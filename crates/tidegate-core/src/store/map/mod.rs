//! An in-memory store of whole keys and states of any size.
//!
//! A map is divided into shards, each with its own lock. There is no sweeper thread: every call checks a few entries
//! beside its own and drops those that are clear. Tables are resized a few entries at a time, so no call pays for a
//! sweep or a rehash. A map has a maximum number of keys and bytes. When it is full of live keys, new keys are denied
//! and the decision reports a full store. A live state is never evicted.

mod budget;
mod carry;
mod shard;
mod size;
mod states;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod together;

pub(crate) use together::{LockedShards, MapBid};

use std::fmt;
use std::sync::Arc;

use super::limit_table::LimitTable;
use super::receipts::Receipts;
use super::zone::memory::Flaw;
use super::zone::memory::states::StateFile;
use crate::sync::{AtomicUsize, CachePadded, Mutex};
use crate::time::{Clock, Source};
use budget::Budget;
use shard::Shard;

/// The default maximum number of keys.
const MAX_KEYS: usize = 1 << 20;
/// The default maximum number of bytes.
const MAX_BYTES: usize = 256 << 20;
/// The approximate number of keys per shard, from which the number of shards follows within these bounds.
const KEYS_PER_SHARD: usize = 1 << 14;
const FEWEST_SHARDS: usize = if cfg!(any(tidegate_models, miri)) { 2 } else { 64 };
const MOST_SHARDS: usize = 4096;
/// The fewest bytes that a state takes in a state file.
const LEAST_PER_STATE: usize = 128;

/// An in-memory store for whole keys and states of any algorithm; clones share it.
///
/// ```
/// use tidegate::{Limit, Limiter, Map};
///
/// let map = Map::new().max_keys(100_000);
/// let per_user = Limiter::on(&map, "user", Limit::per_second(10));
/// let per_ip = Limiter::on(&map, "ip", Limit::per_minute(600));
/// assert!(per_user.admit("ana").is_allowed());
/// assert!(per_ip.admit("ana").is_allowed()); // another namespace, another state
/// assert_eq!(map.keys(), 2);
/// ```
#[doc(alias = "hash map")]
#[doc(alias = "in-memory store")]
#[doc(alias = "DashMap")]
#[doc(alias = "bounded cache")]
#[derive(Clone)]
pub struct Map {
    inner: Arc<Inner>,
}

struct Inner {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    hashing: Hashing,
    clock: Source,
    budget: Budget,
    /// The limits that its namespaces have had.
    limits: Arc<LimitTable>,
    receipts: Receipts,
    /// The shard in which the next new key of a full map searches for room.
    next_searched: AtomicUsize,
}

/// `SipHash` under keys from the system, so that an attacker cannot choose colliding names.
#[cfg(not(tidegate_models))]
type Hashing = std::hash::RandomState;
/// A fixed hash: a model has to run the same way each time.
#[cfg(tidegate_models)]
type Hashing = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// The location of a key's state. All states of a key are in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateLocation {
    shard: usize,
    /// The hash of namespace and key.
    base: u64,
    /// The hash of the state.
    hash: u64,
}

impl StateLocation {
    /// Returns the hash of the state of the same key under the limit with this digest.
    fn hash_under(&self, limit: u64) -> u64 {
        self.base ^ limit
    }
}

impl Map {
    /// Creates an empty map for up to 1,048,576 keys and 256 MiB.
    pub fn new() -> Map {
        Map::build(Source::default(), Arc::new(LimitTable::new()), MAX_KEYS, MAX_BYTES)
    }

    /// Creates an empty map with another clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Map {
        Map::build(Source::Given(clock), Arc::new(LimitTable::new()), MAX_KEYS, MAX_BYTES)
    }

    /// Creates a new, empty map like this one, for at most `keys` keys. States of this map are not copied.
    #[must_use]
    pub fn max_keys(self, keys: usize) -> Map {
        Map::build(self.inner.clock.clone(), self.inner.limits.clone(), keys, self.inner.budget.max_bytes)
    }

    /// Creates a new, empty map like this one, for at most `bytes` bytes. States of this map are not copied.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Map {
        Map::build(self.inner.clock.clone(), self.inner.limits.clone(), self.inner.budget.max_keys, bytes)
    }

    /// Creates an empty map beside a zone, whose clock and limits it shares.
    pub(crate) fn beside(clock: Source, limits: Arc<LimitTable>) -> Map {
        Map::build(clock, limits, MAX_KEYS, MAX_BYTES)
    }

    /// Creates the map beside a zone in a file, with all states of the state file. Its size is that of the file.
    pub(crate) fn in_file(
        clock: Source,
        limits: Arc<LimitTable>,
        states: &Arc<StateFile>,
    ) -> Result<Map, Flaw> {
        let keys = states.bytes() / LEAST_PER_STATE;
        let map = Map::with_budget(clock, limits, Budget::of_file(Arc::clone(states)), keys);
        let (inner, now) = (&map.inner, map.inner.now());
        states.load(&mut |loaded| {
            let place = map.place_of(loaded.name, loaded.digest);
            // A clear state equals no state.
            !now.is_long_past(loaded.clear_at)
                && inner.shards[place.shard].0.lock().adopt(place.hash, loaded, now, &inner.budget)
        })?;
        states.note_whole();
        Ok(map)
    }

    /// Creates a map that has no room for any state, for a zone whose state file belongs to another process.
    pub(crate) fn without_room(clock: Source, limits: Arc<LimitTable>) -> Map {
        Map::build(clock, limits, 0, 0)
    }

    /// Returns the file in which its states survive, if they do.
    pub(crate) fn states(&self) -> Option<&StateFile> {
        self.inner.budget.states()
    }

    /// Returns the table of the limits that its namespaces have had.
    pub(crate) fn limits(&self) -> &Arc<LimitTable> {
        &self.inner.limits
    }

    fn build(clock: Source, limits: Arc<LimitTable>, max_keys: usize, max_bytes: usize) -> Map {
        Map::with_budget(clock, limits, Budget::new(max_keys, max_bytes), max_keys)
    }

    /// Creates a map with this budget, and shards for `keys` keys.
    fn with_budget(clock: Source, limits: Arc<LimitTable>, budget: Budget, keys: usize) -> Map {
        let shards = (keys / KEYS_PER_SHARD).clamp(FEWEST_SHARDS, MOST_SHARDS).next_power_of_two();
        let inner = Inner {
            shards: (0..shards).map(|_| CachePadded(Mutex::new(Shard::default()))).collect(),
            hashing: Hashing::default(),
            clock,
            budget,
            limits,
            receipts: Receipts::new(),
            next_searched: AtomicUsize::new(0),
        };
        Map { inner: Arc::new(inner) }
    }

    /// Returns the number of stored states, including clear ones that are not yet dropped.
    pub fn keys(&self) -> usize {
        self.inner.budget.keys()
    }

    /// Returns the bytes that keys, states and tables take.
    pub fn bytes(&self) -> usize {
        self.inner.budget.bytes()
    }
}

impl Default for Map {
    fn default() -> Map {
        Map::new()
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Map").field("keys", &self.keys()).field("bytes", &self.bytes()).finish()
    }
}
