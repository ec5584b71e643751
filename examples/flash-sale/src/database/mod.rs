//! The database: SQLite in a file, PostgreSQL or MariaDB, with one pool and one set of statements.
//!
//! All times are milliseconds of the database's clock, so that several shops on one database agree on the times of a
//! sale and of reservations, whatever their own clocks report.

mod dialect;
mod fault;
mod work;

pub use dialect::Dialect;
pub use fault::Fault;

pub(crate) use dialect::Statement;
pub(crate) use work::{Work, retry};

use std::sync::{Arc, Once};
use std::time::Duration;

use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, SqlSafeStr};
use tokio::sync::Semaphore;

/// The timeout of a request for a connection.
const FOR_A_CONNECTION: Duration = Duration::from_secs(5);

/// The timeout of an operation on a connection: longer than the lock timeouts of the databases.
const TIMEOUT: Duration = Duration::from_secs(12);

static NOW: Statement = Statement::new("SELECT {now} AS now_at");

/// A database with the tables of the shop. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Database {
    pool: AnyPool,
    dialect: Dialect,
    /// SQLite allows one writer at a time: writers of this process queue here in FIFO order, instead of polling SQLite.
    turns: Option<Arc<Semaphore>>,
    timeout: Duration,
}

impl Database {
    /// Connects, and creates or migrates the tables.
    pub async fn open(url: &str, connections: u32) -> Result<Database, Fault> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(install_default_drivers);
        let dialect = Dialect::of(url).ok_or_else(|| {
            // The rest of the URL may contain a password.
            let kind = url.split_once(':').map_or("", |(kind, _)| kind);
            Fault::unfit(format!("address of kind \"{kind}\": write sqlite:FILE, postgres://… or mysql://…"))
        })?;
        let pool = AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(FOR_A_CONNECTION)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    for words in dialect.greeting() {
                        connection.execute(*words).await?;
                    }
                    Ok(())
                })
            })
            .connect(&in_mode(url, "rwc"))
            .await?;
        migrations(dialect).run(&pool).await.map_err(|error| Fault::unfit(error.to_string()))?;
        let turns = (dialect == Dialect::Sqlite).then(|| Arc::new(Semaphore::new(1)));
        Ok(Database { pool, dialect, turns, timeout: TIMEOUT })
    }

    /// Returns the same with another timeout for a database that stops replying; 12 seconds unless set.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Database {
        Database { timeout, ..self }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the kind of the database.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the time of the database, in milliseconds since 1970.
    pub async fn now(&self) -> Result<i64, Fault> {
        Ok(NOW.column(self.dialect).fetch_one(&self.pool).await?)
    }

    /// Opens the maximum number of connections, so that no buyer waits for that; fewer if the database accepts fewer.
    pub async fn warm_up(&self) {
        let mut open = Vec::new();
        while open.len() < self.pool.options().get_max_connections() as usize {
            let Ok(connection) = self.pool.acquire().await else { return };
            open.push(connection);
        }
    }

    /// Closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// Returns a connection, for queries and for [`begin`](Database::begin).
    pub(crate) async fn connection(&self) -> Result<PoolConnection<Any>, Fault> {
        Ok(self.pool.acquire().await?)
    }

    /// Begins a transaction.
    ///
    /// A writer that waits for its turn has a connection already, so that no writer has the turn and waits for a
    /// connection.
    pub(crate) async fn begin<'c>(&self, connection: &'c mut AnyConnection) -> Result<Work<'c>, Fault> {
        let turn = match &self.turns {
            Some(turns) => Arc::clone(turns).acquire_owned().await.ok(),
            None => None,
        };
        let transaction = match self.dialect.begin() {
            Some(words) => connection.begin_with(words).await?,
            None => connection.begin().await?,
        };
        Ok(Work::new(transaction, turn))
    }
}

/// Drops a connection whose database does not reply: its slot in the pool is free, and the connection is not used
/// again.
pub(crate) fn abandon(connection: PoolConnection<Any>) -> Fault {
    drop(connection.detach());
    Fault::silent()
}

/// Returns the URL for the driver. SQLite gets a mode: `rwc` creates a missing file, `rw` does not.
pub(crate) fn in_mode(url: &str, mode: &str) -> String {
    if Dialect::of(url) != Some(Dialect::Sqlite) || url.contains("mode=") {
        return url.to_owned();
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}mode={mode}")
}

fn migrations(dialect: Dialect) -> Migrator {
    let text = match dialect {
        Dialect::Sqlite => include_str!("../../migrations/sqlite/0001_shop.sql"),
        Dialect::Postgres => include_str!("../../migrations/postgres/0001_shop.sql"),
        Dialect::MariaDb => include_str!("../../migrations/mariadb/0001_shop.sql"),
    };
    let shop = Migration::new(1, "shop".into(), MigrationType::Simple, text.into_sql_str(), false);
    Migrator { migrations: vec![shop].into(), ..Migrator::DEFAULT }
}
