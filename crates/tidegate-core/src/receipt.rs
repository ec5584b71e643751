//! The proof of one take, which allows a refund of exactly that take.

use crate::algorithm::Algorithm;
use crate::ask::Cost;
use crate::decision::PermitId;
use crate::time::{Ticks, Timestamp};

/// The units that a take has spent, and its position in the state that it left.
///
/// A plain refund subtracts from the whole debt of a key. A receipt refunds one take, shortly after it: the part
/// that time has repaid, or that later takes depend on, is not returned. A refund consumes the receipt. After a
/// reset of its key, or a refund without a receipt, the receipt is void.
///
/// Only pure states use it directly ([`Limit::receipt`](crate::Limit::receipt),
/// [`Limit::give_back`](crate::Limit::give_back)). Limiters wrap it in a [`TrackedTake`](crate::TrackedTake).
#[doc(alias("refund", "undo", "reservation"))]
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The algorithm of the state that it refers to; `None` if only one algorithm is possible.
    pub(crate) algorithm: Option<Algorithm>,
    pub(crate) cost: Cost,
    /// The instant at which the state records the take.
    pub(crate) at: Timestamp,
    /// The time at which the take is fully repaid.
    pub(crate) clear_at: Timestamp,
    /// The price that the take paid, if the algorithm measures it as a span.
    pub(crate) paid: Ticks,
    pub(crate) permit: Option<PermitId>,
    /// True if the units were taken from a cell that several keys share.
    pub(crate) shared: bool,
    /// The epoch of its store at the time of the take; each reset starts a new epoch.
    pub(crate) era: u64,
}

impl Receipt {
    /// Creates the receipt of a take that the state records at this instant.
    pub(crate) const fn new(cost: Cost, at: Timestamp, clear_at: Timestamp) -> Receipt {
        Receipt {
            algorithm: None,
            cost,
            at,
            clear_at,
            paid: Ticks::ZERO,
            permit: None,
            shared: false,
            era: 0,
        }
    }

    /// Returns a copy, for a retry of the same refund.
    pub(crate) fn copy(&self) -> Receipt {
        let Receipt { algorithm, cost, at, clear_at, paid, permit, shared, era } = *self;
        Receipt { algorithm, cost, at, clear_at, paid, permit, shared, era }
    }
}
