//! A take for a waiter, which goes back if it is not picked up.

use super::WaitTarget;
use super::key_fifo::WaiterAsk;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::store::OpenReceipt;
use crate::store::name::Account;
use crate::time::Timestamp;

/// A take, and the account it is from.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) decision: Decision,
    pub(super) account: Account,
    receipt: Option<OpenReceipt>,
}

impl Taken {
    /// A take that is passed on at once.
    pub(super) fn take_now(target: &dyn WaitTarget, account: &Account, ask: Ask) -> Taken {
        let decision = target.take_if_free(account, ask);
        Taken { decision, account: account.clone(), receipt: None }
    }

    /// The take of an ask of nothing.
    pub(super) fn nothing(target: &dyn WaitTarget, account: Account) -> Taken {
        Taken { decision: target.look(&account, Ask::ONE).asking_nothing(), account, receipt: None }
    }

    /// Takes if it passes, now or as of the given time; if not, there is only a decision.
    pub(super) fn take(
        target: &dyn WaitTarget,
        account: &Account,
        asked: WaiterAsk,
        at: Option<Timestamp>,
    ) -> Taken {
        // A permit that is not picked up has to be released, and is none to be refunded.
        let is_tracked = asked.is_tracked && !account.terms().gives_permits();
        let (decision, receipt) = target.take_for_waiter(account, WaiterAsk { is_tracked, ..asked }, at);
        Taken { decision, account: account.clone(), receipt }
    }

    pub(super) fn give_back(self, target: &dyn WaitTarget) {
        let Some(mut receipt) = self.receipt else { return };
        target.refund(&self.account, &mut receipt, None);
    }

    /// The account and the receipt of a tracked take.
    pub(super) fn into_tracked(self) -> (Account, Option<OpenReceipt>) {
        let is_permit = self.account.terms().gives_permits();
        (self.account, self.receipt.filter(|_| !is_permit))
    }
}
