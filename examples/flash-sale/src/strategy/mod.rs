//! How one piece is taken from the stock while others do the same.
//!
//! ```text
//!   naive        look, then write what is left              oversells: kept to show it
//!   value        look, then write if the number is still the same
//!   version      look, then write if nobody has written since
//!   conditional  take one if there is one
//!   pessimistic  lock, look, write
//!   redis        ask Redis first, which may be wrong; then conditional
//! ```
//!
//! All but the naive one are one transaction with the order, and all of them believe only the database's clock.
//! A key whose reservation has expired takes nothing more: that is asked with the taking itself, after the order was
//! written, because writing it may have waited for that very expiry.
//! The row that everybody wants is touched last, so that it is locked for the shortest time; the pessimistic one locks
//! it first, because that is what it is.

mod attempt;
mod seen;

pub(crate) use attempt::{attempt, attempt_naively, look};

use std::fmt;
use std::str::FromStr;

use crate::database::Statement;

static BY_VALUE: Statement = Statement::new(
    "UPDATE sales SET available = available - 1, version = version + 1
     WHERE id = ? AND available = ? AND available > 0 AND opens_at <= {now} AND {now} < closes_at
     AND NOT EXISTS (SELECT 1 FROM returns WHERE user_id = ? AND request_key = ?)",
);

static BY_VERSION: Statement = Statement::new(
    "UPDATE sales SET available = available - 1, version = version + 1
     WHERE id = ? AND version = ? AND available > 0 AND opens_at <= {now} AND {now} < closes_at
     AND NOT EXISTS (SELECT 1 FROM returns WHERE user_id = ? AND request_key = ?)",
);

static IF_ANY: Statement = Statement::new(
    "UPDATE sales SET available = available - 1, version = version + 1
     WHERE id = ? AND available > 0 AND opens_at <= {now} AND {now} < closes_at
     AND NOT EXISTS (SELECT 1 FROM returns WHERE user_id = ? AND request_key = ?)",
);

/// How a piece is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Reads, then writes. **Sells more than there is**; never for anything but to see it happen.
    Naive,
    /// Optimistic: writes only if the number read is still there.
    ///
    /// A number that went down and up again in between is no harm: it counts pieces, and one is there.
    Value,
    /// Optimistic: writes only if nobody has written since.
    Version,
    /// Takes one if there is one, in one statement.
    Conditional,
    /// Locks the row, then reads, then writes.
    Pessimistic,
    /// Asks a counter in Redis first, then does as [`Conditional`](Strategy::Conditional).
    Redis,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 6] = [
        Strategy::Naive,
        Strategy::Value,
        Strategy::Version,
        Strategy::Conditional,
        Strategy::Pessimistic,
        Strategy::Redis,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Naive => "naive",
            Strategy::Value => "value",
            Strategy::Version => "version",
            Strategy::Conditional => "conditional",
            Strategy::Pessimistic => "pessimistic",
            Strategy::Redis => "redis",
        }
    }

    /// Whether it never sells more than there is.
    pub fn is_safe(self) -> bool {
        self != Strategy::Naive
    }

    /// The statement that takes a piece, and whether it compares something that was read.
    fn taking(self) -> &'static Statement {
        match self {
            Strategy::Value => &BY_VALUE,
            Strategy::Version => &BY_VERSION,
            Strategy::Naive | Strategy::Conditional | Strategy::Pessimistic | Strategy::Redis => &IF_ANY,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(name: &str) -> Result<Strategy, String> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let names = Strategy::ALL.map(Strategy::name).join(", ");
            format!("strategy \"{name}\": there is none of this name; write one of {names}")
        })
    }
}
