//! Concurrency limit: a maximum number in flight, each with a lease.
//!
//! ```text
//!   max 3        #1 |=========| released
//!                #2 |=====|~~~~~~~~~~~~~| crashed: freed when its lease ends
//!                #3     |====|=====|====| renewed twice
//!   denied             ^ until #1 is released
//! ```
//!
//! At most `max` units are in flight at every instant. An allowed ask gets a [`PermitId`]. Its units are freed when it
//! is released, or when its lease ends. A permit is a number from a sequence that is never reused while time advances,
//! so a late release never frees another holder's units. Under a random nonce, which comes with the ask, it cannot be
//! guessed.
//!
//! The time at which a holder finishes is unknown: `retry_after` is an upper bound, the end of the leases that would
//! free enough. For the same reason no later slot can be promised, and a max wait has no effect here.

use std::collections::BTreeMap;

use super::journal::Journal;
use super::state::StateFootprint;
use super::{Decide, Words};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId, Remaining, Verdict};
use crate::limit::Problem;
use crate::receipt::Receipt;
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The largest number of units that one key may have in flight.
pub(crate) const MAX_IN_FLIGHT: u64 = 1 << 20;

/// The number of leases that a denial examines to find its retry time. Beyond it, the denial reports the end of all
/// leases.
const MOST_LEASES_LOOKED_AT: usize = 64;

/// The numbers of a concurrency limit.
#[doc(alias("semaphore", "bulkhead", "concurrency limit", "lease"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    max: u64,
    lease: Ticks,
}

/// The holders of permits of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    by_permit: BTreeMap<PermitId, Holder>,
    /// The units of each holder, in the order in which the leases end.
    by_end: BTreeMap<(Timestamp, PermitId), u64>,
    /// The units of all holders together.
    units: u64,
    /// The next number of the permit sequence. It starts from the time and advances half as fast as the time: a state
    /// that was dropped and created again never repeats a number.
    next: u64,
    /// The last permit granted.
    newest: Option<PermitId>,
    /// The longest lease granted to a current holder. Under a rule the holders are one set across changes of its
    /// numbers, and each keeps its own lease.
    longest_lease: Ticks,
    /// The changes that a store has not written yet, if it writes holders individually.
    journal: Journal,
}

