//! The table of overrides, which all servers with the same prefix share.
//!
//! It is beside the counts and no part of a decision: a server reads it about once a second, and changes it when an
//! operator does. A change names the version that it is based on, so of two changes at the same time one is made, and
//! the other one reads again.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tidegate_core::StoreError;
use tokio::time::Instant;

use crate::exchange::Question;
use crate::script::{self, TableContent};
use crate::store::{Inner, RedisStore, closed, read};

/// The minimum time that a request has. The table is larger than a decision, and no client request waits for it.
const MIN_DEADLINE: Duration = Duration::from_secs(2);

/// A table of texts by name with a version, beside the counts of a store. Tidegate keeps overrides in it.
///
/// All stores with the same prefix share it. It survives as long as the server keeps its data.
///
/// ```no_run
/// use tidegate::redis::{Options, RedisStore, TableChange};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::open(Options::new("redis://127.0.0.1:6379".parse()?))?;
/// let table = store.overrides();
/// let known = table.read(100).await?;
/// let change = TableChange { set: vec![(b"3:api".to_vec(), b"{}".to_vec())], ..TableChange::default() };
/// assert!(table.change(known.version, &change).await?, "another server was first");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OverrideTable {
    store: RedisStore,
}

/// The content of an [`OverrideTable`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRead {
    /// The version; 0 if there is no table. It is another one after each change, also if the server has lost its data.
    pub version: u64,
    /// The first version of the table. Another epoch means that the server has lost its data since, and the table was begun
    /// anew. `None` if there is no table, or more texts than the caller accepts.
    pub epoch: Option<u64>,
    /// The number of texts.
    pub count: usize,
    /// The names and their texts; `None` if there are more than the caller accepts.
    pub each: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// A change of an [`OverrideTable`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableChange {
    /// The names to remove.
    pub removed: Vec<Vec<u8>>,
    /// The names to set, each with its text. A name begins with a digit.
    pub set: Vec<(Vec<u8>, Vec<u8>)>,
    /// The time after which the server may forget the whole table, in seconds since 1970; `None` for never.
    pub until: Option<u64>,
}

impl RedisStore {
    /// Returns the table of overrides beside the counts of this store.
    pub fn overrides(&self) -> OverrideTable {
        OverrideTable { store: self.clone() }
    }
}

impl OverrideTable {
    /// Returns the version of the table, by reading one field; 0 if there is no table.
    ///
    /// # Errors
    /// The error of the store. While the server is down, it is returned at once.
    pub async fn version(&self) -> Result<u64, StoreError> {
        let fields = script::version_field(self.store.inner.prefix());
        read(script::read_version(&self.ask(Question::ReadFields(Arc::new(fields))).await?))
    }

    /// Reads the whole table, if it has at most `most` texts.
    ///
    /// # Errors
    /// The error of the store. While the server is down, it is returned at once.
    pub async fn read(&self, most: usize) -> Result<TableRead, StoreError> {
        let call = script::read_overrides(self.store.inner.prefix(), most);
        let TableContent { version, epoch, count, fields } =
            read(script::read_table(self.ask(Question::Run(Arc::new(call))).await?))?;
        let count = fields.as_ref().map_or(count.saturating_sub(2), Vec::len);
        Ok(TableRead { version, epoch, count, each: fields })
    }

    /// Changes the table if it still has this version. Returns false, and changes nothing, if it has another one.
    ///
    /// # Errors
    /// The error of the store. If it is not retryable, the change may have been made.
    pub async fn change(&self, from: u64, change: &TableChange) -> Result<bool, StoreError> {
        let TableChange { removed, set, until } = change;
        let call = script::change_overrides(self.store.inner.prefix(), from, *until, removed, set);
        read(script::read_changed(self.ask(Question::Run(Arc::new(call))).await?))
    }

    /// Sends a request outside the decisions, on the connection thread.
    async fn ask(&self, question: Question) -> Result<Value, StoreError> {
        let inner: &Inner = &self.store.inner;
        let running = inner.running()?;
        let exchange = running.exchange.clone();
        let due = Instant::now() + inner.options.deadline.max(MIN_DEADLINE);
        let asked =
            running.background.handle().spawn(async move { exchange.ask_beside_until(&question, due).await });
        match asked.await {
            Ok(answer) => Ok(answer?.value),
            Err(_) => Err(closed().into()),
        }
    }
}
