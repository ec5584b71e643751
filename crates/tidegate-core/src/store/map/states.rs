//! The map's interface for limiters, by accounts, whose names are already encoded.
//!
//! ```text
//!   account --> hash of the name --> shard --> lock --> clock --> change of one entry --> sweep of a few others
//! ```
//!
//! Every call locks one shard, reads the clock under that lock, and changes one entry. The times of changes in a shard
//! therefore never go back, apart from steps of the clock itself.
//!
//! An entry is written only if the state is not clear afterwards. A denial of an unknown key, or a refund of one,
//! allocates nothing.
//!
//! | call | key without an entry | full map |
//! |---|---|---|
//! | take, spend | decided as full; stored if allowed | denied, reports a full store |
//! | charge | stored with its debt | [`Adjusted::Capped`] |
//! | refund, give back, take off | nothing to give back | never needs room |
//! | release, renew | false | never needs room |
//! | peek | decided as full | not affected |

use std::hash::{BuildHasher, Hasher};

use super::shard::{Entry, Newcomer, Now, Shard, StateRef};
use super::{Inner, Map, StateLocation};
use crate::algorithm::{Claim, State, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::limit::AlgorithmParams;
use crate::receipt::Receipt;
use crate::store::bound::StateName;
use crate::store::receipts::Receipts;
use crate::store::state_key::{EncodedKey, StateKey};
use crate::store::{ReceiptCounts, Reported, nonce_for};
use crate::sync::{MutexGuard, Ordering};
use crate::time::{RECENT, Source, Timestamp};

/// The number of calls after which a shard and one of its neighbours are swept. The neighbour advances by one shard
/// each time, so shards without traffic are swept too.
const TENDED_EVERY: usize = 8;
/// The most buckets that are swept then, while each step finds clear entries. The own shard is bounded tighter, because
/// its lock is held and other callers may wait for it.
const OWN_STEPS: usize = 128;
/// Another shard is swept only if its lock is free.
const OTHER_STEPS: usize = 512;
/// The number of shards in which a new key of a full map searches for clear entries.
const SHARDS_SEARCHED: usize = 8;

impl Map {
    /// Returns the clock by which all states of the map are decided; a map beside a zone has the clock of the zone.
    pub(crate) fn clock(&self) -> &Source {
        &self.inner.clock
    }

    /// Returns the number of receipts of tracked takes that are open, and of those dropped because there were too many.
    /// It locks the sixteen parts of the table one after the other, so it is for statistics and not for each request.
    pub fn receipt_counts(&self) -> ReceiptCounts {
        self.inner.receipts.counts()
    }

    /// Returns the table of open receipts.
    pub(crate) fn receipts(&self) -> &Receipts {
        &self.inner.receipts
    }

    /// Takes by `decide`, now or as of the given time, and returns a receipt. `decide` also gets the random bits of a
    /// permit, drawn for this ask. On a full map the ask is denied, and the decision reports a full store.
    pub(crate) fn take_by(
        &self,
        account: &StateKey,
        ask: Ask,
        at: Option<Timestamp>,
        decide: impl FnOnce(&AlgorithmParams, &mut State, Timestamp, Ask, u64) -> Decision,
    ) -> (Decision, Option<Receipt>) {
        let terms = account.terms();
        self.touch(
            account,
            at,
            Some(ask),
            |state, now| {
                let decision = decide(terms, state, now, ask, nonce_for(terms));
                let receipt = terms.receipt(state, now, ask, &decision);
                (decision, receipt)
            },
            |state, now| (terms.peek(state, now, ask).store_full(), None),
        )
    }

    /// Decides, and spends if allowed, without a receipt. The hot path of the map: one lock, one hash, one clock
    /// reading, and no allocation for a known key.
    #[inline]
    pub(crate) fn spend(&self, account: &StateKey, ask: Ask) -> Decision {
        let terms = account.terms();
        self.touch(
            account,
            None,
            Some(ask),
            |state, now| terms.decide(state, now, ask, nonce_for(terms)),
            |state, now| terms.peek(state, now, ask).store_full(),
        )
    }

    /// Decides like [`Map::spend`], as of `at`, a recent reading of the clock. Sets `at` to a later reading if it is
    /// too old, because an entry that counted then may have been dropped since.
    pub(crate) fn spend_as_of(&self, account: &StateKey, ask: Ask, at: &mut Timestamp) -> Decision {
        let (terms, read) = (account.terms(), *at);
        let (decision, decided_at) = self.touch_as_of(
            account,
            |place, now| {
                let at = if now.time.since(read) < RECENT { read } else { now.time };
                Moment { place, now, at, ask: Some(ask), grows: true }
            },
            |state, now| (terms.decide(state, now, ask, nonce_for(terms)), now),
            |state, now| (terms.peek(state, now, ask).store_full(), now),
        );
        *at = decided_at;
        decision
    }

    /// Returns the decision that a take would get. It locks the shard, but does not sweep, and writes nothing.
    pub(crate) fn look(&self, account: &StateKey, ask: Ask) -> Decision {
        let place = self.place(account);
        let shard = self.shard(place);
        shard.peek(place, account, self.inner.clock.now(), ask)
    }

    /// Charges additional cost and returns a receipt, or refunds unused cost. A charge has the price of the whole cost
    /// as its receipt, even if the state held less than that as debt. On a full map nothing is charged.
    pub(crate) fn adjust_in(
        &self,
        account: &StateKey,
        adjustment: Adjustment,
    ) -> (Adjusted, Option<Receipt>) {
        let terms = account.terms();
        let adjust = |state: &mut State, now| {
            let adjusted = terms.adjust(state, now, adjustment);
            let Adjustment::Charge(cost) = adjustment else { return (adjusted, None) };
            let receipt = terms.receipt_of(state, now, Ask::new(cost));
            (adjusted, receipt.map(|receipt| Receipt { paid: terms.price(cost), ..receipt }))
        };
        let (ask, grows) = (Some(Ask::ONE), matches!(adjustment, Adjustment::Charge(_)));
        let moment = |place, now: Now| Moment { place, now, at: now.time, ask, grows };
        self.touch_as_of(account, moment, adjust, |_, _| (Adjusted::Capped, None))
    }

    /// Removes units of one take from its debt, as far as they are still owed. The claim locates the take in the queue
    /// of debts. `None` means that the claim and the state contradict each other.
    pub(crate) fn take_off(&self, account: &StateKey, claim: Claim, units: Cost) -> Option<TakenOff> {
        let take_off = |state: &mut State, now| account.terms().take_off(state, now, &claim, units);
        self.touch(account, None, None, take_off, |_, _| Some(TakenOff::NOTHING))
    }

    /// Gives one take back by a receipt that locates its units. An unknown key has nothing to give back, so the result
    /// is [`Adjusted::Capped`].
    pub(crate) fn give_back_to(&self, account: &StateKey, receipt: Receipt) -> Adjusted {
        let give_back = |state: &mut State, now| account.terms().give_back(state, now, receipt);
        self.touch(account, None, None, give_back, |_, _| Adjusted::Capped)
    }

    /// Releases a permit. Returns true if it was in flight; a permit whose lease has expired is not.
    pub(crate) fn release_in(&self, account: &StateKey, permit: PermitId) -> bool {
        let release = |state: &mut State, now| account.terms().release(state, now, permit);
        self.touch(account, None, None, release, |_, _| false)
    }

    /// Restarts the lease of a permit. Returns true if it was in flight.
    pub(crate) fn renew_in(&self, account: &StateKey, permit: PermitId) -> bool {
        let renew = |state: &mut State, now| account.terms().renew(state, now, permit);
        self.touch(account, None, None, renew, |_, _| false)
    }

    /// Removes the state of a key under one limit. Returns true if it was live. The open receipts of the state become
    /// invalid first, under their lock, so that no refund follows into a new state.
    pub(crate) fn forget_state(&self, name: &EncodedKey, state: &StateName) -> bool {
        let place = self.place_of(name.bytes(), state.digest);
        let mut receipts = self.inner.receipts.lock(state.digest, name.bytes());
        receipts.forget();
        let named = StateRef { limit: state.digest, name: name.bytes() };
        let mut shard = self.shard(place);
        let is_live =
            shard.find(place.hash, named).is_some_and(|entry| entry.clear_at() > self.clock().now());
        shard.remove(place.hash, named, &self.inner.budget);
        is_live
    }

    /// Returns a copy of the state, or an empty one for an unknown key. A log or a set of holders is cloned, so the
    /// cost grows with it.
    pub(crate) fn state_of(&self, account: &StateKey) -> State {
        let place = self.place(account);
        let shard = self.shard(place);
        shard.find(place.hash, named(account)).map_or_else(State::default, |entry| entry.state().clone())
    }

    /// Changes the state of an account. If there is no room for it, returns the reply of `full`, and nothing changes.
    /// Of several carried states, the one that is strictest about the ask is changed.
    #[inline]
    pub(super) fn touch<R: Reported>(
        &self,
        account: &StateKey,
        at: Option<Timestamp>,
        ask: Option<Ask>,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let grows = ask.is_some();
        let moment = |place, now: Now| Moment { place, now, at: at.unwrap_or(now.time), ask, grows };
        self.touch_as_of(account, moment, change, full)
    }

    /// Changes the state of an account at a moment that is known once the clock was read. `moment` gets the reading
    /// made under the lock, and decides the time to decide as of.
    #[inline]
    fn touch_as_of<R: Reported>(
        &self,
        account: &StateKey,
        moment: impl FnOnce(StateLocation, Now) -> Moment,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let place = self.place(account);
        let mut shard = self.shard(place);
        let now = self.inner.now();
        let answer = self.inner.change(&mut shard, account, moment(place, now), change, full);
        self.inner.tend(shard, place.shard, now);
        answer
    }

    /// Returns the shard and the hashes of an account.
    #[inline]
    pub(super) fn place(&self, account: &StateKey) -> StateLocation {
        self.place_of(account.name().bytes(), account.digest())
    }

    /// The hash of the name selects the shard, whatever the limit. All states of a key are therefore under one lock,
    /// which a carry needs.
    #[inline]
    pub(super) fn place_of(&self, name: &[u8], limit: u64) -> StateLocation {
        let mut hasher = self.inner.hashing.build_hasher();
        hasher.write(name);
        let base = hasher.finish();
        // The table within a shard uses the lowest and the highest bits.
        StateLocation {
            shard: (base >> 40) as usize & (self.inner.shards.len() - 1),
            base,
            hash: base ^ limit,
        }
    }

    /// Locks the shard of a location.
    #[inline]
    fn shard(&self, place: StateLocation) -> MutexGuard<'_, Shard> {
        self.inner.shards[place.shard].0.lock()
    }
}