/// The end of a lease, and the units that it holds.
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

    /// Returns the maximum in flight.
    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    /// Releases a permit. Returns true if it was still held; an unknown or expired permit changes nothing.
    ///
    /// The leases of other holders are unchanged, whatever the lease of this limit: permits of one set may have been
    /// granted under different limits.
    pub fn release(&self, holders: &mut Holders, now: Timestamp, permit: PermitId) -> bool {
        holders.drop_ended(now);
        holders.remove(permit).is_some()
    }

    /// Restarts the lease from now. Returns true if the permit was still held; an ended lease stays ended.
    pub fn renew(&self, holders: &mut Holders, now: Timestamp, permit: PermitId) -> bool {
        holders.drop_ended(now);
        let Some(holder) = holders.remove(permit) else { return false };
        holders.lease(permit, holder.units, now, self.lease);
        true
    }

    /// Removes ended leases, and cuts leases that are longer than possible, after the clock stepped back.
    fn settle(&self, holders: &mut Holders, now: Timestamp) {
        holders.drop_ended(now);
        let longest = self.longest_end(holders, now);
        while let Some((_, permit)) = holders.last_end().filter(|(until, _)| *until > longest) {
            if let Some(holder) = holders.remove(permit) {
                holders.insert(permit, Holder { until: longest, ..holder });
            }
        }
    }

    /// Returns the holders as [`Concurrency::settle`] would leave them.
    fn settled<'a>(&self, holders: &'a Holders, now: Timestamp) -> LiveHolders<'a> {
        let ended: u64 = holders.by_end.range(..=(now, PermitId::LAST)).map(|(_, units)| units).sum();
        LiveHolders {
            in_flight: holders.units - ended,
            longest: self.longest_end(holders, now),
            holders,
            now,
        }
    }

    /// Returns the latest valid end of a lease: that of the longest lease if it were granted now. Clock readings merely
    /// out of order are tolerated.
    fn longest_end(&self, holders: &Holders, now: Timestamp) -> Timestamp {
        let longest = now.saturating_add(self.lease.max(holders.longest_lease));
        match holders.last_end() {
            Some((until, _)) if until.since(longest) <= OUT_OF_ORDER => until.max(longest),
            _ => longest,
        }
    }

    /// Returns the verdict. A denied ask passes at the latest when the leases that would free enough have ended.
    fn judge(&self, settled: &LiveHolders<'_>, ask: Ask) -> Verdict<Ticks> {
        if settled.now == Timestamp::LAST {
            return Verdict::Impossible;
        }
        let free = self.max.saturating_sub(settled.in_flight);
        Verdict::by_count(ask.units(), self.max, free, || {
            let mut places = settled.in_flight + ask.units() - self.max;
            let enough = settled.leases().take(MOST_LEASES_LOOKED_AT).find(|(_, units)| {
                places = places.saturating_sub(*units);
                places == 0
            });
            let wait = enough.map_or(settled.longest_lease(), |(until, _)| until.since(settled.now));
            Some(wait).filter(|wait| *wait < settled.now.left())
        })
    }

    /// Builds the decision; the key is full at the latest when the longest lease has ended.
    fn report(&self, verdict: Verdict<Ticks>, settled: &LiveHolders<'_>) -> Decision {
        let room = Remaining::of_units(self.max.saturating_sub(settled.in_flight));
        Decision::new(verdict, self.max, room, settled.longest_lease())
    }

    /// Decides like [`Decide::decide`]. The permit is the next number of the sequence under this nonce, and as hard to
    /// guess as the nonce. See [`Limit::decide_with_nonce`](crate::Limit::decide_with_nonce).
    #[must_use = "a decision that is not read limits nothing"]
    pub fn decide_with_nonce(&self, holders: &mut Holders, now: Timestamp, ask: Ask, nonce: u64) -> Decision {
        self.settle(holders, now);
        let verdict = self.judge(&self.settled(holders, now), ask);
        let permit = if verdict.is_allowed() { self.enter(holders, now, ask.units(), nonce) } else { None };
        let settled = self.settled(holders, now);
        match permit {
            Some(permit) => self.report(verdict, &settled).with_permit(permit),
            None if verdict.is_allowed() => self.report(Verdict::Impossible, &settled),
            None => self.report(verdict, &settled),
        }
    }

    /// Adds a holder of these units under the next permit.
    fn enter(&self, holders: &mut Holders, now: Timestamp, units: u64, nonce: u64) -> Option<PermitId> {
        if holders.next == 0 {
            holders.next = now.ticks() / 2 + 1;
        }
        let permit = holders.next_permit(nonce)?;
        holders.lease(permit, units, now, self.lease);
        holders.newest = Some(permit);
        Some(permit)
    }
}

impl StateFootprint for Concurrency {
    fn pack(&self) -> Words {
        [self.max, self.lease.get(), 0, 0, 0]
    }

    /// Returns the same holders: they are one set across changes of the numbers, each with its own lease.
    fn carry(&self, _: &Concurrency, holders: &Holders, _: Timestamp) -> Option<Holders> {
        (*holders != Holders::default()).then(|| holders.clone())
    }

    /// Returns zero: nothing is carried, because the set of holders is the same before and after the change.
    fn longest_carried(&self) -> Ticks {
        Ticks::ZERO
    }

    fn growth(&self, holders: Option<&Holders>) -> usize {
        Holders::GROWTH + if holders.is_none() { size_of::<Holders>() } else { 0 }
    }

    /// Returns the memory of one holder more than the maximum: it is reserved even if the ask will be denied.
    fn most_held(&self) -> usize {
        size_of::<Holders>() + (self.max as usize + 1) * Holders::GROWTH
    }

    fn words_after(&self, words: usize) -> usize {
        words.max(2) + 3
    }

    fn most_words(&self) -> usize {
        2 + 3 * (self.max as usize + 1)
    }
}

impl Decide for Concurrency {
    type State = Holders;

    /// Decides with a plain sequence number as the permit. [`Concurrency::decide_with_nonce`] grants one that cannot be
    /// guessed.
    fn decide(&self, holders: &mut Holders, now: Timestamp, ask: Ask) -> Decision {
        self.decide_with_nonce(holders, now, ask, 0)
    }

    fn peek(&self, holders: &Holders, now: Timestamp, ask: Ask) -> Decision {
        let settled = self.settled(holders, now);
        self.report(self.judge(&settled, ask), &settled)
    }

    /// Returns [`Adjusted::NeedsPermit`]: units in flight are freed only with their permit.
    fn adjust(&self, _: &mut Holders, _: Timestamp, _: Adjustment) -> Adjusted {
        Adjusted::NeedsPermit
    }

    fn clear_at(&self, holders: &Holders) -> Timestamp {
        holders.clear_at()
    }

