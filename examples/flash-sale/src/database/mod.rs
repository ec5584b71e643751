//! The database: SQLite in a file, PostgreSQL or MariaDB, by one pool and one set of statements.
//!
//! All times are milliseconds of the database's clock, so that several shops on one database agree about when a sale is
//! open and a reservation over, whatever their own clocks say.

mod dialect;
mod fault;
mod work;

pub use dialect::Dialect;
pub use fault::Fault;

pub(crate) use dialect::Statement;
pub(crate) use work::{Tries, Work};

use std::borrow::Cow;
use std::sync::{Arc, Once};
use std::time::Duration;

use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, Row, SqlSafeStr};
use tokio::sync::Semaphore;

/// How long a request waits for a connection.
const FOR_A_CONNECTION: Duration = Duration::from_secs(5);

/// How long it waits for what it asks then: longer than the databases let it wait for a lock.
const PATIENCE: Duration = Duration::from_secs(12);

static NOW: Statement = Statement::new("SELECT {now} AS now_at");

/// A database with the shop's tables. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Database {
    pool: AnyPool,
    dialect: Dialect,
    /// SQLite has one writer at a time: ours take turns here, in order, instead of asking it again and again.
    turns: Option<Arc<Semaphore>>,
    patience: Duration,
}

impl Database {
    /// Connects, and makes or completes the tables.
    pub async fn open(url: &str, connections: u32) -> Result<Database, Fault> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(install_default_drivers);
        let dialect = Dialect::of(url).ok_or_else(|| {
            // The rest of it may hold a password.
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
            .connect(&address(url, dialect))
            .await?;
        migrations(dialect).run(&pool).await.map_err(|error| Fault::unfit(error.to_string()))?;
        let turns = (dialect == Dialect::Sqlite).then(|| Arc::new(Semaphore::new(1)));
        Ok(Database { pool, dialect, turns, patience: PATIENCE })
    }

    /// The same, with so much patience for a database that has gone away without a word; 12 seconds unless set.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Database {
        Database { patience, ..self }
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Its time, in milliseconds since 1970.
    pub async fn now(&self) -> Result<i64, Fault> {
        let row = sqlx::query(NOW.text(self.dialect)).fetch_one(&self.pool).await?;
        Ok(row.try_get("now_at")?)
    }

    /// Opens all connections that it may have, so that no buyer waits for that; as many as there are, if they are fewer.
    pub async fn warm_up(&self) {
        let mut open = Vec::new();
        while open.len() < self.pool.options().get_max_connections() as usize {
            let Ok(connection) = self.pool.acquire().await else { return };
            open.push(connection);
        }
    }

    /// Ends all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// A connection, for questions and for [`begin`](Database::begin).
    pub(crate) async fn connection(&self) -> Result<PoolConnection<Any>, Fault> {
        Ok(self.pool.acquire().await?)
    }

    /// Begins something that is done as a whole or not at all.
    ///
    /// Whoever waits for a turn has a connection already, so that nobody has a turn and waits for a connection.
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

/// Gives up a connection whose database does not answer: its place in the pool is free, and nobody gets it again.
pub(crate) fn abandon(connection: PoolConnection<Any>) -> Fault {
    drop(connection.detach());
    Fault::silent()
}

/// The address as the driver wants it: a file of SQLite is made if it is not there.
fn address(url: &str, dialect: Dialect) -> Cow<'_, str> {
    match dialect {
        Dialect::Sqlite if !url.contains("mode=") => {
            let joint = if url.contains('?') { '&' } else { '?' };
            Cow::Owned(format!("{url}{joint}mode=rwc"))
        }
        _ => Cow::Borrowed(url),
    }
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
