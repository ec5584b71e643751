//! What a request was worth, known only when its response is there.

/// How much of what a request has spent stays spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settle {
    /// All of it.
    #[default]
    Keep,
    /// Nothing: all that it weighed comes back, as far as it is still owed. What time has repaid does not come back.
    Refund,
    /// So many units come back, at most what it weighed and what of it is still owed.
    RefundUnits(u64),
    /// So many units are spent beside it, whether or not they would pass: as far as the limit's `max_debt`.
    Charge(u64),
}

impl Settle {
    /// The same for a request that weighed so much.
    pub(super) fn at_most(self, weight: u64) -> Settle {
        match self {
            Settle::RefundUnits(units) => Settle::RefundUnits(units.min(weight)),
            other => other,
        }
    }
}
