//! What becomes of somebody's wish to buy.

/// Somebody wants one piece.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// Of which sale.
    pub sale: i64,
    /// Who.
    pub user: &'a str,
    /// The key by which the same wish is known again.
    pub key: &'a str,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A piece is reserved until it is paid for, or its time is over.
    Reserved {
        /// The order's number.
        order: String,
        /// For how many milliseconds from now.
        pay_within: i64,
        /// How many are left besides, as last seen.
        left: i64,
        /// Whether this was said to the same wish before.
        replayed: bool,
    },
    /// This user has one already, by another wish.
    AlreadyBought {
        /// The order's number.
        order: String,
        /// For how many milliseconds from now it can be paid; nothing if it is.
        pay_within: Option<i64>,
    },
    /// Nothing is left.
    SoldOut,
    /// Somebody was faster, and something may be left.
    Conflict {
        /// How many, as last seen.
        left: i64,
    },
    /// Too early.
    NotOpen {
        /// By how many milliseconds.
        opens_in: i64,
    },
    /// Too late.
    Over,
    /// What this wish had reserved was not paid in time, and went back.
    Expired,
    /// The key belongs to a wish for another sale.
    KeyUsed {
        /// For this one.
        sale: i64,
    },
    /// There is no such sale.
    UnknownSale,
}

impl Outcome {
    /// Whether a piece belongs to this buyer now.
    pub fn is_of_this_buyer(&self) -> bool {
        matches!(self, Outcome::Reserved { .. } | Outcome::AlreadyBought { .. })
    }
}
