//! A cache of denials: keys that are certain to be denied until a known time.
//!
//! A key in the cache is denied again without a call until that time. The denial is certain as long as the server keeps
//! its data and no units are returned. A new connection and a reported flush end it, and so do resets and refunds
//! through this store. Those through another store are noticed within [`LONGEST`]. Two kinds of denials are never
//! cached: those that the server has to count (`count-denied`), and those of permits, which may be released at any
//! time.
//!
//! A cached debt decides about any ask, because the debt can only have grown. A fixed window has at most the remaining
//! quota that it had. For the other algorithms only the same ask is certain; otherwise the reported values would not be
//! exact.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_core::algorithm::{Decide as _, LeakyBucket, TokenBucket};
use tidegate_core::{
    Algorithm, Ask, Clock as _, CounterClock, Decision, Limit, SECOND, Ticks, Timestamp, Verdict,
};

use crate::link::MemoryId;

/// The number of shards, each with its own lock.
const SHARDS: usize = 16;
/// The maximum number of denials in a shard.
const MOST_PER_SHARD: usize = 4096;
/// The maximum number of pending requests per shard. Dropped requests never report an end, so beyond this number all
/// are removed.
const MOST_ASKED: usize = 4096;
/// The maximum length of a name. Longer names are not cached, so that the total size is bounded.
const LONGEST_NAME: usize = 256;
/// The minimum interval between two sweeps of a full shard for expired entries.
const BETWEEN_SWEEPS: Ticks = Ticks::saturating_from(SECOND);
/// The longest time for which a denial is cached, because another store may have reset the key.
const LONGEST: Ticks = Ticks::saturating_from(SECOND.saturating_mul(10));
/// The same limit across slots, where another caller may give back a take.
const LONGEST_ACROSS_SLOTS: Ticks = Ticks::saturating_from(SECOND);

/// The cache of denials, by the name of the state. Its size is bounded: 65,536 entries with names of at most 256 bytes.
/// A full shard caches nothing more until entries expire.
#[doc(alias = "negative cache")]
#[derive(Debug)]
pub(crate) struct DenialCache {
    /// The shards, chosen by the upper half of the hash.
    shards: Box<[Mutex<Shard>]>,
    /// The seeded hasher of names.
    hasher: RandomState,
    /// The local clock. The server's clock is not needed: only waits are cached, never times.
    clock: CounterClock,
    /// The longest time for which a denial is cached.
    longest: Ticks,
}

/// A part of the cache with its own lock.
#[derive(Debug, Default)]
struct Shard {
    /// The denials by the hash of the name.
    known: ByHash<KnownDenial>,
    /// The epoch, incremented whenever an entry is removed. A reply to a request from an earlier epoch is not cached.
    era: u64,
    /// The number of the last request about each name in flight, by the hash of the name. Only its reply is cached.
    asked: ByHash<u64>,
    /// The number of requests so far.
    questions: u64,
    /// The time of the last sweep.
    swept_at: Timestamp,
}

/// A map by hashes of names, which are not hashed again.
type ByHash<T> = HashMap<u64, T, BuildHasherDefault<OwnHash>>;

/// A hasher for a number that is a hash already.
#[derive(Debug, Default)]
struct OwnHash(u64);

impl Hasher for OwnHash {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A cached denial.
#[derive(Debug)]
struct KnownDenial {
    /// The full name, compared on each lookup: a hash may collide.
    name: Box<[u8]>,
    /// The limit that denied.
    limit: Limit,
    /// The ask that was denied.
    ask: Ask,
    /// The reported decision.
    decision: Decision,
    lasting: Lasting,
    /// The time of the request. The server decided later, so a certain denial ends no later than this implies.
    asked_at: Timestamp,
    /// The time of the reply. The server decided earlier, so a wait that starts then is long enough.
    known_at: Timestamp,
    /// The time until which the entry may be used.
    until: Timestamp,
    /// The epoch of the server's memory that the reply came from.
    seat: Option<MemoryId>,
}

/// The scope in which a denial can be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// The denial describes the whole state, so it is certain for other asks too.
    AnyAsk,
    /// Counts of previous limits affect the denial, so only the same ask is certain.
    SameAsk,
    /// The denial is about several asks for one state.
    Never,
}

/// The state of the cache at the time of a request, needed to cache its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheEpoch {
    /// The hash of the name.
    hash: u64,
    /// The epoch of the shard.
    number: u64,
    /// The number of the request.
    asked: u64,
    /// The time of the request.
    asked_at: Timestamp,
    seat: Option<MemoryId>,
}

impl DenialCache {
    pub(crate) fn new() -> DenialCache {
        DenialCache::remembering_for(LONGEST)
    }

    /// Creates a cache for a cluster, where a denial may result from a take that was given back.
    pub(crate) fn across_slots() -> DenialCache {
        DenialCache::remembering_for(LONGEST_ACROSS_SLOTS)
    }

    /// Creates a cache with this bound on the age of entries.
    fn remembering_for(longest: Ticks) -> DenialCache {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        DenialCache { shards, hasher: RandomState::new(), clock: CounterClock::new(), longest }
    }

    /// Returns the certain denial, if there is one, and the epoch with which the reply can be cached. `seat` identifies
    /// the server memory that would be used now. While there is none, cached entries stay valid.
    pub(crate) fn certain(
        &self,
        name: &[u8],
        limit: &Limit,
        ask: Ask,
        seat: Option<MemoryId>,
    ) -> (Option<Decision>, CacheEpoch) {
        let (now, hash) = (self.clock.now(), self.hasher.hash_one(name));
        let mut shard = self.shard(hash);
        let era = CacheEpoch { hash, number: shard.era, asked: 0, asked_at: now, seat };
        let Some(known) = shard.known.get(&hash).filter(|known| *known.name == *name) else {
            return (None, era);
        };
        if now >= known.until || seat.is_some_and(|seat| known.seat != Some(seat)) {
            shard.known.remove(&hash);
            return (None, era);
        }
        (known.refusal(limit, ask, now), era)
    }

