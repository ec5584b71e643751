//! A take for a waiter, which goes back if it is not picked up, and one that can be refunded.

use std::fmt;
use std::sync::Arc;

use super::WaitTarget;
use super::key_fifo::WaiterAsk;
use crate::ask::{Adjusted, Ask, Cost};
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

    /// The take, to be refunded: a permit is released instead.
    pub(super) fn tracked(self, target: Arc<dyn WaitTarget>) -> TrackedTake {
        let is_permit = self.account.terms().gives_permits();
        TrackedTake::new(target, self.account, self.receipt.filter(|_| !is_permit))
    }
}

/// One take of a limiter, by which just that take can be refunded; made by `admit_tracked` and
/// [`Acquire::tracked`](crate::Acquire::tracked).
///
/// A refund gives back at most what of this take is still owed: what time has repaid does not come back, and neither does
/// what others have spent. Takes can be refunded in any order. A take that is dropped stays charged.
///
/// ```
/// use tidegate::{Adjusted, Limit, Limiter, ask};
///
/// let limiter = Limiter::new(Limit::per_hour(100));
/// let (decision, take) = limiter.admit_tracked(ask("ana").cost(60));
/// let later = limiter.admit("ana");
/// assert!(decision.is_allowed() && later.is_allowed());
/// let mut take = take.expect("an allowed ask has a take");
/// take.refund_units(50); // it weighed 10
/// assert!(limiter.peek(ask("ana").cost(89)).is_allowed());
/// take.refund();
/// ```
#[must_use = "a take that is dropped cannot be refunded"]
pub struct TrackedTake {
    target: Arc<dyn WaitTarget>,
    account: Account,
    receipt: Option<OpenReceipt>,
}

impl TrackedTake {
    pub(crate) fn new(
        target: Arc<dyn WaitTarget>,
        account: Account,
        receipt: Option<OpenReceipt>,
    ) -> TrackedTake {
        TrackedTake { target, account, receipt }
    }

    /// The units that were not refunded yet; none of a permit, which is released.
    pub fn units(&self) -> u64 {
        self.receipt.as_ref().map_or(0, OpenReceipt::units)
    }

    /// Gives back all that is still owed of it.
    pub fn refund(mut self) -> Adjusted {
        self.refund_units(self.units())
    }

    /// Gives back so many units, as far as they are still owed. Nothing comes back of a debt under a limit that was
    /// replaced since: its units were worth another time.
    pub fn refund_units(&mut self, units: u64) -> Adjusted {
        let Ok(cost) = Cost::new(units) else { return Adjusted::Whole };
        let Some(receipt) = &mut self.receipt else { return Adjusted::Capped };
        let terms = self.account.terms();
        let is_replaced = *self.target.account(self.account.name()).terms() != *terms;
        if is_replaced && terms.queues_debts() {
            return Adjusted::Capped;
        }
        let adjusted = self.target.refund(&self.account, receipt, Some(cost));
        self.target.queue().serve_key(&self.target, self.account.name());
        adjusted
    }
}

impl fmt::Debug for TrackedTake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TrackedTake").field("units", &self.units()).finish_non_exhaustive()
    }
}
