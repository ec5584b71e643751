//! Refunds of takes whose debts lie in a zone.

use super::Zone;
use super::change::{Adjust, Change};
use super::subjects::{who, with_word};
use crate::algorithm::{Claim, OneWord, Queue, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::store::name::Account;
use crate::store::receipts::Receipts;
use crate::store::{Map, ReceiptCounts};
use crate::time::Timestamp;

impl Zone {
    /// The receipts of tracked takes that are open in this process, and those that became worthless because there were
    /// too many.
    pub fn receipt_counts(&self) -> ReceiptCounts {
        let beside = self.inner.map.get().map(Map::receipt_counts);
        self.inner.receipts.counts().and(beside.unwrap_or_default())
    }

    /// The table of open receipts.
    pub(crate) fn receipts(&self) -> &Receipts {
        &self.inner.receipts
    }

    /// Takes units of one take off its debt, as far as they are still owed.
    pub(crate) fn take_off(&self, account: &Account, claim: Claim, units: Cost) -> Option<TakenOff> {
        let ((spot, key), change) = (self.place(account), TakeOff { claim, units });
        match account.terms() {
            Terms::TokenBucket(terms) => self.inner.core.settle(&who(&spot, account, terms, &key), &change),
            Terms::LeakyBucket(terms) => self.inner.core.settle(&who(&spot, account, terms, &key), &change),
            _ => None,
        }
    }

    /// Charges what turned out to be more, with proof of it.
    pub(crate) fn charge_with_receipt(
        &self,
        account: &Account,
        adjustment: Adjustment,
    ) -> (Adjusted, Option<Receipt>) {
        let (spot, key) = self.place(account);
        let (adjusted, receipt) = with_word!(account.terms(), terms => {
            self.inner.core.settle(&who(&spot, account, terms, &key), &ChargeTracked(adjustment))
        });
        let (algorithm, terms) = (Some(account.terms().algorithm()), account.terms());
        (adjusted, receipt.map(|receipt| Receipt { algorithm, paid: terms.price(receipt.cost), ..receipt }))
    }
}

/// Takes units of one take off a debt.
#[derive(Clone, Copy, Debug)]
struct TakeOff {
    claim: Claim,
    units: Cost,
}

impl<W: OneWord + Queue> Change<W> for TakeOff {
    type Answer = Option<TakenOff>;

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        terms.take_off(state, now, &self.claim, self.units)
    }

    /// Which debt is whose in a shared cell is not known.
    fn share(&self, _: &W, _: Timestamp, _: Timestamp) -> (Self::Answer, Option<u64>) {
        (Some(TakenOff::NOTHING), None)
    }
}

/// Charges like [`Adjust`], with proof of it.
#[derive(Clone, Copy, Debug)]
struct ChargeTracked(Adjustment);

impl<W: OneWord> Change<W> for ChargeTracked {
    type Answer = (Adjusted, Option<Receipt>);

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        let adjusted = Adjust(self.0).change(terms, state, now);
        let Adjustment::Charge(cost) = self.0 else { return (adjusted, None) };
        (adjusted, Some(terms.receipt(state, now, cost)))
    }

    /// What is charged in a shared cell cannot be found again.
    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Self::Answer, Option<u64>) {
        let (adjusted, word) = Adjust(self.0).share(terms, clear_at, now);
        ((adjusted, None), word)
    }

    fn ask(&self) -> Option<Ask> {
        Some(Ask::ONE)
    }
}
