//! Atomic takes under several limits whose states are in maps.
//!
//! The shards of all names are locked first. All threads lock in one order, so no other take interferes and no deadlock
//! is possible. Room in the map is reserved next. An ask that has room and is allowed cannot fail any more. Only if the
//! same state is asked twice may the first leave too little for the second. Then both are restored.
//!
//! ```text
//!   lock     the shards of all bids, sorted by map and shard
//!   peek     every bid; if one is denied, only its denial is applied
//!   reserve  an entry or the growth of each state; if one has no room, all reservations are returned
//!   take     every bid: nothing can fail now
//!   tend     unlock, and sweep a few entries of each shard
//! ```

use super::shard::{Entry, Newcomer, Now};
use super::states::{Moment, named, note};
use super::{Inner, Map, Shard, StateLocation};
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::store::nonce_for;
use crate::store::state_key::StateKey;
use crate::sync::MutexGuard;
use crate::time::{RECENT, Timestamp};

/// One of several asks of maps that are allowed or denied together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapBid<'a> {
    /// The map that holds the state; bids may be of several maps.
    pub(crate) map: &'a Map,
    /// The name and the limit of the state.
    pub(crate) account: &'a StateKey,
    /// The cost and the longest delay of this bid.
    pub(crate) ask: Ask,
    /// True if nothing is spent on it.
    pub(crate) is_peek: bool,
}

/// The locked shards of all bids.
pub(crate) struct LockedShards<'a> {
    /// The bids, in the order of the caller.
    bids: &'a [MapBid<'a>],
    /// The location of each bid, in the same order.
    places: Vec<StateLocation>,
    /// The index of each bid's shard in `shards`.
    owner: Vec<usize>,
    /// Each shard once, in the order in which they were locked.
    shards: Vec<LockedShard<'a>>,
    /// True if two bids are for the same state.
    has_twins: bool,
    /// The receipt of each take, if receipts are requested.
    receipts: Option<Vec<Option<Receipt>>>,
    /// The clear times of states that must not be dropped before their take.
    pinned: Vec<Option<Timestamp>>,
}

/// A shard of one map, locked, with the reading of its clock.
struct LockedShard<'a> {
    inner: &'a Inner,
    index: usize,
    now: Now,
    /// The time to decide as of.
    at: Timestamp,
    shard: MutexGuard<'a, Shard>,
}

