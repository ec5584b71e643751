//! Corrections of a [`Charges`]: late charges and refunds.
//!
//! The cost of a request may be known only afterwards: the tokens of a model, the bytes of a reply, the rows of a
//! query. A caller admits with an estimate, and then charges the rest or refunds the difference. Corrections go to the
//! limits that took the units, in the store that took them, whatever the policy is by then.

use tidegate_core::{Adjusted, Cost, PreparedLimit, StoreError, StoreFuture};
use tidegate_support::join_all;

use super::charges::{Charges, Paid};
use super::{Gate, InForce};
use crate::rule::Mode;

/// The direction of a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Charge,
    Refund,
}

/// The correction of one entry.
struct Correction {
    place: usize,
    /// The limit to charge.
    limit: PreparedLimit,
    cost: Cost,
}

impl Gate {
    /// Charges additional units for a request to every rule that took units for it, with the same weights as the
    /// request. A charge is never denied: the debt can grow up to `max_debt`.
    ///
    /// A rule that has another limit by now is charged under that one; a rule that was removed, under its old one. If a
    /// remote store fails, rules whose `on_store_failure` is `local` are charged in the local store. The error reports
    /// that the remote store may not have been charged; the charge is not sent again.
    ///
    /// [`Adjusted::Capped`] means that a limit reached its `max_debt`; the units above it are not charged anywhere.
    #[doc(alias = "post-paid")]
    #[doc(alias = "debt")]
    #[doc(alias = "settle")]
    pub fn charge<'a>(&'a self, bill: &'a mut Charges, units: u64) -> StoreFuture<'a, Adjusted> {
        self.reply(self.settle(bill, units, Direction::Charge))
    }

    /// Refunds units to every rule that took units for a request, by the receipts on the bill. Each rule gets back at
    /// most the part of that take that is still debt, in the store where it was taken. Units that have already refilled
    /// are not returned.
    ///
    /// In memory this is exact in any order of requests. For a bucket in a remote store or in a zone file, the refund
    /// is the price minus the time since the take. A late charge in a remote store is not refunded.
    ///
    /// A state belongs to one limit. If the rule has another limit by now, the units go to the state under the old one.
    /// Keys whose counts are still carried over from there get them back; a state that was written under the new limit
    /// stays unchanged. After a store failure a refund is not sent again.
    ///
    /// [`Adjusted::Capped`] means that less was returned than asked for. Units leave the bill before the store is
    /// asked, so a refund can be repeated by mistake without an effect.
    #[doc(alias = "idempotent refund")]
    #[doc(alias = "give back")]
    pub fn refund<'a>(&'a self, bill: &'a mut Charges, units: u64) -> StoreFuture<'a, Adjusted> {
        self.reply(self.settle(bill, units, Direction::Refund))
    }

    /// Corrects all entries concurrently, so that a remote store costs one round trip.
    async fn settle(&self, bill: &mut Charges, units: u64, way: Direction) -> Result<Adjusted, StoreError> {
        let Some(force) = bill.force.clone() else { return Ok(Adjusted::Whole) };
        let (corrections, mut all_of_it) = self.corrections(&force, bill, units, way);
        let answers = match way {
            Direction::Charge => force.charge_all(bill, &corrections).await,
            Direction::Refund => force.refund_all(bill, &corrections).await,
        };
        let mut failed = None;
        for (correction, answer) in corrections.iter().zip(answers) {
            let entry = &bill.entries[correction.place];
            match answer {
                Ok(Adjusted::Capped) if entry.mode == Mode::Enforce => all_of_it = Adjusted::Capped,
                // A rule that is only measured does not fail the correction.
                Err(error) if entry.mode == Mode::Enforce => failed = Some(error),
                Ok(_) | Err(_) => {}
            }
        }
        failed.map_or(Ok(all_of_it), Err)
    }

