//! Tracked takes and their refunds, for every holder of states.
//!
//! ```text
//!   lock the receipts of the state
//!     take        under this lock, so no other tracked take of the state comes between
//!     enter       its interval in the queue of debts
//!   unlock
//! ```
//!
//! The lock is not the lock of the state. Untracked takes go past it, which is correct because they only append debt. A
//! refund holds it while it removes debt, so the intervals of later takes can be moved up in the same step.

use super::{Locked, OpenReceipt, ReceiptEntry, Receipts, Whereabouts};
use crate::algorithm::{Claim, Interval, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::limit::AlgorithmParams;
use crate::receipt::Receipt;
use crate::store::LimitStore;
use crate::store::state_key::StateKey;
use crate::time::Timestamp;

impl LimitStore<'_> {
    /// Decides, and spends if allowed. Returns a receipt by which the take can be refunded. A denial has no receipt. A
    /// permit has none either, because it is released by its id.
    pub(crate) fn take_tracked(self, account: &StateKey, ask: Ask) -> (Decision, Option<OpenReceipt>) {
        self.tracked(account, || self.take_from(account, ask))
    }

    /// Takes if allowed, now or as of the given time, and returns a receipt. A denial changes nothing.
    pub(crate) fn take_if_free_tracked(
        self,
        account: &StateKey,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        self.tracked(account, || self.take_if_free(account, ask, at))
    }

    /// Charges additional cost. Returns a receipt if all of it was charged. Without a receipt the charge stays as it
    /// is; a part of it may have been applied.
    pub(crate) fn charge_tracked(self, account: &StateKey, cost: Cost) -> (Adjusted, Option<OpenReceipt>) {
        self.tracked(account, || {
            let (adjusted, receipt) = self.adjust_unlocked(account, Adjustment::Charge(cost));
            (adjusted, receipt.filter(|_| adjusted == Adjusted::Whole))
        })
    }

    /// Takes if allowed, now or as of the given time, for a waiter. Returns a receipt by which all of it can be given
    /// back before it is used. A denial changes nothing. The receipt of a permit holds the permit itself, which is
    /// released if the waiter leaves.
    pub(crate) fn take_for_waiter(
        self,
        account: &StateKey,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        self.receipts().noting(account, || self.clock().now(), || self.take_if_free(account, ask, at))
    }

    /// Refunds units of one take, as far as they are still owed; all of them, if the take was not used.
    /// [`Adjusted::Capped`] if time has repaid a part, if the receipt is invalid, or if fewer units were left than
    /// requested.
    pub(crate) fn refund(self, account: &StateKey, open: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted {
        open.settle(
            account.terms(),
            cost,
            || self.clock().now(),
            |receipt| self.give_back_unlocked(account, receipt),
            |claim, units| self.take_off(account, claim, units),
        )
    }

    /// Makes a take under the lock of its receipts, and opens a receipt for it.
    fn tracked<T>(
        self,
        account: &StateKey,
        take: impl FnOnce() -> (T, Option<Receipt>),
    ) -> (T, Option<OpenReceipt>) {
        self.receipts().tracking(account, || self.clock().now(), take)
    }
}

impl Receipts {
    /// Creates a receipt of a take, which is made under the lock of its state, so that the order of debts is known. The
    /// clock is read after the take, so that a step back between both is noticed.
    pub(crate) fn tracking<T>(
        &self,
        account: &StateKey,
        now: impl FnOnce() -> Timestamp,
        take: impl FnOnce() -> (T, Option<Receipt>),
    ) -> (T, Option<OpenReceipt>) {
        let mut locked = self.lock_account(account);
        let (taken, receipt) = take();
        let enter = |interval| locked.enter(account.terms(), now(), interval);
        (taken, receipt.and_then(|receipt| self.open(account, receipt, enter)))
    }

    /// Creates a receipt of a take that itself locates its units, to give all of them back. A permit is not entered in
    /// the table, because it always identifies its units.
    pub(crate) fn noting<T>(
        &self,
        account: &StateKey,
        now: impl FnOnce() -> Timestamp,
        take: impl FnOnce() -> (T, Option<Receipt>),
    ) -> (T, Option<OpenReceipt>) {
        if account.terms().gives_permits() {
            let (taken, receipt) = take();
            return (
                taken,
                receipt.map(|receipt| OpenReceipt::new(receipt.cost, Whereabouts::Held(receipt))),
            );
        }
        let mut locked = self.lock_account(account);
        let (taken, receipt) = take();
        let named = |receipt: Receipt| {
            let ticket = locked.enter(account.terms(), now(), None);
            OpenReceipt::new(receipt.cost, Whereabouts::Named(receipt, ticket))
        };
        (taken, receipt.map(named))
    }

    /// Applies a change that forgets or removes units without a receipt: the open receipts of this state become
    /// invalid. It is for resets and refunds without a receipt. They may remove the very debt that a receipt stands
    /// for.
    pub(crate) fn without<R>(&self, account: &StateKey, change: impl FnOnce() -> R) -> R {
        let mut locked = self.lock_account(account);
        let answer = change();
        locked.forget();
        answer
    }

    /// Gives one take back that is not in this table, unless units were forgotten or removed since its era. Debts after
    /// it move. Returns `None` if units of the state were forgotten or removed since, because the take may be among
    /// them.
    pub(crate) fn out_of_order<R>(
        &self,
        account: &StateKey,
        era: u64,
        give_back: impl FnOnce() -> R,
    ) -> Option<R> {
        if account.terms().gives_permits() {
            return Some(give_back());
        }
        let mut locked = self.lock_account(account);
        let answer = locked.is_of_era(era).then(give_back)?;
        if account.terms().queues_debts() {
            locked.forget_order();
        }
        Some(answer)
    }

    /// Returns the era of a take that begins now. An era is the number of times that units of any state were forgotten,
    /// or removed without a receipt.
    pub(crate) fn era(&self) -> u64 {
        self.forgotten.count()
    }

    /// Locks the receipts of an account's state.
    fn lock_account(&self, account: &StateKey) -> Locked<'_> {
        self.lock(account.digest(), account.name().bytes())
    }

    /// Returns the receipt of a take, which `enter` enters with its place in the queue of debts, if that is known.
    /// Returns `None` for a permit, which is released, not refunded.
    pub(super) fn open(
        &self,
        account: &StateKey,
        receipt: Receipt,
        enter: impl FnOnce(Option<Interval>) -> ReceiptEntry,
    ) -> Option<OpenReceipt> {
        let (cost, terms) = (receipt.cost, account.terms());
        let whereabouts = if receipt.permit.is_some() {
            return None;
        } else if !terms.queues_debts() {
            Whereabouts::Named(receipt, enter(None))
        } else if receipt.shared {
            // Other keys without a cell have debt there as well, and which debt belongs to which key is not known.
            Whereabouts::Lost
        } else if self.knows_order {
            Whereabouts::Queued(enter(Some(terms.interval(&receipt))))
        } else {
            Whereabouts::Unordered(receipt, enter(None))
        };
        Some(OpenReceipt::new(cost, whereabouts))
    }
}

