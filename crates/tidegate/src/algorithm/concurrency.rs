//! Concurrency: so many in flight, each with a lease.
//!
//! ```text
//!   max 3        #1 |=========| released
//!                #2 |=====|~~~~~~~~~~~~~| died: comes back when its lease ends
//!                #3     |====|=====|====| renewed twice
//!   refused            ^ until #1 is back
//! ```
//!
//! At most `max` at every instant. An allowed ask gets a [`Permit`]; releasing it, or the end of its lease,
//! gives the place back. Permits are numbered and never reused while time goes on, so a release that comes
//! too late frees nobody else's place.
//!
//! Nobody knows when a holder will be done: `retry_after` is an upper bound, the end of the leases that
//! would make room. For the same reason no later place can be promised, and patience changes nothing here.

use super::Decide;
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, Outcome, Permit, Room};
use crate::limit::Problem;
use crate::time::{Ticks, Timestamp};

/// The most permits that one subject may have in flight.
pub(crate) const MAX_IN_FLIGHT: u64 = 1 << 20;

/// The numbers of a concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    max: u64,
    lease: Ticks,
}

/// Who is in flight for one subject, in the order of their permits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    list: Vec<Holder>,
    /// The number of the next permit. It starts from the time, half as fast as the time goes: a state that
    /// was forgotten and begun anew never repeats a number.
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    permit: Permit,
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
    pub fn release(&self, holders: &mut Holders, now: Timestamp, permit: Permit) -> bool {
        let Some(index) = holders.find(permit) else { return false };
        let holder = holders.list.remove(index);
        self.holds(&holder, now)
    }

    /// Starts the lease anew. Whether the permit was still holding its place; an ended lease stays ended.
    pub fn renew(&self, holders: &mut Holders, now: Timestamp, permit: Permit) -> bool {
        let Some(index) = holders.find(permit) else { return false };
        let holder = &mut holders.list[index];
        let holds = self.holds(holder, now);
        if holds {
            holder.until = now.saturating_add(self.lease);
        }
        holds
    }

    /// The end of a lease, cut to what can be left of one.
    fn until(&self, holder: &Holder, now: Timestamp) -> Timestamp {
        holder.until.min(now.saturating_add(self.lease))
    }

    fn holds(&self, holder: &Holder, now: Timestamp) -> bool {
        now < self.until(holder, now)
    }

    fn in_flight(&self, holders: &Holders, now: Timestamp) -> u64 {
        holders.list.iter().filter(|holder| self.holds(holder, now)).map(|holder| holder.units).sum()
    }

    fn judge(&self, holders: &Holders, now: Timestamp, ask: Ask) -> Outcome {
        if ask.units() > self.max || now == Timestamp::LAST {
            return Outcome::Impossible;
        }
        let in_flight = self.in_flight(holders, now);
        if ask.units() <= self.max.saturating_sub(in_flight) {
            return Outcome::NOW;
        }
        self.first_room(holders, now, in_flight + ask.units() - self.max)
    }

    /// The refusal until the leases have ended that hold so many places.
    fn first_room(&self, holders: &Holders, now: Timestamp, places: u64) -> Outcome {
        let ends = || holders.list.iter().map(|holder| (self.until(holder, now), holder.units));
        let mut ended = now;
        while let Some(end) = ends().map(|(until, _)| until).filter(|until| *until > ended).min() {
            let freed: u64 =
                ends().filter(|(until, _)| *until > now && *until <= end).map(|(_, units)| units).sum();
            if freed >= places {
                return Outcome::Denied { retry_after: end.since(now) };
            }
            ended = end;
        }
        Outcome::Impossible
    }

    fn report(&self, outcome: Outcome, holders: &Holders, now: Timestamp) -> Decision {
        let longest = holders.list.iter().map(|holder| self.until(holder, now).since(now)).max();
        let room = Room::of_units(self.max.saturating_sub(self.in_flight(holders, now)));
        Decision::new(outcome, self.max, room, longest.unwrap_or(Ticks::ZERO))
    }

    /// Cuts leases that are longer than they can be: the clock stepped back, or the lease was shortened.
    fn clamp(&self, holders: &mut Holders, now: Timestamp) {
        for holder in &mut holders.list {
            holder.until = self.until(holder, now);
        }
    }

    /// Takes the places under the next number.
    fn enter(&self, holders: &mut Holders, now: Timestamp, units: u64) -> Option<Permit> {
        let number = if holders.next == 0 { now.ticks() / 2 + 1 } else { holders.next };
        holders.next = number.checked_add(1)?;
        let permit = Permit::from_number(number)?;
        holders.list.retain(|holder| self.holds(holder, now));
        holders.list.push(Holder { permit, until: now.saturating_add(self.lease), units });
        Some(permit)
    }
}

impl Decide for Concurrency {
    type State = Holders;

    fn decide(&self, holders: &mut Holders, now: Timestamp, ask: Ask) -> Decision {
        self.clamp(holders, now);
        let outcome = self.judge(holders, now, ask);
        if !outcome.is_allowed() {
            return self.report(outcome, holders, now);
        }
        match self.enter(holders, now, ask.units()) {
            Some(permit) => self.report(outcome, holders, now).with_permit(permit),
            None => self.report(Outcome::Impossible, holders, now),
        }
    }

    fn peek(&self, holders: &Holders, now: Timestamp, ask: Ask) -> Decision {
        self.report(self.judge(holders, now, ask), holders, now)
    }

    /// Places in flight go back with their permit only.
    fn adjust(&self, _: &mut Holders, _: Timestamp, _: Adjustment) -> Adjusted {
        Adjusted::NeedsPermit
    }

    fn clear_at(&self, holders: &Holders) -> Timestamp {
        let numbers_free_at = Timestamp::from_ticks(holders.next.saturating_mul(2));
        holders.list.iter().map(|holder| holder.until).fold(numbers_free_at, Timestamp::max)
    }
}

impl Holders {
    /// The memory behind it, in bytes.
    pub(super) fn bytes_held(&self) -> usize {
        self.list.capacity() * size_of::<Holder>()
    }

    fn find(&self, permit: Permit) -> Option<usize> {
        self.list.binary_search_by_key(&permit, |holder| holder.permit).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Ticks = Ticks::new(1000);

    fn limit(max: u64) -> Concurrency {
        Concurrency::new(max, LEASE).unwrap()
    }

    #[test]
    fn a_state_that_was_forgotten_never_gives_a_number_twice() {
        let limit = limit(10);
        let start = Timestamp::from_ticks(500);
        let mut holders = Holders::default();
        let mut given: Vec<Permit> = Vec::new();
        for _ in 0..100 {
            let permit = limit.decide(&mut holders, start, Ask::ONE).permit().unwrap();
            assert!(limit.release(&mut holders, start, permit));
            given.push(permit);
        }
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
            assert_eq!(holders.list.len(), 1);
        }
        assert_eq!(holders.bytes_held(), holders.list.capacity() * 24);
    }

    #[test]
    fn nothing_begins_when_time_ends() {
        let limit = limit(2);
        let mut holders = Holders::default();
        let last = limit.decide(&mut holders, Timestamp::LAST, Ask::ONE);
        assert_eq!((last.outcome(), last.permit()), (Outcome::Impossible, None));
        let before = Timestamp::from_ticks(u64::MAX - 1);
        assert!(limit.decide(&mut holders, before, Ask::ONE).is_allowed());
    }
}