impl Inner {
    /// Returns the time. It is read after a shard is locked, so that the times of its states do not go back.
    #[inline]
    pub(super) fn now(&self) -> Now {
        Now { time: self.clock.now() }
    }

    /// Changes a state under the lock of its shard. Only while counts of an earlier limit matter does it take the path
    /// that reads several states.
    #[inline]
    pub(super) fn change<R: Reported>(
        &self,
        shard: &mut Shard,
        account: &StateKey,
        moment: Moment,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        if account.limit().carries_at(moment.at) {
            return self.change_carrying(shard, account, moment, change, full);
        }
        self.change_own(shard, account, moment, change, full)
    }

    /// Changes the state of an account, or a new one. `full` computes the reply if the budget has no room; then the
    /// state is unchanged. For a key without an entry, the new state is stored only if it is not clear.
    #[inline]
    pub(super) fn change_own<R>(
        &self,
        shard: &mut Shard,
        account: &StateKey,
        Moment { place, now, at, grows, .. }: Moment,
        change: impl FnOnce(&mut State, Timestamp) -> R,
        full: impl FnOnce(&State, Timestamp) -> R,
    ) -> R {
        let terms = account.terms();
        let Some(entry) = shard.find_mut(place.hash, named(account)) else {
            let mut state = State::default();
            let answer = change(&mut state, at);
            // A decision as of `at` may be followed by others as of the same time.
            let is_clear = Now { time: at }.is_past(terms.clear_at(&state));
            let remembered = is_clear || self.remember(shard, place.hash, account, state, now);
            return if remembered { answer } else { full(&State::default(), at) };
        };
        self.budget.prefetch_block(entry);
        let growth = if grows { terms.growth(entry.state()) } else { 0 };
        if !self.budget.grow(growth) {
            return full(entry.state(), at);
        }
        if grows && !self.budget.reserve_block(entry, terms) {
            self.budget.shrink(growth);
            return full(entry.state(), at);
        }
        let answer = self.change_entry(entry, terms, growth, |state| change(state, at));
        note(account, entry.clear_at(), now);
        self.budget.save(entry);
        answer
    }

