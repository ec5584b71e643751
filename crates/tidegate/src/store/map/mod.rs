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

use super::name::{Account, Name, Namespace, circle};
use super::{Answer, Store, Subject};
use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::sync::{Apart, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::time::{Clock, Source, Timestamp};
use budget::Budget;
use shard::{Entry, Memory, Now, Shard};

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
    memory: Memory,
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
            memory: Memory::new(),
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
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        self.take_from(&subject.account(), ask)
    }

    /// Takes all or none: spends only if every ask passes.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
        let accounts: Vec<_> = asks.iter().map(|(subject, _)| subject.account()).collect();
        let bids = accounts.iter().zip(asks).map(|(account, (_, ask))| Bid { map: self, account, ask: *ask });
        take_all(&bids.collect::<Vec<_>>())
    }

    /// What [`Map::take`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        self.look(&subject.account(), ask)
    }

    /// Charges what turned out to be more, or gives back what was not used.
    pub fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        self.adjust_in(&subject.account(), adjustment)
    }

    /// Gives one take back, as far as it is surely still there.
    pub fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        self.give_back_to(&subject.account(), receipt)
    }

    /// Gives a place in flight back. Whether the permit was still holding one.
    pub fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.release_in(&subject.account(), permit)
    }

    /// Starts a permit's lease anew. Whether it was still holding its place.
    pub fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
        self.renew_in(&subject.account(), permit)
    }

    /// Forgets a subject, whatever the algorithm.
    pub fn reset(&self, subject: Subject<'_>) {
        self.forget(&subject.account());
    }

    /// What is remembered about a subject.
    pub fn state(&self, subject: Subject<'_>) -> State {
        self.state_of(&subject.account())
    }
}

/// The same for an account, whose name is already written down.
impl Map {
    pub(crate) fn clock(&self) -> &Source {
        &self.inner.clock
    }

    /// Remembers the states of a namespace for as long as this limit needs, before it is in force.
    pub(crate) fn expect(&self, namespace: &Namespace, terms: &Terms) {
        self.inner.memory.lengthen(namespace.circle(), terms.memory());
    }

    pub(crate) fn take_from(&self, account: &Account, ask: Ask) -> (Decision, Option<Receipt>) {
        let terms = account.terms();
        self.touch(
            account,
            None,
            |state, now| {
                let decision = terms.decide(state, now, ask);
                let receipt = terms.receipt(state, now, ask, &decision);
                (decision, receipt)
            },
            |state, now| (terms.peek(state, now, ask).store_full(), None),
        )
    }

    /// Decides and spends if allowed, like [`Map::take_from`], when nobody will give it back.
    #[inline]
    pub(crate) fn spend(&self, account: &Account, ask: Ask) -> Decision {
        let terms = account.terms();
        self.touch(
            account,
            None,
            |state, now| terms.decide(state, now, ask),
            |state, now| terms.peek(state, now, ask).store_full(),
        )
    }

    /// Takes if it passes, now or as of the given time; if not, leaves no trace.
    pub(crate) fn take_if_free(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        let terms = account.terms();
        self.touch(
            account,
            at,
            |state, now| {
                let decision = terms.decide_if_free(state, now, ask);
                let receipt = terms.receipt(state, now, ask, &decision);
                (decision, receipt)
            },
            |state, now| (terms.peek(state, now, ask).store_full(), None),
        )
    }

    pub(crate) fn look(&self, account: &Account, ask: Ask) -> Decision {
        let place = self.place(account);
        let shard = self.shard(place);
        let now = self.inner.clock.now();
        match shard.find(place.hash, account.bytes()) {
            Some(entry) => account.terms().peek(entry.state(), now, ask),
            None => account.terms().peek(&State::default(), now, ask),
        }
    }

    pub(crate) fn adjust_in(&self, account: &Account, adjustment: Adjustment) -> Adjusted {
        let adjust = |state: &mut State, now| account.terms().adjust(state, now, adjustment);
        self.touch(account, None, adjust, |_, _| Adjusted::Capped)
    }

    pub(crate) fn give_back_to(&self, account: &Account, receipt: Receipt) -> Adjusted {
        let give_back = |state: &mut State, now| account.terms().give_back(state, now, receipt);
        self.touch(account, None, give_back, |_, _| Adjusted::Capped)
    }