    /// Records a request about this state, which the reply may change. The cached entry is removed, and only the reply
    /// to the last of several requests is cached.
    pub(crate) fn asks(&self, era: &mut CacheEpoch) {
        let mut shard = self.shard(era.hash);
        shard.known.remove(&era.hash);
        if shard.asked.len() >= MOST_ASKED {
            shard.asked.clear();
        }
        shard.questions += 1;
        era.asked = shard.questions;
        shard.asked.insert(era.hash, era.asked);
    }

    /// Caches a denial, unless the epoch has changed since the request or a later request about the name is in flight.
    pub(crate) fn note(
        &self,
        name: &[u8],
        (limit, ask): (&Limit, Ask),
        (decision, era): (&Decision, CacheEpoch),
        lasting: Lasting,
    ) {
        let mut shard = self.shard(era.hash);
        let is_last = shard.asked.get(&era.hash) == Some(&era.asked);
        if is_last {
            shard.asked.remove(&era.hash);
        }
        let Verdict::Denied { retry_after } = decision.verdict_in_ticks() else { return };
        let is_unsure = limit.algorithm() == Algorithm::Concurrency || limit.counts_denied();
        if is_unsure || lasting == Lasting::Never || name.len() > LONGEST_NAME {
            return;
        }
        let known_at = self.clock.now();
        let until = era.asked_at.saturating_add(retry_after.min(self.longest));
        let is_last = is_last && shard.era == era.number;
        if until > known_at && is_last && shard.has_room(known_at) {
            let (name, limit, decision, CacheEpoch { asked_at, seat, .. }) =
                (name.into(), *limit, *decision, era);
            let known = KnownDenial { name, limit, ask, decision, lasting, asked_at, known_at, until, seat };
            shard.known.insert(era.hash, known);
        }
    }

    /// Removes one key.
    pub(crate) fn forget(&self, name: &[u8]) {
        let hash = self.hasher.hash_one(name);
        let mut shard = self.shard(hash);
        shard.era += 1;
        shard.known.remove(&hash);
    }

    /// Removes all entries.
    pub(crate) fn forget_all(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.era += 1;
            shard.known.clear();
        }
    }

    /// Locks the shard of a hash.
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        self.shards[(hash >> 32) as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// Makes room by removing expired entries.
    fn has_room(&mut self, now: Timestamp) -> bool {
        if self.known.len() >= MOST_PER_SHARD && now.since(self.swept_at) >= BETWEEN_SWEEPS {
            self.swept_at = now;
            self.known.retain(|_, known| known.until > now);
        }
        self.known.len() < MOST_PER_SHARD
    }
}

impl KnownDenial {
    /// Returns the denial that is certain now. Its certainty is computed from the time of the request, the reported
    /// wait from the time of the reply.
    fn refusal(&self, limit: &Limit, ask: Ask, now: Timestamp) -> Option<Decision> {
        let is_same = *limit == self.limit;
        let [certain, reported] =
            [self.asked_at, self.known_at].map(|at| is_same.then(|| self.decided(at, ask, now)).flatten());
        certain.filter(is_denied).and(reported).filter(is_denied)
    }

    /// Returns the decision for now, assuming that the server decided at time `at`.
    fn decided(&self, at: Timestamp, ask: Ask, now: Timestamp) -> Option<Decision> {
        let clear_at = at.saturating_add(self.decision.reset_after_in_ticks());
        match self.limit.algorithm() {
            _ if self.lasting == Lasting::SameAsk => (ask == self.ask).then(|| self.shortened(now.since(at))),
            Algorithm::TokenBucket => Some(TokenBucket::try_from(self.limit).ok()?.peek(&clear_at, now, ask)),
            Algorithm::LeakyBucket => Some(LeakyBucket::try_from(self.limit).ok()?.peek(&clear_at, now, ask)),
            Algorithm::FixedWindow | Algorithm::Calendar => {
                let does_not_fit = self.decision.remaining() < ask.cost.get();
                let is_possible = ask.cost.get() <= self.decision.limit();
                (does_not_fit && is_possible).then(|| self.shortened(now.since(at)))
            }
            _ => (ask == self.ask).then(|| self.shortened(now.since(at))),
        }
    }

    /// Returns the decision with its wait shortened by the time that has passed.
    fn shortened(&self, passed: Ticks) -> Decision {
        let retry_after = match self.decision.verdict_in_ticks() {
            Verdict::Denied { retry_after } => retry_after.saturating_sub(passed),
            _ => Ticks::ZERO,
        };
        let verdict = if retry_after == Ticks::ZERO {
            Verdict::Allowed { delay: Ticks::ZERO }
        } else {
            Verdict::Denied { retry_after }
        };
        let reset_after = self.decision.reset_after_in_ticks().saturating_sub(passed);
        Decision::from_remote(verdict, self.decision.limit(), self.decision.remaining(), reset_after)
    }
}

/// Returns true for a denial with a wait. A cost above the limit has no wait, and is never decided by the cache.
fn is_denied(decision: &Decision) -> bool {
    matches!(decision.verdict_in_ticks(), Verdict::Denied { .. })
}

#[cfg(test)]
mod tests;