    /// Changes a state whose possible growth is already counted in the budget. The surplus of the growth is returned to
    /// the budget afterwards.
    #[inline]
    pub(super) fn change_entry<R>(
        &self,
        entry: &mut Entry,
        terms: &AlgorithmParams,
        growth: usize,
        change: impl FnOnce(&mut State) -> R,
    ) -> R {
        let held = entry.state().bytes_held() + growth;
        let answer = entry.change(terms, change);
        self.budget.settle(held, entry.state().bytes_held());
        answer
    }

    /// Stores a new state. If the map is full, makes room by dropping clear entries of several shards. Returns false if
    /// there is still no room: then the change must not be reported as done.
    pub(super) fn remember(
        &self,
        shard: &mut Shard,
        hash: u64,
        account: &StateKey,
        state: State,
        now: Now,
    ) -> bool {
        let clear_at = account.terms().clear_at(&state);
        note(account, clear_at, now);
        let newcomer = Newcomer { hash, named: named(account), terms: account.terms() };
        self.remember_until(shard, newcomer, state, clear_at, now)
    }

    /// Stores a new state like [`Inner::remember`], with the given clear time. At most [`SHARDS_SEARCHED`] shards are
    /// swept, whatever the size of the map, and shards that are locked are skipped.
    pub(super) fn remember_until(
        &self,
        shard: &mut Shard,
        newcomer: Newcomer<'_>,
        state: State,
        clear_at: Timestamp,
        now: Now,
    ) -> bool {
        let Err(state) = shard.insert(newcomer, state, clear_at, now, &self.budget) else {
            return true;
        };
        shard.tend(OTHER_STEPS, now, &self.budget);
        for _ in 0..SHARDS_SEARCHED {
            let next = self.next_searched.fetch_add(1, Ordering::Relaxed) & (self.shards.len() - 1);
            // The shard at hand is already locked: it is skipped like one that another thread has locked.
            if let Some(mut other) = self.shards[next].0.try_lock() {
                other.tend(OTHER_STEPS, now, &self.budget);
            }
        }
        shard.insert(newcomer, state, clear_at, now, &self.budget).is_ok()
    }