    /// Returns the receipt with the newest permit, which is that of a take that was just allowed.
    fn receipt(&self, holders: &Holders, now: Timestamp, cost: Cost) -> Receipt {
        Receipt { permit: holders.newest, ..Receipt::new(cost, now, self.clear_at(holders)) }
    }

    fn give_back(&self, holders: &mut Holders, now: Timestamp, receipt: Receipt) -> Adjusted {
        let Some(permit) = receipt.permit else { return Adjusted::NeedsPermit };
        Adjusted::whole_if(self.release(holders, now, permit))
    }
}

/// The holders at one instant.
struct LiveHolders<'a> {
    in_flight: u64,
    longest: Timestamp,
    holders: &'a Holders,
    now: Timestamp,
}

impl LiveHolders<'_> {
    /// Returns the end of each running lease, soonest first, with the units that it frees.
    fn leases(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        let running = self.holders.by_end.range((self.now, PermitId::LAST)..);
        running.map(|((until, _), units)| ((*until).min(self.longest), *units))
    }

    /// Returns the time until the last lease ends.
    fn longest_lease(&self) -> Ticks {
        self.holders.last_end().map_or(Ticks::ZERO, |(until, _)| until.min(self.longest).since(self.now))
    }
}

impl Holders {
    /// Restores the holders. The sequence continues, and every permit keeps its number.
    pub(super) fn from_words(words: &[u64]) -> Option<Holders> {
        let ([next, longest_lease], leases) = words.split_first_chunk()?;
        let longest_lease = Ticks::new(*longest_lease);
        let mut holders = Holders { next: *next, longest_lease, ..Holders::default() };
        for lease in leases.chunks(3) {
            let [until, units, permit] = *lease else { return None };
            let permit =
                PermitId::from_number(permit).filter(|permit| !holders.by_permit.contains_key(permit))?;
            holders.units.checked_add(units)?;
            holders.insert(permit, Holder { until: Timestamp::from_ticks(until), units });
        }
        Some(holders)
    }

    /// Passes the words of the state: the sequence first, then each holder, soonest end first.
    pub(super) fn each_word(&self, put: &mut impl FnMut(u64)) {
        self.sequence().into_iter().for_each(&mut *put);
        self.leases().for_each(|(permit, lease)| {
            [lease[0], lease[1], permit.number()].into_iter().for_each(&mut *put);
        });
    }

    /// Returns the next number of the permit sequence, and the longest lease granted.
    pub(crate) fn sequence(&self) -> [u64; 2] {
        [self.next, self.longest_lease.get()]
    }

    /// Returns the number of holders.
    pub(crate) fn len(&self) -> usize {
        self.by_permit.len()
    }

    /// Returns the end of a holder's lease, and its units.
    pub(crate) fn lease_of(&self, permit: PermitId) -> Option<[u64; 2]> {
        self.by_permit.get(&permit).map(|holder| [holder.until.ticks(), holder.units])
    }

    /// Returns all permits with the ends of their leases and their units, soonest first.
    pub(crate) fn leases(&self) -> impl Iterator<Item = (PermitId, [u64; 2])> {
        self.by_end.iter().map(|(&(until, permit), &units)| (permit, [until.ticks(), units]))
    }

    /// Returns the journal of changes that a store has not written yet.
    pub(crate) fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Returns the time from which the state may be dropped.
    pub(crate) fn clear_at(&self) -> Timestamp {
        let numbers_free_at = Timestamp::from_ticks(self.next.saturating_mul(2));
        self.last_end().map_or(numbers_free_at, |(until, _)| numbers_free_at.max(until))
    }

    /// Returns the next permit of the sequence under this nonce. Zero and the permits of current holders are skipped.
    /// Two numbers of the sequence differ under one nonce, so two more tries than there are holders suffice.
    fn next_permit(&mut self, nonce: u64) -> Option<PermitId> {
        loop {
            let number = self.next ^ nonce;
            self.next = self.next.checked_add(1)?;
            let permit = PermitId::from_number(number);
            if let Some(permit) = permit.filter(|permit| !self.by_permit.contains_key(permit)) {
                return Some(permit);
            }
        }
    }

    /// Removes the holders whose leases have ended.
    fn drop_ended(&mut self, now: Timestamp) {
        while let Some((_, permit)) = self.first_end().filter(|(until, _)| *until <= now) {
            self.remove(permit);
        }
    }

