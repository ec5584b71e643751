//! The asks of one request as bids on states.
//!
//! Two asks for one state under one limit become one ask of the summed cost. If an ask may be delayed, or gets its own
//! permit, the asks stay separate, and the script decides them one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::{Algorithm, Ask, Ban, Cost, Decision, Key, Subject};

use crate::limits::StoredLimit;
use crate::script::{Bid, Role, StateName, TakeRecord, Unsupported};
use crate::store::Inner;

/// The maximum number of names that are compared pairwise.
const FEW: usize = 8;

/// The bids of one request, in the order of its asks.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The bids, at most one per ask.
    pub(super) bids: Arc<[Bid]>,
    /// The limit of each bid.
    pub(super) limits: Vec<Arc<StoredLimit>>,
    /// The asks as the caller gave them.
    asks: &'a [(Subject<'a>, Ask)],
    /// For each ask, the index of its bid and its cost, unless each ask has one bid.
    united: Option<Vec<(usize, Cost)>>,
    /// True if a state has several asks that stay separate.
    pub(super) has_twins: bool,
    /// True if a limit has a penalty. The bids of the ban and of the strikes are behind its own.
    pub(super) has_penalties: bool,
}

impl<'a> Request<'a> {
    /// Maps asks to bids. Fails if a script does not support one of the limits.
    ///
    /// The usual request has one ask, or asks for distinct states; it is only compared pairwise.
    pub(super) fn new(inner: &Inner, asks: &'a [(Subject<'a>, Ask)]) -> Result<Request<'a>, Unsupported> {
        if Subject::have_penalties(asks) {
            return Request::with_penalties(inner, asks);
        }
        let mut limits = Vec::with_capacity(asks.len());
        for (subject, _) in asks {
            limits.push(inner.stored(subject)?);
        }
        let bid = |((subject, ask), limit): (&(Subject<'a>, Ask), &Arc<StoredLimit>)| {
            Bid::new(limit.target(inner.prefix(), subject.key()), *ask)
        };
        let bids = asks.iter().zip(&limits).map(bid).collect();
        let (united, has_twins, has_penalties) = (None, false, false);
        let mut request = Request { bids, limits, asks, united, has_twins, has_penalties };
        let first = if asks.len() > 1 { firsts(&request.bids) } else { Vec::new() };
        if first.iter().enumerate().any(|(place, first)| place != *first) {
            request.unite(&first);
        }
        Ok(request)
    }

    /// Maps asks to bids if some have a penalty. Asks for one state stay separate, and then strikes are not counted: a
    /// gate never asks about one key of a rule twice.
    #[cold]
    fn with_penalties(inner: &Inner, asks: &'a [(Subject<'a>, Ask)]) -> Result<Request<'a>, Unsupported> {
        let (mut bids, mut limits, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (subject, ask) in asks {
            places.push((bids.len(), ask.cost));
            let own = [(*subject, *ask, Role::Limit)].into_iter();
            let of_penalty = subject.ban_and_strikes().into_iter().flatten().zip([Role::Ban, Role::Strikes]);
            let of_penalty = of_penalty.map(|(subject, role)| (subject, Ask::ONE, role));
            for (subject, ask, role) in own.chain(of_penalty) {
                let limit = inner.stored(&subject)?;
                bids.push(Bid::new(limit.target(inner.prefix(), subject.key()), ask).in_role(role));
                limits.push(limit);
            }
        }
        let has_twins = firsts(&bids).iter().enumerate().any(|(place, first)| place != *first);
        let (bids, united) = (bids.into(), Some(places));
        Ok(Request { bids, limits, asks, united, has_twins, has_penalties: true })
    }

    /// Merges the asks for one state. `first` holds the index of the first bid on each state. The cost of the merged
    /// bid is the sum, its longest wait the shorter one.
    fn unite(&mut self, first: &[usize]) {
        let (mut bids, mut places): (Vec<Bid>, Vec<usize>) = (Vec::new(), Vec::new());
        for (place, bid) in self.bids.iter().enumerate() {
            let is_first = first[place] == place;
            if is_first || !is_one_ask(bid.target.limit.algorithm()) {
                self.has_twins |= !is_first;
                self.limits.swap(bids.len(), place);
                places.push(bids.len());
                bids.push(bid.clone());
            } else {
                let united = places[first[place]];
                bids[united].ask = both(bids[united].ask, bid.ask);
                places.push(united);
            }
        }
        self.limits.truncate(bids.len());
        self.united = Some(places.into_iter().zip(self.bids.iter().map(|bid| bid.ask.cost)).collect());
        self.bids = bids.into();
    }

    /// Returns the key of a bid. For a merged bid, that of its first ask; all of them have the same.
    pub(super) fn key(&self, place: usize) -> &'a Key {
        let own = match self.bids[place].role {
            Role::Limit => place,
            Role::Ban => place - 1,
            Role::Strikes => place - 2,
        };
        let is_of_bid = |(of, _): &(usize, Cost)| *of == own;
        let first = self.united.as_ref().and_then(|asks| asks.iter().position(is_of_bid));
        self.asks[first.unwrap_or(place)].0.key()
    }

    /// Returns the strikes that began a ban, by these decisions, where there may be more of them under earlier numbers. The
    /// script knows and deletes only those under the current numbers.
    pub(super) fn earlier_strikes<'d>(
        &'d self,
        decisions: &'d [Decision],
    ) -> impl Iterator<Item = Subject<'a>> + 'd {
        let places = self.united.iter().filter(|_| self.has_penalties).flatten();
        places.zip(self.asks).zip(decisions).filter_map(|(((place, _), (subject, _)), decision)| {
            let [_, strikes] = subject.ban_and_strikes().filter(|_| decision.ban() == Some(Ban::Begun))?;
            self.limits.get(place + 2)?.has_predecessors().then_some(strikes)
        })
    }

    /// Returns the decision about each ask. Merged asks get the same decision, as in the library. A limit with a penalty
    /// gets that of its three bids.
    pub(super) fn spread(&self, decisions: Vec<Decision>) -> Vec<Decision> {
        let of_ask =
            |((place, _), (subject, _)): (&(usize, Cost), &(Subject<'_>, Ask))| match decisions[*place..] {
                [own, ban, strikes, ..] if self.has_penalties => subject.penalized(own, &ban, &strikes),
                _ => decisions[*place],
            };
        match &self.united {
            Some(places) => places.iter().zip(self.asks).map(of_ask).collect(),
            None => decisions,
        }
    }

    /// Returns the take of each ask with its cost. For a merged ask, its own part. The receipts of a merged bid can be
    /// refunded independently, each up to the cost of its ask.
    pub(super) fn shares<T: Clone>(
        &self,
        takes: &[Option<T>],
        taken: impl Fn(&mut T) -> &mut TakeRecord,
    ) -> Vec<Option<(Cost, T)>> {
        let share = |(place, cost): (usize, Cost)| {
            let mut take = takes.get(place)?.clone()?;
            if self.bids[place].ask.cost != cost {
                let whole = taken(&mut take);
                *whole = whole.part(&self.bids[place].target.limit, cost);
            }
            Some((cost, take))
        };
        match &self.united {
            Some(asks) => asks.iter().copied().map(share).collect(),
            None => self.bids.iter().map(|bid| bid.ask.cost).enumerate().map(share).collect(),
        }
    }
}

