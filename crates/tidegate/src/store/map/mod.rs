//! Whole keys and states of any size, in memory.
//!
//! A map is cut into shards, each behind its own lock. There is no sweeper thread: every call looks at a few
//! entries beside its own and drops those that are clear, and tables change their size a few entries at a
//! time, so no call pays for a sweep or a rehash. It holds at most so many keys and bytes; when it is full of
//! live keys, newcomers are refused and told so. Nothing live is ever forgotten.

mod budget;
mod shard;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod together;

pub(crate) use together::{Bid, take_all};

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use super::name::{Name, Namespace};
use super::{Answer, Store, Subject};
use crate::algorithm::{Algorithm, State};
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::sync::{Apart, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::time::{Clock, Source, Timestamp};
use budget::Budget;
use shard::{Now, Shard};

/// The most keys of a map unless it is told otherwise.
const MAX_KEYS: usize = 1 << 20;
/// The most bytes of a map unless it is told otherwise.
const MAX_BYTES: usize = 256 << 20;
/// Shards are as many as keep each at about so many keys, within these bounds.
const KEYS_PER_SHARD: usize = 1 << 14;
const FEWEST_SHARDS: usize = if cfg!(any(tidegate_models, miri)) { 2 } else { 64 };
const MOST_SHARDS: usize = 4096;
/// Every so many calls a shard and one of its neighbours are tended.
const TENDED_EVERY: usize = 4;
/// How many buckets are looked at then, if it pays.
const OWN_STEPS: usize = 64;
const OTHER_STEPS: usize = 256;
/// In how many shards a newcomer to a full map looks for keys that are clear.
const SHARDS_SEARCHED: usize = 8;

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
    /// Until when states that depend on a limit's numbers are kept; see [`Map::hold`].
    hold_until: AtomicU64,
    /// Where the next newcomer to a full map looks for room.
    next_searched: AtomicUsize,
}

/// SipHash under keys from the system, so that nobody can choose names that meet in one place.
#[cfg(not(tidegate_models))]
type Hashing = std::hash::RandomState;
/// A model has to run the same way each time.
#[cfg(tidegate_models)]
type Hashing = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Where a name belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    shard: usize,
    hash: u64,
}

impl Map {
    /// An empty map for up to 1,048,576 keys and 256 MiB.
    pub fn new() -> Map {
        Map::build(Source::default(), MAX_KEYS, MAX_BYTES)
    }

    /// An empty map that decides by another clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Map {
        Map::build(Source::Given(clock), MAX_KEYS, MAX_BYTES)
    }

    /// A new, empty map like this one, for so many keys.
    #[must_use]
    pub fn max_keys(self, keys: usize) -> Map {
        Map::build(self.inner.clock.clone(), keys, self.inner.budget.max_bytes())
    }

    /// A new, empty map like this one, for so many bytes.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Map {
        Map::build(self.inner.clock.clone(), self.inner.budget.max_keys(), bytes)
    }

    fn build(clock: Source, max_keys: usize, max_bytes: usize) -> Map {
        let shards = (max_keys / KEYS_PER_SHARD).clamp(FEWEST_SHARDS, MOST_SHARDS).next_power_of_two();
        let inner = Inner {
            shards: (0..shards).map(|_| Apart(Mutex::new(Shard::default()))).collect(),
            hashing: Hashing::default(),
            clock,
            budget: Budget::new(max_keys, max_bytes),
            hold_until: AtomicU64::new(0),
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

    /// Decides and spends if allowed; with proof of the take, by which it can be given back.
    pub fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        self.take_named(&subject.name(), subject.limit.terms(), ask)
    }

    /// Takes all or none: spends only if every ask passes.
    pub fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
        let names: Vec<_> = asks.iter().map(|(subject, _)| subject.name()).collect();
        let named = asks.iter().zip(&names);
        let bids = named.map(|((subject, ask), name)| Bid {
            map: self,
            name,
            terms: *subject.limit.terms(),
            ask: *ask,
        });
        take_all(&bids.collect::<Vec<_>>())
    }

    /// What [`Map::take`] would say, without spending.
    pub fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        self.peek_named(&subject.name(), subject.limit.terms(), ask)
    }

    /// Charges what turned out to be more, or gives back what was not used.
    pub fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        self.adjust_named(&subject.name(), subject.limit.terms(), adjustment)
    }

    /// Gives one take back, as far as it is surely still there.
    pub fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        self.give_back_named(&subject.name(), subject.limit.terms(), receipt)
    }

    /// Gives a place in flight back. Whether the permit was still holding one.
    pub fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.release_named(&subject.name(), subject.limit.terms(), permit)
    }

    /// Starts a permit's lease anew. Whether it was still holding its place.
    pub fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.renew_named(&subject.name(), subject.limit.terms(), permit)
    }

    /// Forgets a subject, whatever the algorithm.
    pub fn reset(&self, subject: Subject<'_>) {
        self.reset_named(&subject.name());
    }

    /// What is remembered about a subject.
    pub fn state(&self, subject: Subject<'_>) -> State {
        self.state_named(&subject.name())
    }
}