    /// Returns the corrections, and whether they cover everything that was asked for. Refunds are removed from the bill
    /// before they are sent, so that they cannot be refunded twice.
    fn corrections(
        &self,
        force: &InForce,
        bill: &mut Charges,
        units: u64,
        way: Direction,
    ) -> (Vec<Correction>, Adjusted) {
        let (now, mut corrections, mut all_of_it) = (self.in_force(), Vec::new(), Adjusted::Whole);
        for (place, entry) in bill.entries.iter_mut().enumerate() {
            let in_force = self.limit_of(&now, entry.name(force), &entry.key);
            // Another algorithm has separate counts, which this take did not affect.
            let algorithm = |limit: &PreparedLimit| limit.limit().algorithm();
            let in_force = in_force.filter(|limit| algorithm(limit) == algorithm(&entry.limit));
            let limit = PreparedLimit::clone(in_force.as_deref().unwrap_or(&entry.limit));
            let asked = units.saturating_mul(entry.weight);
            let cost = match way {
                Direction::Charge => asked,
                Direction::Refund => asked.min(entry.paid),
            };
            if cost < asked && entry.mode == Mode::Enforce {
                all_of_it = Adjusted::Capped;
            }
            if way == Direction::Refund {
                entry.paid -= cost;
            }
            if let Ok(cost) = Cost::new(cost) {
                corrections.push(Correction { place, limit, cost });
            }
        }
        (corrections, all_of_it)
    }
}

/// The result of one correction.
type Corrected = Result<Adjusted, StoreError>;

impl InForce {
    /// Charges every entry. A complete charge is added to the bill, with its receipt if the store returns one.
    async fn charge_all(&self, bill: &mut Charges, corrections: &[Correction]) -> Vec<Corrected> {
        let entries = &bill.entries;
        let answers = corrections.iter().map(|Correction { place, limit, cost }| {
            self.store.store().charge(entries[*place].subject(self, limit), *cost)
        });
        let answers = join_all(answers).await;
        let mut corrected = Vec::with_capacity(corrections.len());
        for (correction, answer) in corrections.iter().zip(answers) {
            corrected.push(answer.map(|(adjusted, receipt)| {
                if adjusted == Adjusted::Whole {
                    let (entry, limit) = (&mut bill.entries[correction.place], correction.limit.clone());
                    entry.paid = entry.paid.saturating_add(correction.cost.get());
                    entry.receipts.extend(receipt.map(|receipt| Paid { limit, receipt }));
                }
                adjusted
            }));
        }
        corrected
    }

    /// Refunds every entry by its receipts, newest first. The receipts are removed from the bill before they are sent.
    async fn refund_all(&self, bill: &mut Charges, corrections: &[Correction]) -> Vec<Corrected> {
        let take = |each: &Correction| std::mem::take(&mut bill.entries[each.place].receipts);
        let mut receipts: Vec<_> = corrections.iter().map(take).collect();
        let mut corrected: Vec<Corrected> = Vec::with_capacity(corrections.len());
        let (mut answers, mut places) = (Vec::new(), Vec::new());
        for (place, (correction, receipts)) in corrections.iter().zip(&mut receipts).enumerate() {
            let mut left = correction.cost.get();
            for paid in receipts.iter_mut().rev() {
                if let Ok(part) = Cost::new(left.min(paid.receipt.units())) {
                    left -= part.get();
                    places.push(place);
                    let Paid { limit, receipt } = paid;
                    let subject = bill.entries[correction.place].subject(self, limit);
                    answers.push(self.store.store().refund(subject, receipt, part));
                }
            }
            corrected.push(Ok(if left == 0 { Adjusted::Whole } else { Adjusted::Capped }));
        }
        for (place, answer) in places.into_iter().zip(join_all(answers).await) {
            corrected[place] = match (std::mem::replace(&mut corrected[place], Ok(Adjusted::Whole)), answer) {
                (Err(error), _) | (_, Err(error)) => Err(error),
                (Ok(Adjusted::Whole), Ok(adjusted)) => Ok(adjusted),
                (Ok(capped), Ok(_)) => Ok(capped),
            };
        }
        for (correction, receipts) in corrections.iter().zip(receipts) {
            let is_open = |paid: &Paid| paid.receipt.units() > 0;
            bill.entries[correction.place].receipts.extend(receipts.into_iter().filter(is_open));
        }
        corrected
    }
}