impl<'a> LockedShards<'a> {
    /// Sorts the bids by the address of the map and the index of the shard, which gives all threads one order. Bids of
    /// one state become neighbours by the same sort, and are found on the way.
    pub(crate) fn lock(at: Option<Timestamp>, bids: &'a [MapBid<'a>]) -> LockedShards<'a> {
        let places: Vec<_> = bids.iter().map(|bid| bid.map.place(bid.account)).collect();
        let address = |bid: usize| std::ptr::from_ref::<Inner>(&bids[bid].map.inner) as usize;
        let lock = |bid: usize| (address(bid), places[bid].shard);
        let mut order: Vec<_> = (0..bids.len()).collect();
        let state = |bid: usize| (bids[bid].account.name().bytes(), bids[bid].account.digest());
        order.sort_by_key(|bid| (lock(*bid), state(*bid)));
        let (mut owner, mut locked, mut has_twins) = (vec![0; bids.len()], Vec::new(), false);
        let mut last: Option<usize> = None;
        for bid in order {
            if last.is_none_or(|last| lock(last) != lock(bid)) {
                let (inner, index) = (&*bids[bid].map.inner, places[bid].shard);
                locked.push((inner, index, inner.shards[index].0.lock()));
            } else {
                has_twins |= last.is_some_and(|last| bids[last].account.is_same_state(bids[bid].account));
            }
            owner[bid] = locked.len() - 1;
            last = Some(bid);
        }
        // The clock is read when all shards are locked. The given reading is used, unless it is too old.
        let held = |(inner, index, shard): (&'a Inner, _, _)| {
            let now = inner.now();
            let at = at.filter(|at| now.time.since(*at) < RECENT).unwrap_or(now.time);
            LockedShard { inner, index, now, at, shard }
        };
        let shards = locked.into_iter().map(held).collect();
        let pinned = vec![None; bids.len()];
        LockedShards { bids, places, owner, shards, has_twins, receipts: None, pinned }
    }

    /// Keeps the receipt of each take from now on. Without this call no receipt is computed, which saves work for plain
    /// takes.
    pub(crate) fn keep_receipts(&mut self) {
        self.receipts = Some(self.bids.iter().map(|_| None).collect());
    }

    /// Stores the receipt of a bid, if receipts are requested.
    fn keep(&mut self, bid: usize, receipt: Option<Receipt>) {
        if let Some(receipts) = &mut self.receipts {
            receipts[bid] = receipt;
        }
    }

    /// Returns the decision on one bid as the states are now, with all shards locked.
    pub(crate) fn peek(&self, bid: usize) -> Decision {
        self.peek_as(bid, self.bids[bid].ask)
    }

    /// Returns the decision on another ask for the same state. Several asks of one state use it to be decided as one
    /// ask of the summed cost.
    pub(crate) fn peek_as(&self, bid: usize, ask: Ask) -> Decision {
        let held = &self.shards[self.owner[bid]];
        held.shard.peek(self.places[bid], self.bids[bid].account, held.at, ask)
    }

    /// Returns the state of a bid, and the time that it is decided as of.
    pub(crate) fn state_of(&self, bid: usize) -> (State, Timestamp) {
        (self.state(bid).unwrap_or_default(), self.shards[self.owner[bid]].at)
    }

    /// Spends on all bids, which were all allowed by a peek, or on none. Returns true if it has. The path with
    /// reservations needs no copy of a state. It is not possible for two asks of one state, or while counts are
    /// carried; these copy and restore.
    pub(crate) fn spend(&mut self, decisions: &mut [Decision]) -> bool {
        if self.has_twins || self.carries() {
            self.spend_or_restore(decisions);
        } else {
            self.spend_if_room(decisions);
        }
        decisions.iter().all(Decision::is_allowed)
    }

    /// Returns true if one of the bids may start with counts of earlier limits.
    fn carries(&self) -> bool {
        let at = |bid: usize| self.shards[self.owner[bid]].at;
        self.bids.iter().enumerate().any(|(bid, each)| each.account.limit().carries_at(at(bid)))
    }

    /// Spends on one bid. Other than [`LockedShards::take_reserved`], it may be denied, by the limit or by a full map.
    fn take(&mut self, bid: usize) -> Decision {
        let MapBid { account, ask, .. } = &self.bids[bid];
        let LockedShard { inner, now, at, shard, .. } = &mut self.shards[self.owner[bid]];
        let is_tracked = self.receipts.is_some();
        let (decision, receipt) = inner.change(
            shard,
            account,
            Moment { place: self.places[bid], now: *now, at: *at, ask: Some(*ask), grows: true },
            |state, now| decide(account, state, now, *ask, is_tracked),
            |state, now| (account.terms().peek(state, now, *ask).store_full(), None),
        );
        self.keep(bid, receipt);
        decision
    }

    /// Applies the denial to each limit that denied, as if it had been asked alone. Other limits are not changed. A
    /// denial may shorten a debt that is too large and free quota for a second ask of the same state, which is denied
    /// nevertheless.
    pub(crate) fn record_denials(&mut self, decisions: &mut [Decision]) {
        for (bid, decision) in decisions.iter_mut().enumerate() {
            if !decision.is_allowed() && !self.peek(bid).is_allowed() {
                *decision = self.take(bid);
            }
        }
    }

    /// Spends on all allowed bids, if the map has room for them. If one bid has no room, it reports a full store, the
    /// reservations before it are returned, and nothing is spent.
    fn spend_if_room(&mut self, decisions: &mut [Decision]) {
        let bids = self.bids;
        let spending = || (0..bids.len()).filter(|bid| !bids[*bid].is_peek);
        if let Some(bid) = spending().find(|bid| !self.reserve(*bid)) {
            decisions[bid] = decisions[bid].store_full();
            spending().take_while(|before| *before < bid).for_each(|bid| self.unreserve(bid));
            return;
        }
        for bid in spending() {
            decisions[bid] = self.take_reserved(bid);
        }
    }

    /// Returns the entry of a bid.
    fn entry(&self, bid: usize) -> Option<&Entry> {
        self.shards[self.owner[bid]].shard.find(self.places[bid].hash, named(self.bids[bid].account))
    }

    /// Returns the entry of a bid for a change, and the map that it is in.
    fn entry_mut(&mut self, bid: usize) -> Option<(&'a Inner, &mut Entry)> {
        let LockedShard { inner, shard, .. } = &mut self.shards[self.owner[bid]];
        let entry = shard.find_mut(self.places[bid].hash, named(self.bids[bid].account));
        entry.map(|entry| (*inner, entry))
    }

    /// Reserves the room of one take: an entry for a new key, the growth of a state. Returns false if there is no room,
    /// and then leaves no reservation of this bid. A new entry is pinned by the latest possible clear time.
    fn reserve(&mut self, bid: usize) -> bool {
        let MapBid { account, .. } = &self.bids[bid];
        let is_new = self.entry(bid).is_none();
        let LockedShard { inner, now, shard, .. } = &mut self.shards[self.owner[bid]];
        // Until its take, the entry must not count as clear and be dropped.
        let hash = self.places[bid].hash;
        let newcomer = Newcomer { hash, named: named(account), terms: account.terms() };
        if is_new && !inner.remember_until(shard, newcomer, State::default(), Timestamp::LAST, *now) {
            return false;
        }
        let Some((inner, entry)) = self.entry_mut(bid) else { return true };
        let growth = account.terms().growth(entry.state());
        let grows = inner.budget.grow(growth);
        let fits = grows && inner.budget.reserve_block(entry, account.terms());
        if fits && !is_new {
            // A clear state must not be dropped either while room is made for the others.
            self.pinned[bid] = Some(entry.keep_until(Timestamp::LAST));
        }
        if grows && !fits {
            inner.budget.shrink(growth);
        }
        if !fits && is_new {
            self.forget(bid);
        }
        fits
    }

    /// The growth was counted by the reservation; what the take does not need goes back to the budget.
    fn take_reserved(&mut self, bid: usize) -> Decision {
        let MapBid { account, ask, .. } = &self.bids[bid];
        let LockedShard { now, at, .. } = self.shards[self.owner[bid]];
        let is_tracked = self.receipts.is_some();
        let decide = |state: &mut State| decide(account, state, at, *ask, is_tracked);
        let (decision, receipt) = match self.entry_mut(bid) {
            Some((inner, entry)) => {
                let growth = account.terms().growth(entry.state());
                let answer = inner.change_entry(entry, account.terms(), growth, decide);
                note(account, entry.clear_at(), now);
                inner.budget.save(entry);
                answer
            }
            // Room was reserved for it. If the entry is missing nevertheless, the take could not be stored.
            None => (account.terms().peek(&State::default(), at, *ask).store_full(), None),
        };
        self.keep(bid, receipt);
        decision
    }

    /// Returns the reservation of a bid: the growth, the pin, and an entry that was created for it.
    fn unreserve(&mut self, bid: usize) {
        let (terms, pinned) = (self.bids[bid].account.terms(), self.pinned[bid].take());
        let Some((inner, entry)) = self.entry_mut(bid) else { return };
        inner.budget.shrink(terms.growth(entry.state()));
        match pinned {
            Some(clear_at) => drop(entry.keep_until(clear_at)),
            // The entry was created for this take.
            None => self.forget(bid),
        }
    }

    /// Removes the entry of a bid and its bytes from the budget.
    fn forget(&mut self, bid: usize) {
        let LockedShard { inner, shard, .. } = &mut self.shards[self.owner[bid]];
        shard.remove(self.places[bid].hash, named(self.bids[bid].account), &inner.budget);
    }

    /// Spends on one bid after the other. If one is denied, restores all states. Copies each state before its take. The
    /// states are restored in reverse order, so that a state taken from twice ends as it began.
    fn spend_or_restore(&mut self, decisions: &mut [Decision]) {
        let (bids, mut before) = (self.bids, Vec::new());
        for bid in (0..bids.len()).filter(|bid| !bids[*bid].is_peek) {
            before.push((bid, self.state(bid)));
            decisions[bid] = self.take(bid);
            if decisions[bid].is_allowed() {
                continue;
            }
            for (bid, state) in before.into_iter().rev() {
                self.restore(bid, state);
            }
            // The other decisions are no longer valid.
            for other in (0..self.bids.len()).filter(|other| *other != bid) {
                decisions[other] = self.peek(other);
            }
            return;
        }
    }

    /// Returns a copy of the state of a bid; `None` if it has no entry.
    fn state(&self, bid: usize) -> Option<State> {
        self.entry(bid).map(|entry| entry.state().clone())
    }

    /// Writes a copy back; a state that had no entry loses the one that its take has created.
    fn restore(&mut self, bid: usize, state: Option<State>) {
        let Some(state) = state else { return self.forget(bid) };
        let (terms, at) = (self.bids[bid].account.terms(), self.shards[self.owner[bid]].at);
        let Some((inner, entry)) = self.entry_mut(bid) else { return };
        if !inner.budget.reserve_words(entry, state.word_count()) {
            // The larger block was freed for a carried state, which happens only if the earlier state was clear. A
            // state that is not clear stays charged.
            if terms.clear_at(&state) <= at {
                self.forget(bid);
            }
            return;
        }
        let held = entry.state().bytes_held();
        entry.change(terms, |kept| *kept = state);
        inner.budget.settle(held, entry.state().bytes_held());
        inner.budget.save(entry);
    }

    /// Unlocks everything. Returns the receipt of each take, if receipts were requested. The receipts are in the order
    /// of the bids, and `None` for a take that has none.
    pub(crate) fn tend(self) -> Vec<Option<Receipt>> {
        for LockedShard { inner, index, now, shard, .. } in self.shards {
            inner.tend(shard, index, now);
        }
        self.receipts.unwrap_or_default()
    }
}

/// Decides, and spends if allowed. Returns a receipt of the take, if requested.
fn decide(
    account: &StateKey,
    state: &mut State,
    now: Timestamp,
    ask: Ask,
    is_tracked: bool,
) -> (Decision, Option<Receipt>) {
    let decision = account.terms().decide(state, now, ask, nonce_for(account.terms()));
    let receipt = if is_tracked { account.terms().receipt(state, now, ask, &decision) } else { None };
    (decision, receipt)
}
