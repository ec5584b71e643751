//! Keys that are certain to be refused until a known time.
//!
//! A key that was denied is denied again without a call until then. That is certain as long as the server keeps its data
//! and no units come back. A new connection and a reported flush end it, and so do resets and refunds through this store;
//! those through another store are noticed within [`LONGEST`]. Never remembered are denials that the server has to hear
//! of (`count-denied`), and those of permits, which may come back at any moment.
//!
//! What is known about a debt says all about any ask: it can only have grown. A fixed window has no more room than it
//! had. Of the other algorithms only the same ask is certain, or what is told would not be exact.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate::algorithm::{Decide as _, LeakyBucket, TokenBucket};
use tidegate::{
    Algorithm, Ask, Clock as _, CounterClock, Decision, Limit, SECOND, Ticks, Timestamp, Verdict,
};

use crate::link::Seat;

/// How many parts there are, each with its own lock.
const SHARDS: usize = 16;
/// How many refusals a part remembers at most.
const MOST_PER_SHARD: usize = 4096;
/// How many questions a part knows at most. Of those that were dropped nobody hears, so beyond that all are forgotten.
const MOST_ASKED: usize = 4096;
/// Longer names are not remembered, so that all of them together have a bound.
const LONGEST_NAME: usize = 256;
/// How often a full part is looked through for those who may ask again.
const BETWEEN_SWEEPS: Ticks = Ticks::saturating_from(SECOND);
/// The longest time for which a refusal is remembered: another store may have reset the key.
const LONGEST: Ticks = Ticks::saturating_from(SECOND.saturating_mul(10));
/// The same where others may give back what they took in between: across slots.
const LONGEST_ACROSS_SLOTS: Ticks = Ticks::saturating_from(SECOND);

/// The refusals that are remembered, each under the name of its state.
#[derive(Debug)]
pub(crate) struct Refusals {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    clock: CounterClock,
    longest: Ticks,
}

#[derive(Debug, Default)]
struct Shard {
    /// By the hash of the name.
    known: ByHash<Known>,
    /// Rises whenever something was forgotten: what was asked before is not remembered any more.
    era: u64,
    /// The last question about each name that is asked for now, by the hash of the name: only its answer is remembered.
    asked: ByHash<u64>,
    questions: u64,
    swept_at: Timestamp,
}

/// Values by the hashes of names, which are not hashed once more.
type ByHash<T> = HashMap<u64, T, BuildHasherDefault<OwnHash>>;

/// The hash of a number that is a hash already.
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

#[derive(Debug)]
struct Known {
    name: Box<[u8]>,
    limit: Limit,
    ask: Ask,
    decision: Decision,
    lasting: Lasting,
    /// When it was asked for: the server decided later, so what is certain ends no later than this says.
    asked_at: Timestamp,
    /// When it was known: the server decided before, so whoever waits from then on waits long enough.
    known_at: Timestamp,
    until: Timestamp,
    /// The memory that it came from.
    seat: Option<Seat>,
}

/// How far a refusal can be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// It says all about the state, so it is certain for other asks too.
    AnyAsk,
    /// Counts of limits before have a part in it, so only the same ask is certain.
    SameAsk,
    /// It is about several asks for one state.
    Never,
}

/// When a question was asked, for the answer to be remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Era {
    /// The hash of the name.
    hash: u64,
    number: u64,
    /// The number of the question.
    asked: u64,
    asked_at: Timestamp,
    seat: Option<Seat>,
}

impl Refusals {
    pub(crate) fn new() -> Refusals {
        Refusals::remembering_for(LONGEST)
    }

    /// For a cluster, where a refusal may have come from a take that was given back.
    pub(crate) fn across_slots() -> Refusals {
        Refusals::remembering_for(LONGEST_ACROSS_SLOTS)
    }

    fn remembering_for(longest: Ticks) -> Refusals {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Refusals { shards, hasher: RandomState::new(), clock: CounterClock::new(), longest }
    }