/// Returns for each bid the index of the first one on the same state. Beyond [`FEW`] bids a map is used, so that
/// thousands of limits are not compared quadratically.
fn firsts(bids: &[Bid]) -> Vec<usize> {
    if bids.len() <= FEW {
        let first = |name: &StateName| bids.iter().position(|other| other.target.name == *name);
        return bids.iter().map(|bid| first(&bid.target.name).unwrap_or_default()).collect();
    }
    let mut places = HashMap::with_capacity(bids.len());
    bids.iter().enumerate().map(|(place, bid)| *places.entry(&bid.target.name).or_insert(place)).collect()
}

/// Returns true if several asks for one state can be merged into one of the summed cost. With a leaky bucket or a
/// pacer, asks in one step have different delays. Permits are released one by one.
fn is_one_ask(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::TokenBucket
            | Algorithm::FixedWindow
            | Algorithm::Calendar
            | Algorithm::SlidingLog
            | Algorithm::SlidingWindow
    )
}

/// Merges two asks for one state. A cost that overflows is too large for any limit.
fn both(one: Ask, other: Ask) -> Ask {
    let cost = Cost::of(one.cost.get().saturating_add(other.cost.get()));
    Ask::new(cost).max_wait_in_ticks(one.max_wait.min(other.max_wait))
}
