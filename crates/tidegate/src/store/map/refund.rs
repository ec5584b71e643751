//! Refunds of takes whose states a map holds.

use super::Map;
use crate::algorithm::{Claim, State, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::receipt::Receipt;
use crate::store::ReceiptCounts;
use crate::store::name::Account;
use crate::store::receipts::Receipts;

impl Map {
    /// The receipts of tracked takes that are open, and those that became worthless because there were too many.
    pub fn receipt_counts(&self) -> ReceiptCounts {
        self.inner.receipts.counts()
    }

    /// The table of open receipts.
    pub(crate) fn receipts(&self) -> &Receipts {
        &self.inner.receipts
    }

    /// Takes units of one take off its debt, as far as they are still owed.
    pub(crate) fn take_off(&self, account: &Account, claim: Claim, units: Cost) -> Option<TakenOff> {
        let take_off = |state: &mut State, now| account.terms().take_off(state, now, &claim, units);
        self.touch(account, None, None, take_off, |_, _| Some(TakenOff::NOTHING))
    }

    /// Charges what turned out to be more, with proof of it.
    pub(crate) fn charge_with_receipt(
        &self,
        account: &Account,
        adjustment: Adjustment,
    ) -> (Adjusted, Option<Receipt>) {
        let terms = account.terms();
        let charge = |state: &mut State, now| {
            let adjusted = terms.adjust(state, now, adjustment);
            let Adjustment::Charge(cost) = adjustment else { return (adjusted, None) };
            let receipt = terms.receipt_of(state, now, Ask::new(cost));
            (adjusted, receipt.map(|receipt| Receipt { paid: terms.price(cost), ..receipt }))
        };
        self.touch(account, None, Some(Ask::ONE), charge, |_, _| (Adjusted::Capped, None))
    }
}
