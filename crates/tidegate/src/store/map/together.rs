//! Several limits at once: all are looked at, and only if every one passes, all are taken from.
//!
//! The shards of all names are locked first, in one order for everybody, so nobody comes in between and
//! nobody waits in a circle. The same state may be asked twice; what cannot be foreseen (a twin that leaves
//! too little, a map that is full) is taken back before anybody sees it.

use super::shard::Now;
use super::{Inner, Map, Place, Shard};
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::decisions::Decisions;
use crate::limit::Terms;
use crate::store::name::Name;
use crate::sync::MutexGuard;

/// One of several asks that stand or fall together.
#[derive(Debug)]
pub(crate) struct Bid<'a> {
    pub(crate) map: &'a Map,
    pub(crate) name: &'a Name,
    pub(crate) terms: Terms,
    pub(crate) ask: Ask,
}

/// Spends on all, or on none.
pub(crate) fn take_all(bids: &[Bid<'_>]) -> Decisions {
    let mut held = Held::lock(bids);
    let mut decisions: Vec<_> = (0..bids.len()).map(|bid| held.peek(bid)).collect();
    if decisions.iter().all(Decision::is_allowed) {
        held.spend(&mut decisions);
    } else {
        held.record_refusals(&decisions);
    }
    held.tend();
    Decisions::new(decisions)
}

/// The shards of all bids, locked.
struct Held<'a> {
    bids: &'a [Bid<'a>],
    places: Vec<Place>,
    /// For each bid, which of the shards is its own.
    owner: Vec<usize>,
    shards: Vec<HeldShard<'a>>,
    /// Some of the bids are for one and the same state.
    has_twins: bool,
}

struct HeldShard<'a> {
    inner: &'a Inner,
    index: usize,
    now: Now,
    shard: MutexGuard<'a, Shard>,
}

impl<'a> HeldShard<'a> {
    /// The time is read when all are locked.
    fn new((inner, index, shard): (&'a Inner, usize, MutexGuard<'a, Shard>)) -> HeldShard<'a> {
        HeldShard { inner, index, now: inner.now(), shard }
    }
}

impl<'a> Held<'a> {
    fn lock(bids: &'a [Bid<'a>]) -> Held<'a> {
        let places: Vec<_> = bids.iter().map(|bid| bid.map.place(bid.name)).collect();
        let address = |bid: usize| std::ptr::from_ref::<Inner>(&bids[bid].map.inner) as usize;
        let lock = |bid: usize| (address(bid), places[bid].shard);
        let mut order: Vec<_> = (0..bids.len()).collect();
        order.sort_by_key(|bid| (lock(*bid), bids[*bid].name.bytes()));
        let (mut owner, mut locked, mut has_twins) = (vec![0; bids.len()], Vec::new(), false);
        let mut last: Option<usize> = None;
        for bid in order {
            if last.is_none_or(|last| lock(last) != lock(bid)) {
                let (inner, index) = (&*bids[bid].map.inner, places[bid].shard);
                locked.push((inner, index, inner.shards[index].0.lock()));
            } else {
                has_twins |= last.is_some_and(|last| bids[last].name.bytes() == bids[bid].name.bytes());
            }
            owner[bid] = locked.len() - 1;
            last = Some(bid);
        }
        let shards = locked.into_iter().map(HeldShard::new).collect();
        Held { bids, places, owner, shards, has_twins }
    }

    fn peek(&self, bid: usize) -> Decision {
        let Bid { name, terms, ask, .. } = &self.bids[bid];
        let held = &self.shards[self.owner[bid]];
        match held.shard.find(self.places[bid].hash, name.bytes()) {
            Some(entry) => terms.peek(entry.state(), held.now.time, *ask),
            None => terms.peek(&State::default(), held.now.time, *ask),
        }
    }

    /// Spends on one.
    fn take(&mut self, bid: usize) -> Decision {
        let Bid { name, terms, ask, .. } = &self.bids[bid];
        let HeldShard { inner, now, shard, .. } = &mut self.shards[self.owner[bid]];
        inner.change(
            shard,
            (self.places[bid].hash, name.bytes()),
            terms,
            (*now, now.time),
            |state, now| terms.decide(state, now, *ask),
            |state, now| terms.peek(state, now, *ask).store_full(),
        )
    }

    /// Spends on all, unless one turns out to be refused after all.
    fn spend(&mut self, decisions: &mut [Decision]) {
        let can_fail = self.has_twins || (0..self.bids.len()).any(|bid| self.needs_room(bid));
        let mut before = Vec::new();
        for (bid, decision) in decisions.iter_mut().enumerate() {
            if can_fail {
                before.push(self.state(bid));
            }
            *decision = self.take(bid);
            if !decision.is_allowed() {
                for (bid, state) in before.into_iter().enumerate().rev() {
                    self.restore(bid, state);
                }
                return;
            }
        }
    }

    /// Each limit that refused sees the refusal, as if it had been asked alone; the others see nothing.
    fn record_refusals(&mut self, decisions: &[Decision]) {
        for (bid, decision) in decisions.iter().enumerate() {
            if !decision.is_allowed() {
                let _ = self.take(bid);
            }
        }
    }

    fn needs_room(&self, bid: usize) -> bool {
        let shard = &self.shards[self.owner[bid]].shard;
        let entry = shard.find(self.places[bid].hash, self.bids[bid].name.bytes());
        entry.is_none_or(|entry| entry.state().growth() > 0)
    }

    fn state(&self, bid: usize) -> Option<State> {
        let shard = &self.shards[self.owner[bid]].shard;
        let entry = shard.find(self.places[bid].hash, self.bids[bid].name.bytes());
        entry.map(|entry| entry.state().clone())
    }

    fn restore(&mut self, bid: usize, state: Option<State>) {
        let Bid { name, terms, .. } = &self.bids[bid];
        let HeldShard { inner, shard, .. } = &mut self.shards[self.owner[bid]];
        let hash = self.places[bid].hash;
        match (state, shard.find_mut(hash, name.bytes())) {
            (Some(state), Some(entry)) => {
                let held = entry.state().bytes_held();
                entry.set_clear_at(terms.clear_at(&state));
                *entry.state_mut() = state;
                inner.budget.settle(held, entry.state().bytes_held());
            }
            (None, Some(_)) => shard.remove(hash, name.bytes(), &inner.budget),
            (_, None) => {}
        }
    }

    fn tend(self) {
        for HeldShard { inner, index, now, shard } in self.shards {
            inner.tend(shard, index, now);
        }
    }
}