    pub(crate) fn release_in(&self, account: &Account, permit: PermitId) -> bool {
        let release = |state: &mut State, now| account.terms().release(state, now, permit);
        self.touch(account, None, release, |_, _| false)
    }

    pub(crate) fn renew_in(&self, account: &Account, permit: PermitId) -> bool {
        let renew = |state: &mut State, now| account.terms().renew(state, now, permit);
        self.touch(account, None, renew, |_, _| false)
    }

    pub(crate) fn forget(&self, account: &Account) {
        for bytes in account.bytes_of_all() {
            let place = self.place_of(&bytes);
            self.shard(place).remove(place.hash, &bytes, &self.inner.budget);
        }
    }

    pub(crate) fn state_of(&self, account: &Account) -> State {
        let place = self.place(account);
        let shard = self.shard(place);
        shard.find(place.hash, account.bytes()).map_or_else(State::default, |entry| entry.state().clone())
    }

    /// Changes the state of an account; `full` answers, and nothing changes, if there is no room for it.
    #[inline]
    fn touch<R>(
        &self,
        account: &Account,
        at: Option<Timestamp>,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let place = self.place(account);
        let mut shard = self.shard(place);
        let now = self.inner.now();
        let at = at.unwrap_or(now.time);
        let answer = self.inner.change(&mut shard, place.hash, account, (now, at), change, full);
        self.inner.tend(shard, place.shard, now);
        answer
    }

    #[inline]
    fn place(&self, account: &Account) -> Place {
        self.place_of(account.bytes())
    }

    #[inline]
    fn place_of(&self, name: &[u8]) -> Place {
        let mut hasher = self.inner.hashing.build_hasher();
        hasher.write(name);
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
    fn now(&self) -> Now<'_> {
        Now { time: self.clock.now(), memory: &self.memory }
    }

    #[inline]
    fn change<R>(
        &self,
        shard: &mut Shard,
        hash: u64,
        account: &Account,
        (now, at): (Now<'_>, Timestamp),
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let terms = account.terms();
        self.memory.lengthen(circle(account.bytes()), terms.memory());
        let Some(entry) = shard.find_mut(hash, account.bytes()) else {
            let mut state = State::default();
            let answer = change(&mut state, at);
            let is_clear = now.is_past(terms.clear_at(&state));
            let settled_at = terms.settled_at(&state);
            let remembered = is_clear || self.remember(shard, (hash, account), (state, settled_at), now);
            return if remembered { answer } else { full(&State::default(), at) };
        };
        let growth = terms.growth(entry.state());
        if !self.budget.grow(growth) {
            return full(entry.state(), at);
        }
        self.change_entry(entry, terms, growth, |state| change(state, at))
    }

    /// Changes a state that may grow by as much as was counted already.
    #[inline]
    fn change_entry<R>(
        &self,
        entry: &mut Entry,
        terms: &Terms,
        growth: usize,
        change: impl FnOnce(&mut State) -> R,
    ) -> R {
        let held = entry.state().bytes_held() + growth;
        let answer = entry.change(terms, change);
        self.budget.settle(held, entry.state().bytes_held());
        answer
    }

    /// Remembers a newcomer, if need be in the place of keys elsewhere that are clear.
    fn remember(
        &self,
        shard: &mut Shard,
        (hash, account): (u64, &Account),
        (state, settled_at): (State, Timestamp),
        now: Now<'_>,
    ) -> bool {
        let name = account.bytes();
        let Err(state) = shard.insert((hash, name), (state, settled_at), now, &self.budget) else {
            return true;
        };
        shard.tend(OTHER_STEPS, now, &self.budget);
        for _ in 0..SHARDS_SEARCHED {
            let next = self.next_searched.fetch_add(1, Ordering::Relaxed) & (self.shards.len() - 1);
            // The shard at hand is locked already: it is passed over like one that somebody else has.
            if let Some(mut other) = self.shards[next].0.try_lock() {
                other.tend(OTHER_STEPS, now, &self.budget);
            }
        }
        shard.insert((hash, name), (state, settled_at), now, &self.budget).is_ok()
    }

    /// Now and then, looks after this shard and, without waiting, after another one.
    #[inline]
    fn tend(&self, mut shard: MutexGuard<'_, Shard>, index: usize, now: Now<'_>) {
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
    fn account(&self) -> Account {
        Name::new(&Namespace::new(self.namespace), self.key).under(*self.limit.terms())
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
