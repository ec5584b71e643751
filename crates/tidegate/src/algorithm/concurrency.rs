//! Concurrency: so many in flight, each with a lease.
//!
//! ```text
//!   max 3        #1 |=========| released
//!                #2 |=====|~~~~~~~~~~~~~| died: comes back when its lease ends
//!                #3     |====|=====|====| renewed twice
//!   refused            ^ until #1 is back
//! ```
//!
//! At most `max` at every instant. An allowed ask gets a [`PermitId`]; releasing it, or the end of its lease,
//! gives the place back. Permits are numbered and never reused while time goes on, so a release that comes
//! too late frees nobody else's place.
//!
//! Nobody knows when a holder will be done: `retry_after` is an upper bound, the end of the leases that
//! would make room. For the same reason no later place can be promised, and patience changes nothing here.

use std::collections::{BTreeMap, BTreeSet};

use super::Decide;
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId, Room, Verdict};
use crate::limit::Problem;
use crate::receipt::Receipt;
use crate::time::{Ticks, Timestamp};

/// The most permits that one subject may have in flight.
pub(crate) const MAX_IN_FLIGHT: u64 = 1 << 20;

/// The numbers of a concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    max: u64,
    lease: Ticks,
}

/// Who is in flight for one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    by_permit: BTreeMap<PermitId, Holder>,
    /// The same ones in the order in which their leases end.
    by_end: BTreeSet<(Timestamp, PermitId)>,
    /// The places that all of them hold together.
    units: u64,
    /// The number of the next permit. It starts from the time, half as fast as the time goes: a state that
    /// was forgotten and begun anew never repeats a number.
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    until: Timestamp,
    units: u64,
}

impl Concurrency {
    pub(crate) const fn new(max: u64, lease: Ticks) -> Result<Concurrency, Problem> {
        if max > MAX_IN_FLIGHT {
            return Err(Problem::TooManyInFlight);
        }
        Ok(Concurrency { max, lease })
    }

    /// Gives a place back. Whether the permit was still holding one.
    pub fn release(&self, holders: &mut Holders, now: Timestamp, permit: PermitId) -> bool {
        self.settle(holders, now);
        holders.remove(permit).is_some()
    }

    /// Starts the lease anew. Whether the permit was still holding its place; an ended lease stays ended.
    pub fn renew(&self, holders: &mut Holders, now: Timestamp, permit: PermitId) -> bool {
        self.settle(holders, now);
        let Some(holder) = holders.remove(permit) else { return false };
        holders.insert(permit, Holder { until: now.saturating_add(self.lease), ..holder });
        true
    }

    /// Drops leases that have ended, and cuts those that are longer than they can be: the clock stepped back,
    /// or the lease was shortened.
    fn settle(&self, holders: &mut Holders, now: Timestamp) {
        while let Some((_, permit)) = holders.by_end.first().copied().filter(|(until, _)| *until <= now) {
            holders.remove(permit);
        }
        let longest = now.saturating_add(self.lease);
        while let Some((_, permit)) = holders.by_end.last().copied().filter(|(until, _)| *until > longest) {
            if let Some(holder) = holders.remove(permit) {
                holders.insert(permit, Holder { until: longest, ..holder });
            }
        }
    }

