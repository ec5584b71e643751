//! Tracked takes and their refunds, for every holder of states.

use super::{Locked, OpenReceipt, Receipts, Whereabouts};
use crate::algorithm::{Claim, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::store::Holder;
use crate::store::name::Account;
use crate::time::{Source, Timestamp};

impl<'a> Holder<'a> {
    /// Decides and spends if allowed; with a receipt by which the take can be refunded.
    pub(crate) fn take_tracked(self, account: &Account, ask: Ask) -> (Decision, Option<OpenReceipt>) {
        self.tracked(account, || self.take_from(account, ask))
    }

    /// The same, now or as of the given time; a denial leaves no trace.
    pub(crate) fn take_if_free_tracked(
        self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        self.tracked(account, || self.take_if_free(account, ask, at))
    }

    /// Charges what turned out to be more; with a receipt if all of it was charged.
    pub(crate) fn charge_tracked(self, account: &Account, cost: Cost) -> (Adjusted, Option<OpenReceipt>) {
        self.tracked(account, || {
            let (adjusted, receipt) = self.charge_with_receipt(account, Adjustment::Charge(cost));
            (adjusted, receipt.filter(|_| adjusted == Adjusted::Whole))
        })
    }

    /// Gives units of one take back, as far as they are still owed.
    pub(crate) fn refund(self, account: &Account, open: &mut OpenReceipt, cost: Cost) -> Adjusted {
        open.settle(
            (account.terms(), cost),
            || self.clock().now(),
            |receipt| self.give_back_to(account, receipt),
            |claim, units| self.take_off(account, claim, units),
        )
    }

    /// Takes debt off without a receipt: the open ones of this state are worthless.
    pub(crate) fn without_receipt<R>(self, account: &Account, change: impl FnOnce() -> R) -> R {
        Receipts::without(self.receipts(), account, change)
    }

    fn tracked<T>(
        self,
        account: &Account,
        take: impl FnOnce() -> (T, Option<Receipt>),
    ) -> (T, Option<OpenReceipt>) {
        Receipts::tracking(self.receipts(), account, take)
    }

    /// The table of open receipts; none where other processes use the same states.
    pub(super) fn receipts(self) -> Option<&'a Receipts> {
        match self {
            Holder::Zone(zone) => zone.receipts(),
            Holder::Map(map) => Some(map.receipts()),
        }
    }

    fn take_off(self, account: &Account, claim: Claim, units: Cost) -> Option<TakenOff> {
        match self {
            Holder::Zone(zone) => zone.take_off(account, claim, units),
            Holder::Map(map) => map.take_off(account, claim, units),
        }
    }

    fn charge_with_receipt(self, account: &Account, adjustment: Adjustment) -> (Adjusted, Option<Receipt>) {
        match self {
            Holder::Zone(zone) => zone.charge_with_receipt(account, adjustment),
            Holder::Map(map) => map.charge_with_receipt(account, adjustment),
        }
    }

    fn clock(self) -> &'a Source {
        match self {
            Holder::Zone(zone) => zone.clock(),
            Holder::Map(map) => map.clock(),
        }
    }
}

impl Receipts {
    /// Makes a receipt of a take, which is made under the lock of its state where a table knows the order of debts.
    pub(crate) fn tracking<T>(
        table: Option<&Receipts>,
        account: &Account,
        take: impl FnOnce() -> (T, Option<Receipt>),
    ) -> (T, Option<OpenReceipt>) {
        let mut locked = Receipts::lock_debts(table, account);
        let (taken, receipt) = take();
        let enter = |receipt: &Receipt| locked.as_mut().map(|locked| locked.enter(account.terms(), receipt));
        (taken, receipt.and_then(|receipt| OpenReceipt::of(account, receipt, enter)))
    }

    /// Takes debt off without a receipt: the open ones of this state are worthless.
    pub(crate) fn without<R>(table: Option<&Receipts>, account: &Account, change: impl FnOnce() -> R) -> R {
        let mut locked = Receipts::lock_debts(table, account);
        let answer = change();
        if let Some(locked) = &mut locked {
            locked.forget();
        }
        answer
    }

    /// Locks the receipts of a state; nothing where there is no queue of debts, or no table knows its order.
    fn lock_debts<'a>(table: Option<&'a Receipts>, account: &Account) -> Option<Locked<'a>> {
        Some(table.filter(|_| account.terms().queues_debts())?.lock(account.digest(), account.name().bytes()))
    }
}

impl OpenReceipt {
    /// The receipt of a take; `enter` enters it in the table of its store, if there is one. A permit is released, not
    /// refunded.
    pub(crate) fn of(
        account: &Account,
        receipt: Receipt,
        enter: impl FnOnce(&Receipt) -> Option<super::Ticket>,
    ) -> Option<OpenReceipt> {
        let cost = receipt.cost;
        let whereabouts = if receipt.permit.is_some() {
            return None;
        } else if !account.terms().queues_debts() {
            Whereabouts::Counted(receipt)
        } else if receipt.shared {
            // Others without a cell owe there as well, and which debt is whose is not known.
            Whereabouts::Lost
        } else {
            match enter(&receipt) {
                Some(ticket) => Whereabouts::Queued(ticket),
                None => Whereabouts::Unordered(receipt),
            }
        };
        Some(OpenReceipt::new(cost, whereabouts))
    }

    /// Uses up units and gives them back, as far as they are still owed: units that are counted somewhere by
    /// `give_back`, units of a debt by `take_off`.
    pub(crate) fn settle(
        &mut self,
        (terms, cost): (&Terms, Cost),
        now: impl FnOnce() -> Timestamp,
        give_back: impl FnOnce(Receipt) -> Adjusted,
        take_off: impl FnOnce(Claim, Cost) -> Option<TakenOff>,
    ) -> Adjusted {
        let Some(units) = self.use_up(cost) else { return Adjusted::Capped };
        let adjusted = match &mut self.whereabouts {
            Whereabouts::Counted(receipt) => give_back(Receipt { cost: units, ..receipt.copy() }),
            Whereabouts::Queued(ticket) => {
                ticket.settle(terms, now, |claim| take_off(*claim, units)).adjusted
            }
            Whereabouts::Unordered(receipt) => {
                let claim = Claim::Unordered { at: receipt.at, paid: receipt.paid };
                receipt.paid = receipt.paid.saturating_sub(terms.price(units));
                take_off(claim, units).unwrap_or(TakenOff::NOTHING).adjusted
            }
            Whereabouts::Lost | Whereabouts::Remote(_) => Adjusted::Capped,
        };
        if units == cost { adjusted } else { Adjusted::Capped }
    }
}
