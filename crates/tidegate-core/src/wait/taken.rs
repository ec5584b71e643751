//! The take of a waiter, which is given back if it is not picked up, and the refundable take.

use std::fmt;
use std::sync::Arc;

use super::WaitTarget;
use super::key_fifo::WaiterAsk;
use crate::ask::{Adjusted, Ask, Cost};
use crate::decision::Decision;
use crate::store::OpenReceipt;
use crate::store::state_key::StateKey;
use crate::time::Timestamp;

/// A take, and its account.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) decision: Decision,
    pub(super) account: StateKey,
    receipt: Option<OpenReceipt>,
}

impl Taken {
    /// Takes for a caller that acts at once, without a receipt.
    pub(super) fn take_now(target: &dyn WaitTarget, account: &StateKey, ask: Ask) -> Taken {
        let decision = target.take_if_free(account, ask);
        Taken { decision, account: account.clone(), receipt: None }
    }

    /// Creates the take of a cost of 0.
    pub(super) fn nothing(target: &dyn WaitTarget, account: StateKey) -> Taken {
        Taken { decision: target.look(&account, Ask::ONE).asking_nothing(), account, receipt: None }
    }

    /// Takes if allowed, now or as of the given time; a denial holds only the decision.
    pub(super) fn take(
        target: &dyn WaitTarget,
        account: &StateKey,
        asked: WaiterAsk,
        at: Option<Timestamp>,
    ) -> Taken {
        // A permit that is not picked up is released, not refunded, so it needs no tracking.
        let is_tracked = asked.is_tracked && !account.terms().gives_permits();
        let (decision, receipt) = target.take_for_waiter(account, WaiterAsk { is_tracked, ..asked }, at);
        Taken { decision, account: account.clone(), receipt }
    }

    pub(super) fn give_back(self, target: &dyn WaitTarget) {
        let Some(mut receipt) = self.receipt else { return };
        target.refund(&self.account, &mut receipt, None);
    }

    /// Turns it into a refundable take; a permit is released instead, and has no receipt.
    pub(super) fn tracked(self, target: Arc<dyn WaitTarget>) -> TrackedTake {
        let is_permit = self.account.terms().gives_permits();
        TrackedTake::new(target, self.account, self.receipt.filter(|_| !is_permit))
    }
}

/// One take of a limiter, which can be refunded by itself; created by `admit_tracked` and
/// [`Acquire::tracked`](crate::Acquire::tracked).
///
/// A refund gives back at most the part of this take that is still owed: not the part that time has repaid, and
/// nothing of other takes. Takes can be refunded in any order. A dropped take stays charged.
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
#[doc(alias = "refund")]
#[doc(alias = "cancel")]
#[doc(alias = "settle")]
#[doc(alias = "reservation")]
#[must_use = "a take that is dropped cannot be refunded"]
pub struct TrackedTake {
    target: Arc<dyn WaitTarget>,
    account: StateKey,
    receipt: Option<OpenReceipt>,
}

impl TrackedTake {
    pub(crate) fn new(
        target: Arc<dyn WaitTarget>,
        account: StateKey,
        receipt: Option<OpenReceipt>,
    ) -> TrackedTake {
        TrackedTake { target, account, receipt }
    }

    /// Returns the units that were not refunded yet; 0 for a permit, which is released instead.
    pub fn units(&self) -> u64 {
        self.receipt.as_ref().map_or(0, OpenReceipt::units)
    }

    /// Gives back everything of the take that is still owed. [`Adjusted::Capped`] means that time has repaid a part of
    /// it, or that its receipt is no longer valid.
    pub fn refund(mut self) -> Adjusted {
        self.refund_units(self.units())
    }

    /// Gives back this many units, as far as they are still owed. A debt under a limit that was replaced since is not
    /// refunded, because its units had another price in time. Units beyond those of the take are not given back.
    /// Waiters of the key are served with the refunded units.
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
