//! Several asks for one state in one request, decided one after the other.
//!
//! A denial reports the wait after which all of them pass.
//!
//! An example are two rules that share a counter. Asks of algorithms without delays and permits are merged instead; see
//! `request`.

use std::collections::BTreeMap;

use tidegate_core::{Algorithm, Ask, Cost, Decision, Limit, State, Ticks, Timestamp, Verdict};

use crate::script::{Bid, Decided, DecidedBid, span};

/// The asks for one state, by their indexes.
#[derive(Debug)]
pub(super) struct Twins {
    /// The indexes, ascending; at least two.
    pub(super) places: Vec<usize>,
}

impl Twins {
    /// Returns all states with more than one ask.
    pub(super) fn of(bids: &[Bid]) -> Vec<Twins> {
        let mut by_name: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (place, bid) in bids.iter().enumerate() {
            by_name.entry(&bid.target.name).or_default().push(place);
        }
        by_name.into_values().filter(|places| places.len() > 1).map(|places| Twins { places }).collect()
    }

    /// Returns the limit, which all of the asks share.
    fn limit<'b>(&self, bids: &'b [Bid]) -> &'b Limit {
        &bids[self.places[0]].target.limit
    }

    /// Returns a bid on the permits of all asks together. `None` for other algorithms, where the state is sufficient.
    pub(super) fn permits(&self, bids: &[Bid]) -> Option<Bid> {
        if self.limit(bids).algorithm() != Algorithm::Concurrency {
            return None;
        }
        let units =
            self.places.iter().fold(0_u64, |sum, place| sum.saturating_add(bids[*place].ask.cost.get()));
        Some(Bid { ask: Ask::new(Cost::of(units)), ..bids[self.places[0]].clone() })
    }

    /// Makes all asks report the remaining quota of the last one and its delay, which is the longest. Each has its own
    /// permit.
    pub(super) fn report_allowed(&self, bids: &[Bid], decided: &mut Decided) {
        if self.limit(bids).algorithm() != Algorithm::Concurrency
            && let Some(last) = self.places.last().map(|last| decided.bids[*last].decision)
        {
            self.places.iter().for_each(|place| decided.bids[*place].decision = last);
        }
    }

    /// Makes all asks report the wait after which the whole sequence is allowed.
    pub(super) fn report_denied(&self, bids: &[Bid], decided: &mut Decided, permits: Option<Decision>) {
        let DecidedBid { decision: first, state, .. } = &decided.bids[self.places[0]];
        let decision = match permits {
            _ if first.verdict_in_ticks() == Verdict::Impossible => *first,
            Some(of_all) if of_all.is_allowed() => *first,
            Some(of_all) => with_verdict(first, of_all.verdict_in_ticks()),
            None => self.in_order(bids, *first, state, decided.now),
        };
        self.places.iter().for_each(|place| decided.bids[*place].decision = decision);
    }

    /// Finds the wait by bisection over the library's own decisions, to the tick. At most 66 sequences are simulated.
    fn in_order(&self, bids: &[Bid], first: Decision, state: &State, now: Timestamp) -> Decision {
        let limit = self.limit(bids);
        let passes = |wait: u64| {
            let (mut state, at) = (state.clone(), now.saturating_add(span(wait)));
            self.places.iter().all(|place| limit.decide(&mut state, at, bids[*place].ask).is_allowed())
        };
        if passes(0) {
            return first;
        }
        // Once the key is full, a longer wait has no effect.
        let longest = limit.clear_at(state).since(now).get();
        if !passes(longest) {
            return with_verdict(&first, Verdict::Impossible);
        }
        // A sequence that is allowed at one time is allowed later, too.
        let (mut denied, mut passed) = (0, longest);
        while passed - denied > 1 {
            let middle = denied + (passed - denied) / 2;
            if passes(middle) { passed = middle } else { denied = middle }
        }
        with_verdict(&first, Verdict::Denied { retry_after: span(passed) })
    }
}

/// Returns the decision with another verdict and the same numbers.
fn with_verdict(decision: &Decision, verdict: Verdict<Ticks>) -> Decision {
    let (limit, remaining) = (decision.limit(), decision.remaining());
    Decision::from_remote(verdict, limit, remaining, decision.reset_after_in_ticks())
}