    /// Starts a lease of this length.
    fn lease(&mut self, permit: PermitId, units: u64, now: Timestamp, lease: Ticks) {
        self.longest_lease = if self.by_end.is_empty() { lease } else { self.longest_lease.max(lease) };
        self.insert(permit, Holder { until: now.saturating_add(lease), units });
    }

    /// Adds a holder to both indexes, and to the journal.
    fn insert(&mut self, permit: PermitId, holder: Holder) {
        self.units += holder.units;
        self.journal.entered(permit);
        self.by_end.insert((holder.until, permit), holder.units);
        self.by_permit.insert(permit, holder);
    }

    /// Removes a holder from both indexes; `None` if it is unknown.
    fn remove(&mut self, permit: PermitId) -> Option<Holder> {
        let holder = self.by_permit.remove(&permit)?;
        self.by_end.remove(&(holder.until, permit));
        self.journal.left(permit);
        self.units -= holder.units;
        Some(holder)
    }

    fn first_end(&self) -> Option<(Timestamp, PermitId)> {
        self.by_end.first_key_value().map(|(end, _)| *end)
    }

    fn last_end(&self) -> Option<(Timestamp, PermitId)> {
        self.by_end.last_key_value().map(|(end, _)| *end)
    }

    /// The memory of one more holder: its share of two trees that are half full.
    pub(super) const GROWTH: usize = 2 * size_of::<(PermitId, Holder)>() * 2;