    /// What [`Concurrency::settle`] would leave: the places held, and the end of each lease with its places.
    fn settled<'a>(&self, holders: &'a Holders, now: Timestamp) -> Settled<'a> {
        let ended = holders
            .by_end
            .range(..=(now, PermitId::LAST))
            .map(|(_, permit)| holders.units_of(*permit))
            .sum::<u64>();
        Settled { in_flight: holders.units - ended, longest: now.saturating_add(self.lease), holders, now }
    }

    fn judge(&self, settled: &Settled<'_>, ask: Ask) -> Verdict<Ticks> {
        if ask.units() > self.max || settled.now == Timestamp::LAST {
            return Verdict::Impossible;
        }
        if ask.units() <= self.max.saturating_sub(settled.in_flight) {
            return Verdict::NOW;
        }
        let mut places = settled.in_flight + ask.units() - self.max;
        let last = settled.leases().find(|(_, units)| {
            places = places.saturating_sub(*units);
            places == 0
        });
        Verdict::denied_for(last.map(|(until, _)| until.since(settled.now)))
    }

    fn report(&self, verdict: Verdict<Ticks>, settled: &Settled<'_>) -> Decision {
        let room = Room::of_units(self.max.saturating_sub(settled.in_flight));
        Decision::new(verdict, self.max, room, settled.longest_lease())
    }

    /// Takes the places under the next number.
    fn enter(&self, holders: &mut Holders, now: Timestamp, units: u64) -> Option<PermitId> {
        let number = if holders.next == 0 { now.ticks() / 2 + 1 } else { holders.next };
        holders.next = number.checked_add(1)?;
        let permit = PermitId::from_number(number)?;
        holders.insert(permit, Holder { until: now.saturating_add(self.lease), units });
        Some(permit)
    }
}

impl Decide for Concurrency {
    type State = Holders;

    fn decide(&self, holders: &mut Holders, now: Timestamp, ask: Ask) -> Decision {
        self.settle(holders, now);
        let verdict = self.judge(&self.settled(holders, now), ask);
        if !verdict.is_allowed() {
            return self.report(verdict, &self.settled(holders, now));
        }
        match self.enter(holders, now, ask.units()) {
            Some(permit) => self.report(verdict, &self.settled(holders, now)).with_permit(permit),
            None => self.report(Verdict::Impossible, &self.settled(holders, now)),
        }
    }

    fn peek(&self, holders: &Holders, now: Timestamp, ask: Ask) -> Decision {
        let settled = self.settled(holders, now);
        self.report(self.judge(&settled, ask), &settled)
    }

    /// Places in flight go back with their permit only.
    fn adjust(&self, _: &mut Holders, _: Timestamp, _: Adjustment) -> Adjusted {
        Adjusted::NeedsPermit
    }

    fn clear_at(&self, holders: &Holders) -> Timestamp {
        let numbers_free_at = Timestamp::from_ticks(holders.next.saturating_mul(2));
        holders.by_end.last().map_or(numbers_free_at, |(until, _)| numbers_free_at.max(*until))
    }

    fn give_back(&self, holders: &mut Holders, now: Timestamp, receipt: Receipt) -> Adjusted {
        let Some(permit) = receipt.permit else { return Adjusted::NeedsPermit };
        Adjusted::whole_if(self.release(holders, now, permit))
    }
}

/// The holders as they stand at one instant.
struct Settled<'a> {
    in_flight: u64,
    longest: Timestamp,
    holders: &'a Holders,
    now: Timestamp,
}

impl Settled<'_> {
    /// The end of each lease that has not ended, soonest first, with the places that it frees.
    fn leases(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        let running = self.holders.by_end.range((self.now, PermitId::LAST)..);
        running.map(|(until, permit)| ((*until).min(self.longest), self.holders.units_of(*permit)))
    }

    fn longest_lease(&self) -> Ticks {
        let last = self.holders.by_end.last();
        last.map_or(Ticks::ZERO, |(until, _)| (*until).min(self.longest).since(self.now))
    }
}

impl Holders {
    fn insert(&mut self, permit: PermitId, holder: Holder) {
        self.units += holder.units;
        self.by_end.insert((holder.until, permit));
        self.by_permit.insert(permit, holder);
    }

    fn remove(&mut self, permit: PermitId) -> Option<Holder> {
        let holder = self.by_permit.remove(&permit)?;
        self.by_end.remove(&(holder.until, permit));
        self.units -= holder.units;
        Some(holder)
    }

    fn units_of(&self, permit: PermitId) -> u64 {
        self.by_permit.get(&permit).map_or(0, |holder| holder.units)
    }

