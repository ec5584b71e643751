//! The asks of one request as bids on states.
//!
//! One state that is asked for twice under one limit is one ask of the summed cost. Where an ask may be delayed, or gets
//! a permit of its own, the asks stay apart, and the script decides them one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate::{Algorithm, Ask, Cost, Decision, Key, Subject};

use crate::limits::StoredLimit;
use crate::script::{Bid, Taken, Unsupported};
use crate::store::Inner;

/// The bids of one request, in the order of its asks.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) bids: Vec<Bid>,
    pub(super) limits: Vec<Arc<StoredLimit>>,
    pub(super) keys: Vec<&'a Key>,
    /// For each ask, the place of its bid and its cost.
    asks: Vec<(usize, Cost)>,
    /// A state is asked for more than once, and its asks stay apart.
    pub(super) has_twins: bool,
}

impl<'a> Request<'a> {
    pub(super) fn new(inner: &Inner, asks: &[(Subject<'a>, Ask)]) -> Result<Request<'a>, Unsupported> {
        let count = asks.len();
        let mut request = Request {
            bids: Vec::with_capacity(count),
            limits: Vec::with_capacity(count),
            keys: Vec::with_capacity(count),
            asks: Vec::with_capacity(count),
            has_twins: false,
        };
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        for (subject, ask) in asks {
            let limit = inner.stored(subject)?;
            let bid = Bid::new(limit.target(inner.prefix(), subject.key()), *ask);
            let known = if count > 1 { places.get(&bid.target.name).copied() } else { None };
            match known {
                Some(place) if is_one_ask(bid.target.limit.algorithm()) => {
                    request.bids[place].ask = both(request.bids[place].ask, *ask);
                    request.asks.push((place, ask.cost));
                    continue;
                }
                Some(_) => request.has_twins = true,
                None if count > 1 => {
                    places.insert(bid.target.name.clone(), request.bids.len());
                }
                None => {}
            }
            request.asks.push((request.bids.len(), ask.cost));
            request.bids.push(bid);
            request.limits.push(limit);
            request.keys.push(subject.key());
        }
        Ok(request)
    }

    /// The decision about each ask.
    pub(super) fn spread(&self, decisions: &[Decision]) -> Vec<Decision> {
        self.asks.iter().map(|(place, _)| decisions[*place]).collect()
    }

    /// The take of each ask, with its cost; of an ask that was taken together with another, its own part.
    pub(super) fn shares<T: Clone>(
        &self,
        takes: &[Option<T>],
        taken: impl Fn(&mut T) -> &mut Taken,
    ) -> Vec<Option<(Cost, T)>> {
        let share = |(place, cost): &(usize, Cost)| {
            let mut take = takes.get(*place)?.clone()?;
            if self.bids[*place].ask.cost != *cost {
                let whole = taken(&mut take);
                *whole = whole.part(&self.bids[*place].target.limit, *cost);
            }
            Some((*cost, take))
        };
        self.asks.iter().map(share).collect()
    }
}

/// Returns true if several asks for one state are one ask of the summed cost.
fn is_one_ask(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::TokenBucket | Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::SlidingWindow
    )
}

/// The ask that two asks for one state are. A cost that cannot be summed is too much for any limit.
fn both(one: Ask, other: Ask) -> Ask {
    let cost = Cost::of(one.cost.get().saturating_add(other.cost.get()));
    Ask { cost, patience: one.patience.min(other.patience) }
}
