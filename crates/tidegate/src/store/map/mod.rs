//! Whole keys and states of any size, in memory.
//!
//! A map is cut into shards, each behind its own lock. There is no sweeper thread: every call looks at a few
//! entries beside its own and drops those that are clear, and tables change their size a few entries at a
//! time, so no call pays for a sweep or a rehash. It holds at most so many keys and bytes; when it is full of
//! live keys, newcomers are refused and told so. Nothing live is ever forgotten.

mod accounts;
mod budget;
mod carry;
mod shard;
mod size;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod together;

pub(crate) use together::{Bid, Held};

use std::fmt;
use std::sync::Arc;

use super::limit_table::LimitTable;
use super::receipts::Receipts;
use super::zone::memory::Flaw;
use super::zone::memory::states::StateFile;
use crate::sync::{Apart, AtomicUsize, Mutex};
use crate::time::{Clock, Source};
use budget::Budget;
use shard::Shard;

/// The most keys of a map unless it is told otherwise.
const MAX_KEYS: usize = 1 << 20;
/// The most bytes of a map unless it is told otherwise.
const MAX_BYTES: usize = 256 << 20;
/// Shards are as many as keep each at about so many keys, within these bounds.
const KEYS_PER_SHARD: usize = 1 << 14;
const FEWEST_SHARDS: usize = if cfg!(any(tidegate_models, miri)) { 2 } else { 64 };
const MOST_SHARDS: usize = 4096;
/// No state takes fewer bytes of a state file.
const LEAST_PER_STATE: usize = 128;

/// A store in memory for whole keys and states of any algorithm; clones share it.
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
#[derive(Clone)]
pub struct Map {
    inner: Arc<Inner>,
}

struct Inner {
    shards: Box<[Apart<Mutex<Shard>>]>,
    hashing: Hashing,
    clock: Source,
    budget: Budget,
    /// The limits that its namespaces have had.
    limits: Arc<LimitTable>,
    receipts: Receipts,
    /// Where the next newcomer to a full map looks for room.
    next_searched: AtomicUsize,
}

/// `SipHash` under keys from the system, so that nobody can choose names that meet in one place.
#[cfg(not(tidegate_models))]
type Hashing = std::hash::RandomState;
/// A model has to run the same way each time.
#[cfg(tidegate_models)]
type Hashing = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Where the states of a key belong: all of them are in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    shard: usize,
    /// The hash of namespace and key.
    base: u64,
    /// The hash of the state.
    hash: u64,
}

impl Place {
    /// The hash of the state of the same key under the limit with this digest.
    fn hash_under(&self, limit: u64) -> u64 {
        self.base ^ limit
    }
}

impl Map {
    /// An empty map for up to 1,048,576 keys and 256 MiB.
    pub fn new() -> Map {
        Map::build(Source::default(), Arc::new(LimitTable::new()), MAX_KEYS, MAX_BYTES)
    }

    /// An empty map that decides by another clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Map {
        Map::build(Source::Given(clock), Arc::new(LimitTable::new()), MAX_KEYS, MAX_BYTES)
    }

    /// A new, empty map like this one, for so many keys.
    #[must_use]
    pub fn max_keys(self, keys: usize) -> Map {
        Map::build(self.inner.clock.clone(), self.inner.limits.clone(), keys, self.inner.budget.max_bytes)
    }

    /// A new, empty map like this one, for so many bytes.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Map {
        Map::build(self.inner.clock.clone(), self.inner.limits.clone(), self.inner.budget.max_keys, bytes)
    }

    /// An empty map beside a zone, whose clock and limits it shares.
    pub(crate) fn beside(clock: Source, limits: Arc<LimitTable>) -> Map {
        Map::build(clock, limits, MAX_KEYS, MAX_BYTES)
    }

    /// The map beside a zone in a file, with all states of the state file; it is as large as that.
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
            // What is clear is the same as none.
            !now.is_long_past(loaded.clear_at)
                && inner.shards[place.shard].0.lock().adopt(place.hash, loaded, now, &inner.budget)
        })?;
        states.note_whole();
        Ok(map)
    }

    /// A map that has no room for any state, for a zone whose state file belongs to another process.
    pub(crate) fn without_room(clock: Source, limits: Arc<LimitTable>) -> Map {
        Map::build(clock, limits, 0, 0)
    }

    /// The file in which its states survive, if they do.
    pub(crate) fn states(&self) -> Option<&StateFile> {
        self.inner.budget.states()
    }

    /// The table of the limits that its namespaces have had.
    pub(crate) fn limits(&self) -> &Arc<LimitTable> {
        &self.inner.limits
    }

    fn build(clock: Source, limits: Arc<LimitTable>, max_keys: usize, max_bytes: usize) -> Map {
        Map::with_budget(clock, limits, Budget::new(max_keys, max_bytes), max_keys)
    }

    /// A map of these bounds, with shards for so many keys.
    fn with_budget(clock: Source, limits: Arc<LimitTable>, budget: Budget, keys: usize) -> Map {
        let shards = (keys / KEYS_PER_SHARD).clamp(FEWEST_SHARDS, MOST_SHARDS).next_power_of_two();
        let inner = Inner {
            shards: (0..shards).map(|_| Apart(Mutex::new(Shard::default()))).collect(),
            hashing: Hashing::default(),
            clock,
            budget,
            limits,
            receipts: Receipts::new(),
            next_searched: AtomicUsize::new(0),
        };
        Map { inner: Arc::new(inner) }
    }

    /// How many subjects are remembered, those included that are clear and not yet dropped.
    pub fn keys(&self) -> usize {
        self.inner.budget.keys()
    }

    /// The bytes that keys, states and tables take.
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
