//! The outcome of a purchase request.

/// A purchase request: a user wants one piece.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The number of the sale.
    pub sale: i64,
    /// The user.
    pub user: &'a str,
    /// The idempotency key, which identifies repetitions of the same request.
    pub key: &'a str,
}

/// The outcome of a purchase request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A piece is reserved until it is paid for, or until its time is over.
    Reserved {
        /// The order's number.
        order: String,
        /// The time to pay, in milliseconds from now.
        pay_within: i64,
        /// The number of remaining pieces, as last seen.
        left: i64,
        /// True if an earlier request with the same key had reserved it.
        replayed: bool,
    },
    /// This user has one already, by a request with another key.
    AlreadyBought {
        /// The order's number.
        order: String,
        /// The time to pay, in milliseconds from now; `None` if it is paid.
        pay_within: Option<i64>,
    },
    /// No piece is left.
    SoldOut,
    /// Another request was faster; pieces may be left.
    Conflict {
        /// The number of remaining pieces, as last seen.
        left: i64,
    },
    /// The sale is not open yet.
    NotOpen {
        /// The time to the opening, in milliseconds.
        opens_in: i64,
    },
    /// The sale is over.
    Over,
    /// The reservation of this request was not paid in time and was returned.
    Expired,
    /// This user let a reservation expire, and may not have another one yet.
    Paused {
        /// The remaining pause, in milliseconds from now.
        wait: i64,
    },
    /// The key belongs to a request for another sale.
    KeyUsed {
        /// The number of that sale.
        sale: i64,
    },
    /// There is no such sale.
    UnknownSale,
}

/// The outcome of a purchase request as far as it can be read without taking a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// The outcome is known: no piece is taken.
    Settled(Outcome),
    /// A piece may be taken.
    Open {
        /// The number of remaining pieces, as last seen.
        left: i64,
    },
}

impl Outcome {
    /// Returns true if a piece was reserved just now, and not by an earlier request with the same key.
    pub fn is_new(&self) -> bool {
        matches!(self, Outcome::Reserved { replayed: false, .. })
    }

    /// Returns true if this user has a piece now.
    pub fn is_of_this_buyer(&self) -> bool {
        matches!(self, Outcome::Reserved { .. } | Outcome::AlreadyBought { .. })
    }
}
