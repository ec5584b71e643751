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
    /// This user has let a reservation expire, and may not have another one yet.
    Paused {
        /// For how many milliseconds from now.
        wait: i64,
    },
    /// The key belongs to a wish for another sale.
    KeyUsed {
        /// For this one.
        sale: i64,
    },
    /// There is no such sale.
    UnknownSale,
}

/// What a look at the books says to a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// It is known what becomes of it: nothing is to be taken.
    Settled(Outcome),
    /// A piece may be taken.
    Open {
        /// Of so many, as last seen.
        left: i64,
    },
}

impl Outcome {
    /// Whether a piece was reserved just now, and not by an earlier try of the same wish.
    pub fn is_new(&self) -> bool {
        matches!(self, Outcome::Reserved { replayed: false, .. })
    }

    /// Whether a piece belongs to this buyer now.
    pub fn is_of_this_buyer(&self) -> bool {
        matches!(self, Outcome::Reserved { .. } | Outcome::AlreadyBought { .. })
    }
}
