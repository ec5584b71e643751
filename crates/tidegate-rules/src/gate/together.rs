//! The combined asks of several requests, one per state. Two requests of one key under one rule become one ask with the
//! sum of both costs; otherwise no retry time could be computed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use smallvec::SmallVec;
use tidegate_core::{Algorithm, Ask, Cost, DecidedBy, Decision, Decisions, Subject};

use super::matched_rules::{Asked, MatchedRules};

/// The decision about one rule of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decided<'d> {
    pub(super) decision: &'d Decision,
    pub(super) by: DecidedBy,
    /// True if it is also the decision about an earlier request of the unit, which has the same key.
    pub(super) is_repeated: bool,
}

impl<'d> Decided<'d> {
    /// Returns the decision about the ask at this index.
    pub(super) fn at(place: usize, decisions: &'d Decisions) -> Decided<'d> {
        Decided { decision: &decisions.each()[place], by: decisions.decided_by(place), is_repeated: false }
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// Returns true if the request was allowed by a fail-open rule, which counts nothing while the remote store is
    /// down.
    pub(super) fn is_uncounted(&self) -> bool {
        self.by == DecidedBy::Open && self.is_allowed()
    }
}

/// The number of asks and decisions of a request that need no allocation.
const FEW: usize = 4;

/// The decisions about the rules of one request, in their order.
pub(super) type OwnDecisions<'d> = SmallVec<[Decided<'d>; FEW]>;

/// All asks, with the mapping from each rule of each request to its ask.
#[derive(Debug)]
pub(super) struct Together<'v> {
    pub(super) asks: Asks<'v>,
    /// The index of the ask of each rule of each request, and true if an earlier request has the same one; `None` if each
    /// has its own.
    places: Option<Vec<(usize, bool)>>,
}

/// The asks of rules, in their order.
pub(super) type Asks<'v> = SmallVec<[(Subject<'v>, Ask); FEW]>;

impl<'v> Together<'v> {
    /// Combines the asks of these requests, with receipts if they are tracked.
    pub(super) fn of<'p: 'v>(visits: &'v [MatchedRules<'p>], is_tracked: bool) -> Together<'v> {
        // The rules of one request are distinct.
        if let [visit] = visits {
            let mut asks = Asks::new();
            visit.put_asks(is_tracked, &mut asks);
            return Together { asks, places: None };
        }
        let each = visits.iter().flat_map(|visit| &visit.enforced);
        Together::joined(each.map(|asked| (asked, asked.subject(is_tracked))))
    }

    fn joined<'p: 'v>(each: impl Iterator<Item = (&'v Asked<'p>, Subject<'v>)>) -> Together<'v> {
        let mut known: HashMap<_, usize> = HashMap::new();
        let (mut asks, mut places) = (Asks::new(), Vec::new());
        for (asked, subject) in each {
            let next = asks.len();
            // Each request gets its own permit.
            let has_permit = asked.limit().algorithm() == Algorithm::Concurrency;
            let place = match known.entry((asked.id, &asked.key)) {
                Entry::Occupied(twin) if !has_permit => *twin.get(),
                Entry::Occupied(_) => next,
                Entry::Vacant(free) => *free.insert(next),
            };
            places.push((place, place < next));
            match asks.get_mut(place) {
                Some((_, both)) => *both = join(*both, asked.ask),
                None => asks.push((subject, asked.ask)),
            }
        }
        Together { asks, places: Some(places) }
    }

    /// Returns the decisions about these rules, numbered over all requests.
    pub(super) fn own<'d>(&self, decisions: &'d Decisions, rules: Range<usize>) -> OwnDecisions<'d> {
        let place = |rule| self.places.as_ref().map_or((rule, false), |places| places[rule]);
        let of_place = |(place, is_repeated)| Decided { is_repeated, ..Decided::at(place, decisions) };
        rules.map(|rule| of_place(place(rule))).collect()
    }
}

/// Combines two asks into one.
fn join(one: Ask, other: Ask) -> Ask {
    let cost = one.cost.get().saturating_add(other.cost.get());
    Ask::new(Cost::new(cost).unwrap_or(one.cost)).max_wait_in_ticks(one.max_wait.min(other.max_wait))
}
