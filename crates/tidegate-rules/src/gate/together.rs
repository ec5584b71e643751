//! What several requests ask together, once for each state: two requests of one key under one rule are one ask of
//! what both weigh, or nobody could say when they pass.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tidegate::{Algorithm, Ask, Cost, Decision, Subject};

use super::visit::{Asked, Visit};

/// All asks, and which of them each rule of each request stands for.
#[derive(Debug)]
pub(super) struct Together<'v> {
    pub(super) asks: Vec<(Subject<'v>, Ask)>,
    places: Vec<usize>,
}

impl<'v> Together<'v> {
    /// All asks of these requests, each under the limit that `subject` gives it.
    pub(super) fn of<'p: 'v>(
        visits: &'v [Visit<'p>],
        subject: impl Fn(&'v Asked<'p>) -> (Subject<'v>, Ask),
    ) -> Together<'v> {
        let each = visits.iter().flat_map(|visit| &visit.enforced);
        match visits {
            // The rules of one request are different ones.
            [] | [_] => {
                let asks: Vec<_> = each.map(subject).collect();
                Together { places: (0..asks.len()).collect(), asks }
            }
            _ => Together::joined(each, subject),
        }
    }

    fn joined<'p: 'v>(
        each: impl Iterator<Item = &'v Asked<'p>>,
        subject: impl Fn(&'v Asked<'p>) -> (Subject<'v>, Ask),
    ) -> Together<'v> {
        let mut known: HashMap<_, usize> = HashMap::new();
        let mut together = Together { asks: Vec::new(), places: Vec::new() };
        for asked in each {
            let (subject, ask) = subject(asked);
            let next = together.asks.len();
            // Each has a permit of its own.
            let has_permit = asked.limit().algorithm() == Algorithm::Concurrency;
            let place = match known.entry((asked.id, &asked.key)) {
                Entry::Occupied(twin) if !has_permit => *twin.get(),
                Entry::Occupied(_) => next,
                Entry::Vacant(free) => *free.insert(next),
            };
            together.places.push(place);
            match together.asks.get_mut(place) {
                Some((_, both)) => *both = join(*both, ask),
                None => together.asks.push((subject, ask)),
            }
        }
        together
    }

    /// The ask that each rule of each request is part of.
    pub(super) fn asks_of_each(&self) -> Vec<Ask> {
        self.places.iter().map(|place| self.asks[*place].1).collect()
    }

    /// What was decided about each rule of each request.
    pub(super) fn told(&self, decisions: &[Decision]) -> Vec<Decision> {
        self.places.iter().filter_map(|place| decisions.get(*place)).copied().collect()
    }
}

/// Both asks as one.
fn join(one: Ask, other: Ask) -> Ask {
    let cost = one.cost.get().saturating_add(other.cost.get());
    Ask { cost: Cost::new(cost).unwrap_or(one.cost), patience: one.patience.min(other.patience) }
}
