//! A take that can be refunded.

use std::fmt;
use std::sync::Arc;

use super::WaitTarget;
use crate::ask::{Adjusted, Cost};
use crate::store::OpenReceipt;
use crate::store::name::Account;

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