    /// The memory behind it, in bytes: what two trees of this size take when they are half full.
    pub(super) fn bytes_held(&self) -> usize {
        self.by_permit.len() * 2 * (size_of::<(PermitId, Holder)>() + size_of::<(Timestamp, PermitId)>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Cost;

    const LEASE: Ticks = Ticks::new(1000);

    fn limit(max: u64) -> Concurrency {
        Concurrency::new(max, LEASE).unwrap()
    }

    #[test]
    fn a_state_that_was_forgotten_never_gives_a_number_twice() {
        let limit = limit(10);
        let start = Timestamp::from_ticks(500);
        let mut holders = Holders::default();
        let mut given: Vec<PermitId> = Vec::new();
        for _ in 0..100 {
            let permit = limit.decide(&mut holders, start, Ask::ONE).permit().unwrap();
            assert!(limit.release(&mut holders, start, permit));
            given.push(permit);
        }
        assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "a released number is never given again");
        let forgotten_at = limit.clear_at(&holders);
        assert!(forgotten_at < Timestamp::from_ticks(1000), "{forgotten_at:?}");
        let anew = limit.decide(&mut Holders::default(), forgotten_at, Ask::ONE).permit().unwrap();
        assert!(given.iter().all(|permit| *permit < anew));
    }

    #[test]
    fn whoever_holds_a_place_keeps_the_state_from_being_forgotten() {
        let limit = limit(1);
        let mut holders = Holders::default();
        assert!(limit.decide(&mut holders, Timestamp::from_ticks(7), Ask::ONE).is_allowed());
        assert_eq!(limit.clear_at(&holders), Timestamp::from_ticks(1007));
    }

    #[test]
    fn ended_leases_take_no_memory() {
        let limit = limit(2);
        let mut holders = Holders::default();
        for lease in 0..100 {
            assert!(limit.decide(&mut holders, Timestamp::from_ticks(lease * 1000), Ask::ONE).is_allowed());
            assert_eq!((holders.by_permit.len(), holders.by_end.len()), (1, 1));
        }
        assert_eq!(holders.bytes_held(), 2 * (24 + 16));
    }

    #[test]
    fn twenty_thousand_holders_cost_a_refusal_no_more_than_a_walk() {
        let limit = limit(20_000);
        let mut holders = Holders::default();
        for holder in 0..20_000 {
            assert!(limit.decide(&mut holders, Timestamp::from_ticks(holder / 40), Ask::ONE).is_allowed());
        }
        let all = Ask::new(Cost::of(20_000));
        let refused = limit.decide(&mut holders, Timestamp::from_ticks(500), all);
        assert_eq!(refused.verdict_in_ticks(), Verdict::Denied { retry_after: Ticks::new(999) });
        assert_eq!(limit.decide(&mut holders, Timestamp::from_ticks(1499), all).remaining(), 0);
    }

    #[test]
    fn a_take_is_given_back_with_its_permit() {
        let limit = limit(2);
        let mut holders = Holders::default();
        let start = Timestamp::from_ticks(7);
        let decision = limit.decide(&mut holders, start, Ask::ONE);
        let receipt = limit.receipt(&holders, start, Cost::ONE);
        assert_eq!(limit.give_back(&mut holders, start, receipt), Adjusted::NeedsPermit);
        let receipt = Receipt { permit: decision.permit(), ..limit.receipt(&holders, start, Cost::ONE) };
        assert_eq!(limit.give_back(&mut holders, start, receipt), Adjusted::Whole);
        assert_eq!(limit.peek(&holders, start, Ask::ONE).remaining(), 2);
    }

    #[test]
    fn nothing_begins_when_time_ends() {
        let limit = limit(2);
        let mut holders = Holders::default();
        let last = limit.decide(&mut holders, Timestamp::LAST, Ask::ONE);
        assert_eq!((last.verdict_in_ticks(), last.permit()), (Verdict::Impossible, None));
        let before = Timestamp::from_ticks(u64::MAX - 1);
        assert!(limit.decide(&mut holders, before, Ask::ONE).is_allowed());
    }
}