/// The same under a name that is already written down.
impl Map {
    pub(crate) fn clock(&self) -> &Source {
        &self.inner.clock
    }

    pub(crate) fn take_named(&self, name: &Name, terms: &Terms, ask: Ask) -> (Decision, Option<Receipt>) {
        self.touch(
            name,
            terms,
            None,
            |state, now| {
                let decision = terms.decide(state, now, ask);
                let receipt = terms.receipt(state, now, ask, &decision);
                (decision, receipt)
            },
            |state, now| (terms.peek(state, now, ask).store_full(), None),
        )
    }

    /// Decides and spends if allowed, like [`Map::take_named`], when nobody will give it back.
    #[inline]
    pub(crate) fn spend_named(&self, name: &Name, terms: &Terms, ask: Ask) -> Decision {
        self.touch(
            name,
            terms,
            None,
            |state, now| terms.decide(state, now, ask),
            |state, now| terms.peek(state, now, ask).store_full(),
        )
    }

    /// Takes like [`Map::take_named`] if it passes; if not, leaves no trace.
    pub(crate) fn take_if_free_named(
        &self,
        name: &Name,
        terms: &Terms,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        self.touch(
            name,
            terms,
            at,
            |state, now| {
                let decision = terms.decide_if_free(state, now, ask);
                (decision, terms.receipt(state, now, ask, &decision))
            },
            |state, now| (terms.peek(state, now, ask).store_full(), None),
        )
    }

    pub(crate) fn peek_named(&self, name: &Name, terms: &Terms, ask: Ask) -> Decision {
        let place = self.place(name);
        let shard = self.shard(place);
        let now = self.inner.clock.now();
        match shard.find(place.hash, name.bytes()) {
            Some(entry) => terms.peek(entry.state(), now, ask),
            None => terms.peek(&State::default(), now, ask),
        }
    }

    pub(crate) fn adjust_named(&self, name: &Name, terms: &Terms, adjustment: Adjustment) -> Adjusted {
        let adjust = |state: &mut State, now| terms.adjust(state, now, adjustment);
        self.touch(name, terms, None, adjust, |_, _| Adjusted::Capped)
    }

    pub(crate) fn give_back_named(&self, name: &Name, terms: &Terms, receipt: Receipt) -> Adjusted {
        let give_back = |state: &mut State, now| terms.give_back(state, now, receipt);
        self.touch(name, terms, None, give_back, |_, _| Adjusted::Capped)
    }

    pub(crate) fn release_named(&self, name: &Name, terms: &Terms, permit: PermitId) -> bool {
        self.touch(name, terms, None, |state, now| terms.release(state, now, permit), |_, _| false)
    }

    pub(crate) fn renew_named(&self, name: &Name, terms: &Terms, permit: PermitId) -> bool {
        self.touch(name, terms, None, |state, now| terms.renew(state, now, permit), |_, _| false)
    }

    pub(crate) fn reset_named(&self, name: &Name) {
        for algorithm in Algorithm::ALL {
            let name = name.under(algorithm);
            let place = self.place(&name);
            self.shard(place).remove(place.hash, name.bytes(), &self.inner.budget);
        }
    }

    pub(crate) fn state_named(&self, name: &Name) -> State {
        let place = self.place(name);
        let shard = self.shard(place);
        shard.find(place.hash, name.bytes()).map_or_else(State::default, |entry| entry.state().clone())
    }

    /// Keeps what may matter longer under the limit that is about to be in force than under the one before:
    /// a state that is clear under the old one was written no later than now.
    pub(crate) fn hold(&self, before: &Terms, after: &Terms) {
        if after.memory() > before.memory() {
            let until = self.inner.clock.now().saturating_add(after.memory());
            self.inner.hold_until.fetch_max(until.ticks(), Ordering::Relaxed);
        }
    }

