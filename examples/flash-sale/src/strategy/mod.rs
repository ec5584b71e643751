//! Strategies that take one piece from the stock under concurrency.
//!
//! ```text
//!   naive        read, then write the remaining number      oversells: kept to show it
//!   value        read, then write if the number is still the same
//!   version      read, then write if the version is still the same
//!   conditional  take one if there is one
//!   pessimistic  lock, read, write
//!   redis        ask Redis first, which may be wrong; then conditional
//! ```
//!
//! All but the naive one write the order in the same transaction, and all use the database's clock. A key whose
//! reservation has expired takes nothing more. The statement that takes a piece checks this, after the order was
//! written, because that write may have waited for that very expiry. The contended row is updated last, so that it is
//! locked for the shortest time; the pessimistic strategy by definition locks it first.

mod attempt;
mod seen;

pub(crate) use attempt::{attempt, look};

use std::fmt;
use std::str::FromStr;

use crate::database::Statement;

/// Returns the text of a statement that takes a piece, with a further condition.
macro_rules! taking {
    ($condition:literal) => {
        concat!(
            "UPDATE sales SET available = available - 1, version = version + 1
             WHERE id = ? AND ",
            $condition,
            " AND opens_at <= {now} AND {now} < closes_at
             AND NOT EXISTS (SELECT 1 FROM returns WHERE user_id = ? AND request_key = ?)"
        )
    };
}

static BY_VALUE: Statement = Statement::new(taking!("available = ? AND available > 0"));
static BY_VERSION: Statement = Statement::new(taking!("version = ? AND available > 0"));
static IF_ANY: Statement = Statement::new(taking!("available > 0"));

/// A strategy that takes a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Reads, then writes. **Oversells**; only for demonstrations.
    Naive,
    /// Optimistic: writes only if the number is still the one that was read.
    ///
    /// A number that decreased and increased again in between does no harm: it counts pieces, and one is there.
    Value,
    /// Optimistic: writes only if the version is still the one that was read.
    Version,
    /// Takes one if there is one, in one statement.
    Conditional,
    /// Locks the row, then reads, then writes.
    Pessimistic,
    /// Asks a counter in Redis first, then does as [`Conditional`](Strategy::Conditional).
    Redis,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 6] = [
        Strategy::Naive,
        Strategy::Value,
        Strategy::Version,
        Strategy::Conditional,
        Strategy::Pessimistic,
        Strategy::Redis,
    ];

    /// Returns its name.
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

    /// Returns true if it never oversells.
    pub fn is_safe(self) -> bool {
        self != Strategy::Naive
    }

    /// Returns the statement that takes a piece.
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
