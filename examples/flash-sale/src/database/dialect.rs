//! The differences between the three databases.

use std::fmt;
use std::sync::{Arc, OnceLock};

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::{Query, QueryAs, QueryScalar};
use sqlx::{Any, AnyConnection, AssertSqlSafe, FromRow};

/// The kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Embedded, one writer at a time.
    Sqlite,
    /// A server.
    Postgres,
    /// A server.
    MariaDb,
}

impl Dialect {
    /// Returns the kind that a URL names, if it is supported.
    pub fn of(url: &str) -> Option<Dialect> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Dialect::Sqlite),
            "postgres" | "postgresql" => Some(Dialect::Postgres),
            "mysql" | "mariadb" => Some(Dialect::MariaDb),
            _ => None,
        }
    }

    /// Returns the expression of the database's time in milliseconds, evaluated when the row is read, also after a wait
    /// for its lock.
    fn now(self) -> &'static str {
        match self {
            Dialect::Sqlite => "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
            Dialect::Postgres => "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)",
            Dialect::MariaDb => "CAST(floor(UNIX_TIMESTAMP(SYSDATE(3)) * 1000) AS SIGNED)",
        }
    }

    /// Returns the statements that initialize each connection.
    pub(super) fn greeting(self) -> &'static [&'static str] {
        match self {
            Dialect::Sqlite => {
                &["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA busy_timeout = 10000"]
            }
            Dialect::Postgres => &["SET lock_timeout = '10s'"],
            // As in PostgreSQL, an insertion then locks no gap in which other transactions insert.
            Dialect::MariaDb => &[
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "SET SESSION innodb_lock_wait_timeout = 10",
            ],
        }
    }

    /// Returns the statement that begins a writing transaction. SQLite cannot upgrade a transaction that has read
    /// before.
    pub(super) fn begin(self) -> Option<&'static str> {
        (self == Dialect::Sqlite).then_some("BEGIN IMMEDIATE")
    }
}

impl From<&AnyConnection> for Dialect {
    fn from(connection: &AnyConnection) -> Dialect {
        match connection.backend_name() {
            "PostgreSQL" => Dialect::Postgres,
            "MySQL" => Dialect::MariaDb,
            _ => Dialect::Sqlite,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Dialect::Sqlite => "SQLite",
            Dialect::Postgres => "PostgreSQL",
            Dialect::MariaDb => "MariaDB",
        })
    }
}

/// A statement for all databases: `?` is an argument, `{now}` the time, `{skip}` skips rows that other transactions
/// have locked, `{integer}` is the type of an integer, `{least}` the function that returns the smaller value.
pub(crate) struct Statement {
    written: &'static str,
    said: [OnceLock<Arc<str>>; 3],
}

impl Statement {
    pub(crate) const fn new(written: &'static str) -> Statement {
        Statement { written, said: [OnceLock::new(), OnceLock::new(), OnceLock::new()] }
    }

    /// Returns the statement as a query of this database, to be executed, or for rows that are read one by one.
    pub(crate) fn query(&self, dialect: impl Into<Dialect>) -> Query<'static, Any, AnyArguments> {
        sqlx::query(self.text(dialect.into()))
    }

    /// Returns the statement as a query whose rows become values.
    pub(crate) fn rows<T>(&self, dialect: impl Into<Dialect>) -> QueryAs<'static, Any, T, AnyArguments>
    where
        T: for<'r> FromRow<'r, AnyRow>,
    {
        sqlx::query_as(self.text(dialect.into()))
    }

    /// Returns the statement as a query for its first column.
    pub(crate) fn column<T>(&self, dialect: impl Into<Dialect>) -> QueryScalar<'static, Any, T, AnyArguments>
    where
        (T,): for<'r> FromRow<'r, AnyRow>,
    {
        sqlx::query_scalar(self.text(dialect.into()))
    }

    fn text(&self, dialect: Dialect) -> AssertSqlSafe<Arc<str>> {
        let said = self.said[dialect as usize].get_or_init(|| say(self.written, dialect).into());
        AssertSqlSafe(Arc::clone(said))
    }
}

fn say(written: &str, dialect: Dialect) -> String {
    let skip = if dialect == Dialect::Sqlite { "" } else { "FOR UPDATE SKIP LOCKED" };
    let integer = if dialect == Dialect::MariaDb { "SIGNED" } else { "BIGINT" };
    let least = if dialect == Dialect::Sqlite { "min" } else { "least" };
    let text = written.replace("{now}", dialect.now()).replace("{skip}", skip);
    let text = text.replace("{integer}", integer).replace("{least}", least);
    if dialect != Dialect::Postgres {
        return text;
    }
    let mut numbered = String::with_capacity(text.len() + 16);
    let mut number = 0;
    for piece in text.split_inclusive('?') {
        match piece.strip_suffix('?') {
            Some(before) => {
                number += 1;
                numbered += &format!("{before}${number}");
            }
            None => numbered += piece,
        }
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbered_where_they_have_to_be() {
        static LOOK: Statement = Statement::new("SELECT a FROM b WHERE c = ? AND d = ?");
        assert_eq!(&*LOOK.text(Dialect::Postgres).0, "SELECT a FROM b WHERE c = $1 AND d = $2");
        assert_eq!(&*LOOK.text(Dialect::MariaDb).0, "SELECT a FROM b WHERE c = ? AND d = ?");
    }

    #[test]
    fn a_url_names_its_database() {
        assert_eq!(Dialect::of("sqlite:shop.db"), Some(Dialect::Sqlite));
        assert_eq!(Dialect::of("postgresql://shop@localhost/shop"), Some(Dialect::Postgres));
        assert_eq!(Dialect::of("mysql://shop@localhost/shop"), Some(Dialect::MariaDb));
        assert_eq!((Dialect::of("oracle://shop"), Dialect::of("shop.db")), (None, None));
    }
}