    /// Changes the state under a name; `full` answers, and nothing changes, if there is no room for it.
    #[inline]
    fn touch<R>(
        &self,
        name: &Name,
        terms: &Terms,
        at: Option<Timestamp>,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let place = self.place(name);
        let mut shard = self.shard(place);
        let now = self.inner.now();
        let at = at.unwrap_or(now.time);
        let answer =
            self.inner.change(&mut shard, (place.hash, name.bytes()), terms, (now, at), change, full);
        self.inner.tend(shard, place.shard, now);
        answer
    }

    #[inline]
    fn place(&self, name: &Name) -> Place {
        let mut hasher = self.inner.hashing.build_hasher();
        hasher.write(name.bytes());
        let hash = hasher.finish();
        // The table within a shard uses the lowest and the highest bits.
        Place { shard: (hash >> 40) as usize & (self.inner.shards.len() - 1), hash }
    }

    #[inline]
    fn shard(&self, place: Place) -> MutexGuard<'_, Shard> {
        self.inner.shards[place.shard].0.lock()
    }
}

impl Inner {
    /// The time; read after a shard is locked, so that the times that its states see do not go back.
    #[inline]
    fn now(&self) -> Now {
        let hold_until = Timestamp::from_ticks(self.hold_until.load(Ordering::Relaxed));
        Now { time: self.clock.now(), hold_until }
    }

    #[inline]
    fn change<R>(
        &self,
        shard: &mut Shard,
        (hash, name): (u64, &[u8]),
        terms: &Terms,
        (now, at): (Now, Timestamp),
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let Some(entry) = shard.find_mut(hash, name) else {
            let mut state = State::default();
            let answer = change(&mut state, at);
            let clear_at = terms.clear_at(&state);
            let remembered =
                clear_at <= now.time || self.remember(shard, (hash, name), (state, clear_at), now);
            return if remembered { answer } else { full(&State::default(), at) };
        };
        let growth = entry.state().growth();
        if !self.budget.grow(growth) {
            return full(entry.state(), at);
        }
        let held = entry.state().bytes_held() + growth;
        let answer = change(entry.state_mut(), at);
        entry.set_clear_at(terms.clear_at(entry.state()));
        self.budget.settle(held, entry.state().bytes_held());
        answer
    }

    /// Remembers a newcomer, if need be in the place of keys elsewhere that are clear.
    fn remember(
        &self,
        shard: &mut Shard,
        name: (u64, &[u8]),
        (state, clear_at): (State, Timestamp),
        now: Now,
    ) -> bool {
        let Err(state) = shard.insert(name, (state, clear_at), now, &self.budget) else { return true };
        shard.tend(OTHER_STEPS, now, &self.budget);
        for _ in 0..SHARDS_SEARCHED {
            let next = self.next_searched.fetch_add(1, Ordering::Relaxed) & (self.shards.len() - 1);
            // The shard at hand is locked already: it is passed over like one that somebody else has.
            if let Some(mut other) = self.shards[next].0.try_lock() {
                other.tend(OTHER_STEPS, now, &self.budget);
            }
        }
        shard.insert(name, (state, clear_at), now, &self.budget).is_ok()
    }

    /// Now and then, looks after this shard and, without waiting, after another one.
    #[inline]
    fn tend(&self, mut shard: MutexGuard<'_, Shard>, index: usize, now: Now) {
        shard.turn = shard.turn.wrapping_add(1);
        let turn = shard.turn;
        if turn % TENDED_EVERY == 0 {
            shard.tend(OWN_STEPS, now, &self.budget);
            drop(shard);
            let other = (index + turn / TENDED_EVERY) & (self.shards.len() - 1);
            if let Some(mut other) = self.shards[other].0.try_lock() {
                other.tend(OTHER_STEPS, now, &self.budget);
            }
        }
    }
}

impl Subject<'_> {
    fn name(&self) -> Name {
        Name::new(&Namespace::new(self.namespace), self.limit.algorithm(), self.key)
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

impl Store for Map {
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, Decisions> {
        Answer::ready(self.take_all(asks))
    }

    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> Answer<'a, Decision> {
        Answer::ready(Map::peek(self, subject, ask))
    }

    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> Answer<'a, Adjusted> {
        Answer::ready(Map::adjust(self, subject, adjustment))
    }

    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
        Answer::ready(Map::release(self, subject, permit))
    }

    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
        Answer::ready(Map::renew(self, subject, permit))
    }

    fn reset<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, ()> {
        Map::reset(self, subject);
        Answer::ready(())
    }
}