    /// Returns the heap memory, in bytes.
    pub(super) fn bytes_held(&self) -> usize {
        self.by_permit.len() * Holders::GROWTH
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

    /// Regression: the holder of one of two permits counted on from its own and released its neighbour's.
    #[test]
    fn a_permit_under_a_nonce_does_not_reveal_the_next_one() {
        let (limit, now) = (limit(2), Timestamp::from_ticks(500));
        let mut holders = Holders::default();
        let mut enter = |nonce| limit.decide_with_nonce(&mut holders, now, Ask::ONE, nonce).permit().unwrap();
        let (mine, neighbours) = (enter(0x1f83_d9ab_fb41_bd6b), enter(0x5be0_cd19_137e_2179));
        for step in 1..1000 {
            let guesses = [mine.number().wrapping_add(step), mine.number().wrapping_sub(step)];
            for guess in guesses.into_iter().filter_map(PermitId::from_number) {
                assert_ne!(guess, neighbours);
                assert!(!limit.release(&mut holders, now, guess));
            }
        }
        assert!(limit.release(&mut holders, now, neighbours));
    }

    #[test]
    fn the_same_nonces_give_the_same_permits() {
        let play = || {
            let (limit, mut holders) = (limit(4), Holders::default());
            let enter = |tick: u64| {
                let nonce = tick.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                limit.decide_with_nonce(&mut holders, Timestamp::from_ticks(tick), Ask::ONE, nonce)
            };
            (1..3000).step_by(300).map(enter).collect::<Vec<_>>()
        };
        assert_eq!(play(), play());
    }

    #[test]
    fn permits_of_one_instant_differ_whatever_their_nonces() {
        let (limit, now) = (limit(64), Timestamp::from_ticks(500));
        let mut holders = Holders::default();
        let first = limit.decide(&mut holders, now, Ask::ONE).permit().unwrap().number();
        // The same nonce repeatedly, one that would make the next permit zero, one that would repeat the first.
        let zero = first + 2;
        for (nonce, count) in [(7, 1), (zero, 1), (first ^ (first + 3), 1), (7, 8), (0, 52)] {
            for _ in 0..count {
                assert!(limit.decide_with_nonce(&mut holders, now, Ask::ONE, nonce).is_allowed());
            }
        }
        assert_eq!((holders.by_permit.len(), holders.units), (64, 64));
    }

    #[test]
    fn permits_keep_their_numbers_when_they_are_written_down() {
        let (limit, now) = (limit(9), Timestamp::from_ticks(500));
        let mut holders = Holders::default();
        let mut enter = |nonce| limit.decide_with_nonce(&mut holders, now, Ask::ONE, nonce).permit().unwrap();
        let permits = [enter(u64::MAX), enter(1 << 63), enter(12)];
        let words = |holders: &Holders| {
            let mut words = Vec::new();
            holders.each_word(&mut |word| words.push(word));
            words
        };
        let mut read = Holders::from_words(&words(&holders)).unwrap();
        assert_eq!(words(&read), words(&holders));
        let [one, other] =
            [&mut read, &mut holders].map(|state| limit.decide_with_nonce(state, now, Ask::ONE, 77).permit());
        assert_eq!(one, other, "the sequence goes on");
        for permit in permits {
            assert!(limit.renew(&mut read, now, permit) && limit.release(&mut read, now, permit));
        }
    }

    #[test]
    fn a_receipt_is_for_the_permit_of_its_take() {
        let (limit, now) = (limit(9), Timestamp::from_ticks(500));
        let mut holders = Holders::default();
        let mut take = |nonce| {
            let permit = limit.decide_with_nonce(&mut holders, now, Ask::ONE, nonce).permit();
            (permit.unwrap(), limit.receipt(&holders, now, Cost::ONE))
        };
        let (first, receipt) = take(0xa54f_f53a_5f1d_36f1);
        let (second, _) = take(0x510e_527f_ade6_82d1);
        assert_eq!(limit.give_back(&mut holders, now, receipt), Adjusted::Whole);
        assert!(!limit.release(&mut holders, now, first));
        assert!(limit.release(&mut holders, now, second));
    }

    #[test]
    fn a_permit_in_flight_keeps_the_state_live() {
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
        assert_eq!(holders.bytes_held(), 2 * (24 + 24));
    }

    #[test]
    fn a_denial_with_twenty_thousand_holders_examines_a_bounded_number_of_leases() {
        let count = if cfg!(miri) { 200 } else { 20_000 };
        let limit = limit(count);
        let mut holders = Holders::default();
        for holder in 0..count {
            let at = Timestamp::from_ticks(holder * 500 / count);
            assert!(limit.decide(&mut holders, at, Ask::ONE).is_allowed());
        }
        let all = Ask::new(Cost::of(count));
        let refused = limit.decide(&mut holders, Timestamp::from_ticks(500), all);
        let last = (count - 1) * 500 / count;
        assert_eq!(refused.verdict_in_ticks(), Verdict::Denied { retry_after: Ticks::new(last + 500) });
        let just_before = Timestamp::from_ticks(last + 999);
        assert!(!limit.decide(&mut holders, just_before, all).is_allowed());
    }

    #[test]
    fn readings_out_of_order_shorten_no_lease() {
        let limit = Concurrency::new(1, OUT_OF_ORDER).unwrap();
        let mut holders = Holders::default();
        let start = 1 << 40;
        let at = |ticks: u64| Timestamp::from_ticks(ticks);
        assert!(limit.decide(&mut holders, at(start), Ask::ONE).is_allowed());
        let stale = limit.decide(&mut holders, at(start - OUT_OF_ORDER.get()), Ask::ONE);
        assert_eq!(stale.retry_after(), Some(Ticks::new(2 * OUT_OF_ORDER.get()).to_duration()));
        assert!(!limit.decide(&mut holders, at(start + OUT_OF_ORDER.get() - 1), Ask::ONE).is_allowed());
        let stepped_back = limit.decide(&mut holders, at(start - OUT_OF_ORDER.get() - 1), Ask::ONE);
        assert_eq!(stepped_back.retry_after(), Some(OUT_OF_ORDER.to_duration()));
    }

    #[test]
    fn a_take_is_given_back_with_its_permit() {
        let limit = limit(2);
        let mut holders = Holders::default();
        let start = Timestamp::from_ticks(7);
        let _ = limit.decide(&mut holders, start, Ask::ONE);
        let receipt = limit.receipt(&holders, start, Cost::ONE);
        let copy = Receipt { cost: Cost::ONE, ..limit.receipt(&holders, start, Cost::ONE) };
        assert_eq!(limit.give_back(&mut holders, start, receipt), Adjusted::Whole);
        assert_eq!(limit.give_back(&mut holders, start, copy), Adjusted::Capped);
        let empty = limit.receipt(&Holders::default(), start, Cost::ONE);
        assert_eq!(limit.give_back(&mut holders, start, empty), Adjusted::NeedsPermit);
        assert_eq!(limit.peek(&holders, start, Ask::ONE).remaining(), 2);
    }

    #[test]
    fn nothing_begins_when_time_ends() {
        let limit = limit(2);
        let mut holders = Holders::default();
        let last = limit.decide(&mut holders, Timestamp::LAST, Ask::ONE);
        assert_eq!((last.verdict_in_ticks(), last.permit()), (Verdict::Impossible, None));
        let before = Timestamp::from_ticks(u64::MAX - 1);
        assert!(limit.decide(&mut holders, before, Ask::new(Cost::of(2))).is_allowed());
        assert_eq!(limit.peek(&holders, before, Ask::ONE).verdict_in_ticks(), Verdict::Impossible);
    }
}
