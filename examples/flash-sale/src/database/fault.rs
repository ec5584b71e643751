//! What goes wrong between the shop and its database, and what may be done about it.

use std::fmt;

use sqlx::Error;

/// Codes of PostgreSQL, MariaDB and SQLite that mean: nothing was done, somebody else was in the way, ask again.
const IN_THE_WAY: [&str; 11] =
    ["40001", "40P01", "55P03", "1213", "1205", "1020", "5", "6", "261", "262", "517"];

/// Codes by which a server says that it goes away or has just come.
const GOING: [&str; 5] = ["57P01", "57P02", "57P03", "53300", "1040"];

/// The database did not do what it was asked for.
#[derive(Debug)]
pub struct Fault {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing was done: others were in the way.
    InTheWay,
    /// It cannot be reached, or has gone away in the middle.
    Unreachable,
    /// A row that has to be the only one is there already.
    Twice,
    /// The address or the schema does not fit.
    Unfit,
}

impl Fault {
    pub(crate) fn unfit(text: impl Into<String>) -> Fault {
        Fault { kind: Kind::Unfit, text: text.into() }
    }

    /// Nothing was heard of it for too long; what it was asked for may be done or not.
    pub(crate) fn silent() -> Fault {
        Fault { kind: Kind::Unreachable, text: "it does not answer".to_owned() }
    }

    /// Whether the database could not be reached, or went away in the middle.
    pub fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// Whether only somebody else was in the way.
    pub fn is_in_the_way(&self) -> bool {
        self.kind == Kind::InTheWay
    }

    /// Whether a row that has to be the only one is there already.
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
