//! A key that a store is asked about.

use std::error::Error as _;
use std::time::Duration;

use tidegate::{Ask, Key, PreparedLimit, Store as _, StoreError, Subject};
use tidegate_redis::{Options, RedisStore};

/// In whose name all of them are counted.
const NAMESPACE: &str = "drill";

/// A subject with its name.
#[derive(Clone, Debug)]
pub(crate) struct Someone {
    pub(crate) name: String,
    key: Key,
    limit: PreparedLimit,
}

impl Someone {
    /// Of this name, under the limit of this text.
    pub(crate) fn new(name: impl Into<String>, limit: &str) -> Someone {
        let name = name.into();
        let limit = limit.parse().unwrap_or_else(|error| panic!("limit {limit:?}: {error}"));
        Someone { key: Key::new(name.as_str()), limit: PreparedLimit::dynamic(NAMESPACE, limit), name }
    }

    pub(crate) fn subject(&self) -> Subject<'_> {
        self.limit.subject(&self.key)
    }

    /// Whether it is allowed.
    pub(crate) async fn take(&self, store: &RedisStore) -> Result<bool, StoreError> {
        Ok(store.take(&[(self.subject(), Ask::ONE)]).await?.is_allowed())
    }

    /// How much of its limit is spent now.
    pub(crate) async fn spent(&self, store: &RedisStore) -> Result<u64, StoreError> {
        let decision = store.peek(self.subject(), Ask::ONE).await?;
        Ok(decision.limit() - decision.remaining())
    }
}

/// Opens a store on the Redis of this URL.
pub(crate) fn open(url: &str, deadline: Duration, caches_denials: bool) -> Result<RedisStore, String> {
    let options = Options::new(url.parse().map_err(|error| format!("{url}: {error}"))?);
    RedisStore::open(options.deadline(deadline).caches_denials(caches_denials))
        .map_err(|error| error.to_string())
}

/// Waits for what a store answers, on a runtime that knows nothing of it.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime of one thread needs nothing of the system").block_on(future)
}

/// What a store says about an error.
pub(crate) fn reason(error: &StoreError) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