    /// The refusal that is certain, if one is; and the era, for the answer to be remembered if none is. The seat is the
    /// memory that would be asked now; while there is none, nothing contradicts what is known.
    pub(crate) fn certain(
        &self,
        name: &[u8],
        limit: &Limit,
        ask: Ask,
        seat: Option<Seat>,
    ) -> (Option<Decision>, Era) {
        let (now, hash) = (self.clock.now(), self.hasher.hash_one(name));
        let mut shard = self.shard(hash);
        let era = Era { hash, number: shard.era, asked: 0, asked_at: now, seat };
        let Some(known) = shard.known.get(&hash).filter(|known| *known.name == *name) else {
            return (None, era);
        };
        if now >= known.until || seat.is_some_and(|seat| known.seat != Some(seat)) {
            shard.known.remove(&hash);
            return (None, era);
        }
        (known.refusal(limit, ask, now), era)
    }

    /// The server is asked about this state, which the answer may change: what was known of it ends, and only the last
    /// answer of several is remembered.
    pub(crate) fn asks(&self, era: &mut Era) {
        let mut shard = self.shard(era.hash);
        shard.known.remove(&era.hash);
        if shard.asked.len() >= MOST_ASKED {
            shard.asked.clear();
        }
        shard.questions += 1;
        era.asked = shard.questions;
        shard.asked.insert(era.hash, era.asked);
    }

    /// Remembers a refusal, unless something was forgotten since it was asked for.
    pub(crate) fn note(
        &self,
        name: &[u8],
        (limit, ask): (&Limit, Ask),
        (decision, era): (&Decision, Era),
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
            let (name, limit, decision, Era { asked_at, seat, .. }) = (name.into(), *limit, *decision, era);
            let known = Known { name, limit, ask, decision, lasting, asked_at, known_at, until, seat };
            shard.known.insert(era.hash, known);
        }
    }

    /// Forgets one subject.
    pub(crate) fn forget(&self, name: &[u8]) {
        let hash = self.hasher.hash_one(name);
        let mut shard = self.shard(hash);
        shard.era += 1;
        shard.known.remove(&hash);
    }

    /// Forgets all.
    pub(crate) fn forget_all(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.era += 1;
            shard.known.clear();
        }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        self.shards[(hash >> 32) as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// Makes room by forgetting those who may ask again.
    fn has_room(&mut self, now: Timestamp) -> bool {
        if self.known.len() >= MOST_PER_SHARD && now.since(self.swept_at) >= BETWEEN_SWEEPS {
            self.swept_at = now;
            self.known.retain(|_, known| known.until > now);
        }
        self.known.len() < MOST_PER_SHARD
    }
}

impl Known {
    /// What is certain to be said now. Whether it is a refusal goes by when it was asked for; the wait that is told, by
    /// when it was known.
    fn refusal(&self, limit: &Limit, ask: Ask, now: Timestamp) -> Option<Decision> {
        let is_same = *limit == self.limit;
        let [certain, told] =
            [self.asked_at, self.known_at].map(|at| is_same.then(|| self.decided(at, ask, now)).flatten());
        certain.filter(is_denied).and(told).filter(is_denied)
    }

    /// What would be said now, if the server had decided at this time.
    fn decided(&self, at: Timestamp, ask: Ask, now: Timestamp) -> Option<Decision> {
        let clear_at = at.saturating_add(self.decision.reset_after_in_ticks());
        match self.limit.algorithm() {
            _ if self.lasting == Lasting::SameAsk => (ask == self.ask).then(|| self.shortened(now.since(at))),
            Algorithm::TokenBucket => Some(TokenBucket::try_from(self.limit).ok()?.peek(&clear_at, now, ask)),
            Algorithm::LeakyBucket => Some(LeakyBucket::try_from(self.limit).ok()?.peek(&clear_at, now, ask)),
            Algorithm::FixedWindow => {
                let does_not_fit = self.decision.remaining() < ask.cost.get();
                let is_possible = ask.cost.get() <= self.decision.limit();
                (does_not_fit && is_possible).then(|| self.shortened(now.since(at)))
            }
            _ => (ask == self.ask).then(|| self.shortened(now.since(at))),
        }
    }

    /// The same decision after so much time.
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
        Decision::elsewhere(verdict, self.decision.limit(), self.decision.remaining(), reset_after)
    }
}

fn is_denied(decision: &Decision) -> bool {
    matches!(decision.verdict_in_ticks(), Verdict::Denied { .. })
}

#[cfg(test)]
mod tests;
