//! Says whether what was decided is within its bounds, over every interval.
//!
//! When a server decided is not known, only when it was asked and when the answer was there.
//! So a decision counts in an interval only if both lie in it, and a loss of state counts if it may lie in it:
//! what is called a breach is one, whatever happened in between.

mod bound;
mod decided;
mod sweep;

use std::collections::BTreeMap;
use std::time::Duration;

pub use bound::Bound;
pub use decided::{Breach, By, Decided};
use sweep::sweep;

/// What was decided, by key.
#[derive(Debug)]
pub struct Judge {
    keys: BTreeMap<String, Vec<Decided>>,
}

/// What was found to be within a bound: so that an empty log does not pass for a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Keys with something admitted.
    pub keys: usize,
    /// The cost that was admitted.
    pub admitted: u64,
    /// How much more there could have been in the fullest interval, in whole units; nothing without any.
    pub room: Option<u64>,
}

impl Judge {
    /// Takes a log, in any order.
    pub fn new(log: impl IntoIterator<Item = Decided>) -> Judge {
        let mut keys: BTreeMap<String, Vec<Decided>> = BTreeMap::new();
        for decided in log {
            keys.entry(decided.key.clone()).or_default().push(decided);
        }
        Judge { keys }
    }

    /// Decisions of the shared store: at most burst + rate·t in every interval t (D-a),
    /// and one burst more for each loss of state that may lie in it (D-b), and more for a split (D-c).
    pub fn shared(&self, bound: &Bound) -> Result<Seen, Breach> {
        self.within(bound, |by| matches!(by, By::Redis | By::Memory))
    }

    /// Decisions of nodes on their own: at most n·max(1, ⌊burst ÷ n⌋) + rate·t in every interval t (D-d).
    pub fn local(&self, bound: &Bound, nodes: u64) -> Result<Seen, Breach> {
        self.within(&bound.shared_by(nodes), |by| by == By::Local)
    }

    /// The decisions of all servers together.
    pub fn all(&self, bound: &Bound) -> Result<Seen, Breach> {
        self.within(bound, |_| true)
    }

    /// Nothing is admitted because the store has failed and the rule says `closed` (D-d).
    pub fn closed(&self) -> Result<(), Breach> {
        let found = self.decided().find(|decided| decided.by == By::Closed && decided.is_allowed);
        found.map_or(Ok(()), |found| Err(Breach::Closed { key: found.key.clone(), asked: found.asked }))
    }

    /// Nothing at all is admitted in an outage: asked after it began and answered before it ended (D-d).
    pub fn nothing_between(&self, from: Duration, to: Duration) -> Result<(), Breach> {
        let is_in =
            |decided: &&Decided| decided.is_allowed && decided.asked >= from && decided.answered <= to;
        let found = self.decided().find(is_in);
        found.map_or(Ok(()), |found| Err(Breach::Outage { key: found.key.clone(), asked: found.asked }))
    }

    /// What was admitted because the rule says `open` was counted, all of it (D-d).
    pub fn open(&self, counted: u64) -> Result<(), Breach> {
        let is_open = |decided: &&Decided| decided.by == By::Open && decided.is_allowed;
        let admitted = self.decided().filter(is_open).count() as u64;
        if admitted == counted { Ok(()) } else { Err(Breach::Open { admitted, counted }) }
    }

    /// What a store has charged a key is what was admitted there, and at most once for everything that it may
    /// have decided without our hearing of it (D-g). The limit must not have regained anything meanwhile.
    pub fn charged(&self, key: &str, charged: u64) -> Result<(), Breach> {
        let decided = self.keys.get(key).map(Vec::as_slice).unwrap_or_default();
        let sum = |is_meant: fn(&Decided) -> bool| {
            decided.iter().filter(|decided| is_meant(decided)).map(|decided| decided.cost).sum::<u64>()
        };
        let heard = |decided: &Decided| matches!(decided.by, By::Redis | By::Memory) && decided.is_allowed;
        let unheard = |decided: &Decided| matches!(decided.by, By::Local | By::Open | By::Closed);
        let at_least = sum(heard);
        let at_most = at_least + sum(unheard);
        if (at_least..=at_most).contains(&charged) {
            return Ok(());
        }
        Err(Breach::Charged { key: key.to_owned(), charged, at_least, at_most })
    }

    fn within(&self, bound: &Bound, is_meant: fn(By) -> bool) -> Result<Seen, Breach> {
        let mut seen = Seen { keys: 0, admitted: 0, room: None };
        for (key, decided) in &self.keys {
            let admitted = decided.iter().filter(|decided| decided.is_allowed && is_meant(decided.by));
            let admitted: Vec<&Decided> = admitted.collect();
            let Some(room) = sweep(key, &admitted, bound)? else { continue };
            seen.keys += 1;
            seen.admitted += admitted.iter().map(|decided| decided.cost).sum::<u64>();
            seen.room = Some(seen.room.map_or(room, |least| least.min(room)));
        }
        Ok(seen)
    }

    fn decided(&self) -> impl Iterator<Item = &Decided> {
        self.keys.values().flatten()
    }
}

#[cfg(test)]
mod tests;
