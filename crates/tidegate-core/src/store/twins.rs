//! Several asks for one state in a request whose asks are allowed or denied together.
//!
//! Under most limits they are one ask of the summed cost. Where an ask may be delayed, or gets a permit of its own, the
//! asks are decided one after the other in one step. In both cases a denial reports the wait after which all of them
//! are allowed.
//!
//! A request has twins if two of its rules have the same limit on the same key, or if a caller lists one key twice. If
//! each were decided by itself, both would see the same remaining quota, and together they would be admitted too much.

use super::state_key::StateKey;
use crate::algorithm::{Algorithm, State};
use crate::ask::{Ask, Cost};
use crate::decision::{Decision, Verdict};
use crate::limit::AlgorithmParams;
use crate::time::{Ticks, Timestamp};

/// The most asks that are compared in pairs. Up to this number comparing pairs is cheaper than sorting, and needs no
/// memory.
const FEW: usize = 16;

/// The groups of asks for one state, each with the indices of its asks. It is empty for nearly every request, and then
/// allocates nothing.
#[derive(Debug)]
pub(super) struct Twins<'a> {
    groups: Vec<Group<'a>>,
}

/// The asks for one state, in the order of the request.
#[derive(Debug)]
struct Group<'a> {
    /// The parameters of their limit.
    terms: &'a AlgorithmParams,
    /// The indices of the asks in the request.
    places: Vec<usize>,
    /// The asks themselves.
    asks: Vec<Ask>,
}

impl<'a> Twins<'a> {
    /// A request without twins, which is nearly every one, costs a few comparisons and no allocation. `None` stands for
    /// an ask that is only a peek: it is decided on the state before the request.
    #[inline]
    pub(super) fn of(asks: impl ExactSizeIterator<Item = Option<(&'a StateKey, Ask)>> + Clone) -> Twins<'a> {
        if has_any(asks.clone()) {
            Twins::grouped(&asks.collect::<Vec<_>>())
        } else {
            Twins { groups: Vec::new() }
        }
    }

    /// Sorts the asks by store, limit and name, so that asks for one state are neighbours. The sort is stable, so a
    /// group keeps the order of the request.
    fn grouped(asks: &[Option<(&'a StateKey, Ask)>]) -> Twins<'a> {
        let state = |account: &'a StateKey| {
            (account.limit().table_address(), account.digest(), account.name().bytes())
        };
        let each = asks.iter().enumerate();
        let mut order: Vec<_> = each.filter_map(|(place, ask)| ask.map(|ask| (place, ask))).collect();
        order.sort_by_key(|(_, (account, _))| state(account));
        let groups = order.chunk_by(|(_, (one, _)), (_, (other, _))| one.is_same_state(other));
        let groups = groups.filter(|group| group.len() > 1).map(|group| Group {
            terms: group[0].1.0.terms(),
            places: group.iter().map(|(place, _)| *place).collect(),
            asks: group.iter().map(|(_, (_, ask))| *ask).collect(),
        });
        Twins { groups: groups.collect() }
    }

    /// Returns true if no state is asked for twice.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Replaces the decisions on single asks by a denial of all asks for one state, if these are denied together.
    /// `peek` decides one ask of a bid, and `state` returns the state and the time of a bid. Groups that are allowed
    /// keep their decisions.
    pub(super) fn deny(
        &self,
        decisions: &mut [Decision],
        peek: impl Fn(usize, Ask) -> Decision,
        state: impl Fn(usize) -> (State, Timestamp),
    ) {
        for group in &self.groups {
            let first = group.places[0];
            let decision = match group.as_one() {
                Some(ask) => peek(first, ask),
                None => {
                    let (state, now) = state(first);
                    group.peek_in_order(decisions[first], &state, now)
                }
            };
            if !decision.is_allowed() {
                group.places.iter().for_each(|place| decisions[*place] = decision);
            }
        }
    }

    /// Makes all asks for one state report the remaining quota of the last of them, and its delay, which is the
    /// longest. Permits of a concurrency limit stay apart, because each ask has got one of its own.
    pub(super) fn report_last(&self, decisions: &mut [Decision]) {
        for group in self.groups.iter().filter(|group| group.terms.algorithm() != Algorithm::Concurrency) {
            if let Some(last) = group.places.last().map(|last| decisions[*last]) {
                group.places.iter().for_each(|place| decisions[*place] = last);
            }
        }
    }
}

/// Returns false if no state is asked for twice. Few asks are compared without sorting; for more it returns true. A
/// wrong `true` only costs the sort; the groups are found by it.
#[inline]
fn has_any<'a>(mut asks: impl ExactSizeIterator<Item = Option<(&'a StateKey, Ask)>> + Clone) -> bool {
    if asks.len() > FEW {
        return true;
    }
    while let Some(ask) = asks.next() {
        let is_of =
            |account: &StateKey| asks.clone().flatten().any(|(other, _)| account.is_same_state(other));
        if ask.is_some_and(|(account, _)| is_of(account)) {
            return true;
        }
    }
    false
}

impl Group<'_> {
    /// Returns the one ask that equals them all, if there is one. Under a sum, a leaky bucket or a pacer would report
    /// one delay, and a concurrency limit would grant one permit. These return `None`, and so do asks with different
    /// max waits.
    fn as_one(&self) -> Option<Ask> {
        match self.terms {
            AlgorithmParams::LeakyBucket(_) | AlgorithmParams::Pacer(_) | AlgorithmParams::Concurrency(_) => {
                return None;
            }
            AlgorithmParams::TokenBucket(_)
            | AlgorithmParams::FixedWindow(_)
            | AlgorithmParams::Calendar(_)
            | AlgorithmParams::SlidingLog(_)
            | AlgorithmParams::SlidingWindow(_) => {}
        }
        let first = self.asks.first()?;
        let cost = self.asks.iter().fold(0_u64, |sum, ask| sum.saturating_add(ask.units()));
        let is_alike = self.asks.iter().all(|ask| ask.max_wait == first.max_wait);
        is_alike.then(|| Ask { cost: Cost::of(cost), ..*first })
    }

    /// Returns the decision on asks that are decided one after the other. A denial reports the shortest wait after
    /// which all asks of the group pass, found by binary search. That takes at most 64 replays of the group.
    fn peek_in_order(&self, first: Decision, state: &State, now: Timestamp) -> Decision {
        let passes = |wait: u64| self.passes(state, now.saturating_add(Ticks::new(wait)));
        if !first.is_allowed() && !matches!(first.verdict_in_ticks(), Verdict::Denied { .. }) {
            return first;
        }
        if passes(0) {
            return first;
        }
        // Once the state is clear, waiting changes nothing any more.
        let longest = self.terms.clear_at(state).since(now).get();
        if !passes(longest) {
            return first.impossible();
        }
        // An ask that is allowed at one time is allowed later, too.
        let (mut denied, mut passed) = (0, longest);
        while passed - denied > 1 {
            let middle = denied + (passed - denied) / 2;
            if passes(middle) { passed = middle } else { denied = middle }
        }
        first.with_retry_after(Ticks::new(passed))
    }

    fn passes(&self, state: &State, at: Timestamp) -> bool {
        let mut state = state.clone();
        self.asks.iter().all(|ask| self.terms.decide(&mut state, at, *ask, 0).is_allowed())
    }
}