impl OpenReceipt {
    /// Uses up units and gives them back, as far as they are still owed. Units that the receipt locates go back by
    /// `give_back`, units of a debt by `take_off`. Both are called under the lock of the receipts. Without a cost it
    /// gives back all units, of a take that was not used.
    ///
    /// | receipt | gives back by |
    /// |---|---|
    /// | named (windows, logs, slots) | its own location |
    /// | held (a permit) | a release |
    /// | queued (buckets, pacers) | its interval in the queue of debts |
    /// | unordered (debts shared with other processes) | time and price |
    /// | lost, remote | nothing |
    pub(crate) fn settle(
        &mut self,
        terms: &AlgorithmParams,
        cost: Option<Cost>,
        now: impl FnOnce() -> Timestamp,
        give_back: impl FnOnce(Receipt) -> Adjusted,
        take_off: impl FnOnce(Claim, Cost) -> Option<TakenOff>,
    ) -> Adjusted {
        let Some(units) = self.use_up(cost.unwrap_or(Cost::of(u64::MAX))) else { return Adjusted::Capped };
        let adjusted = match &mut self.whereabouts {
            Whereabouts::Named(receipt, ticket) => {
                let part = Receipt { cost: units, ..receipt.copy() };
                ticket.give_back(terms, now, || give_back(part)).unwrap_or(Adjusted::Capped)
            }
            Whereabouts::Held(receipt) => give_back(receipt.copy()),
            Whereabouts::Queued(ticket) => {
                ticket.settle(terms, now, |claim| take_off(*claim, units)).adjusted
            }
            // A take that was not used can be given back as a whole, whatever the order of those before it.
            Whereabouts::Unordered(receipt, ticket) if cost.is_none() => {
                ticket.give_back(terms, now, || give_back(receipt.copy())).unwrap_or(Adjusted::Capped)
            }
            Whereabouts::Unordered(receipt, ticket) => {
                let claim = Claim::Unordered { at: receipt.at, paid: receipt.paid };
                receipt.paid = receipt.paid.saturating_sub(terms.price(units));
                let taken_off = ticket.give_back(terms, now, || take_off(claim, units));
                taken_off.flatten().unwrap_or(TakenOff::NOTHING).adjusted
            }
            Whereabouts::Lost | Whereabouts::Remote(_) => Adjusted::Capped,
        };
        if cost.is_none_or(|cost| units == cost) { adjusted } else { Adjusted::Capped }
    }
}
