//! Proof of one take, by which just that one can be given back.

use crate::algorithm::Algorithm;
use crate::ask::Cost;
use crate::decision::PermitId;
use crate::time::{Ticks, Timestamp};

/// What a take has spent, and where it stands in the state that it left.
///
/// A refund says "so much less was used" and comes off whatever is owed. A receipt speaks of one take, soon
/// after it: what time has repaid since, or others have built upon, does not come back. It is used up by
/// giving back. After a reset of its key, or a refund without a receipt, it is worth nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Whose state it speaks of; none if only one algorithm is in play.
    pub(crate) algorithm: Option<Algorithm>,
    pub(crate) cost: Cost,
    /// The instant under which the take is remembered.
    pub(crate) at: Timestamp,
    /// When nothing is left of it.
    pub(crate) clear_at: Timestamp,
    /// What it paid, where that is a span.
    pub(crate) paid: Ticks,
    pub(crate) permit: Option<PermitId>,
    /// Whether it was taken from what several subjects share.
    pub(crate) shared: bool,
    /// The era of its store in which it was taken: each reset begins another.
    pub(crate) era: u64,
}

impl Receipt {
    /// The receipt of a take that is remembered under this instant.
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

    /// The same proof, for whoever has to try the same giving back once more.
    pub(crate) fn copy(&self) -> Receipt {
        let Receipt { algorithm, cost, at, clear_at, paid, permit, shared, era } = *self;
        Receipt { algorithm, cost, at, clear_at, paid, permit, shared, era }
    }
}
