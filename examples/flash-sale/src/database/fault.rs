//! Faults of the database, and their handling.

use std::fmt;

use sqlx::Error;

/// Codes of PostgreSQL, MariaDB and SQLite for a conflict with another transaction: nothing was done, retry.
const IN_THE_WAY: [&str; 11] =
    ["40001", "40P01", "55P03", "1213", "1205", "1020", "5", "6", "261", "262", "517"];

/// Codes of a server that shuts down or has just started, or has too many connections.
const GOING: [&str; 5] = ["57P01", "57P02", "57P03", "53300", "1040"];

/// The error of a database operation.
#[derive(Debug)]
pub struct Fault {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing was done, because of a conflict with other transactions.
    InTheWay,
    /// The database cannot be reached, or the connection was lost.
    Unreachable,
    /// A row violates a unique constraint.
    Twice,
    /// The URL or the schema is invalid.
    Unfit,
}

impl Fault {
    pub(crate) fn unfit(text: impl Into<String>) -> Fault {
        Fault { kind: Kind::Unfit, text: text.into() }
    }

    /// Returns the fault of a timeout: the operation may be done or not.
    pub(crate) fn silent() -> Fault {
        Fault { kind: Kind::Unreachable, text: "it does not answer".to_owned() }
    }

    /// Returns true if the database could not be reached, or the connection was lost.
    pub fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// Returns true if the only cause was a conflict with another transaction.
    pub fn is_in_the_way(&self) -> bool {
        self.kind == Kind::InTheWay
    }

    /// Returns true if a row violates a unique constraint.
    pub(crate) fn is_twice(&self) -> bool {
        self.kind == Kind::Twice
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let kind = match &error {
            Error::Database(error) if error.is_unique_violation() => Kind::Twice,
            Error::Database(error) => kind_of(error.as_ref()),
            Error::Io(_)
            | Error::Tls(_)
            | Error::Protocol(_)
            | Error::PoolTimedOut
            | Error::PoolClosed
            | Error::WorkerCrashed => Kind::Unreachable,
            _ => Kind::Unfit,
        };
        Fault { kind, text: error.to_string() }
    }
}

fn kind_of(error: &dyn sqlx::error::DatabaseError) -> Kind {
    let number = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>().map(|error| error.number());
    let code =
        number.map_or_else(|| error.code().unwrap_or_default().into_owned(), |number| number.to_string());
    if IN_THE_WAY.contains(&code.as_str()) {
        Kind::InTheWay
    } else if GOING.contains(&code.as_str()) {
        Kind::Unreachable
    } else {
        Kind::Unfit
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::InTheWay => "others were in the way",
            Kind::Unreachable => "it cannot be reached",
            Kind::Twice => "it is there already",
            Kind::Unfit => "it does not fit",
        };
        write!(out, "database: {what}: {}", self.text)
    }
}

impl std::error::Error for Fault {}