    /// Every few calls, sweeps this shard and, without waiting, another one. The lock of the own shard is released
    /// before the other one is tried, so no thread ever waits for two shards here.
    #[inline]
    pub(super) fn tend(&self, mut shard: MutexGuard<'_, Shard>, index: usize, now: Now) {
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

/// The place, the time and the ask of a change. A charge or a take grows a state; a refund never does. For the carry of
/// counts, the ask selects the strictest of several states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The shard, and the hash under the limit.
    pub(super) place: StateLocation,
    /// The reading of the clock under the lock of the shard.
    pub(super) now: Now,
    /// The time to decide as of. It is at most [`RECENT`] before `now`, or a state that counted then may be gone.
    pub(super) at: Timestamp,
    /// The ask of the change. `None` if it concerns only a take under this limit, so that nothing is carried.
    pub(super) ask: Option<Ask>,
    /// True if the change may make the state larger. A refund never does, so it needs no room.
    pub(super) grows: bool,
}

/// Returns the name of an account's state.
#[inline]
pub(super) fn named(account: &StateKey) -> StateRef<'_> {
    StateRef { limit: account.digest(), name: account.name().bytes() }
}

/// Lists the limit of a state that is written, unless it is listed for as long. Most calls compare two numbers and
/// return; the table is written about once in two refills.
#[inline]
pub(super) fn note(account: &StateKey, clear_at: Timestamp, now: Now) {
    if account.limit().is_unnoted(clear_at.ticks()) {
        account.limit().note(clear_at.ticks(), now.time);
    }
}
