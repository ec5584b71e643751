//! Reports when the remote store becomes unavailable, and when it is available again.
//!
//! A change is reported on standard error once, with the reason that the store's client observed. The report at the
//! end of an outage has the number of requests that were decided by `on_store_failure` meanwhile.

use std::time::Duration;

use tidegate_redis::{RedisStore, Status, Url};
use tokio::time::{sleep, timeout};

use crate::engine::Engine;

/// Timeout of the first connection attempt. A closed port fails at once (`ECONNREFUSED`).
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// The period between two looks at the status. It bounds the number of reports about a store that flaps.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Returns the status of the store after the first connection attempt, or after [`CONNECT_TIMEOUT`].
///
/// The server is ready in either case: it does not wait for Redis.
pub(crate) async fn first_look(store: &RedisStore) -> Status {
    // The status contains the error.
    let _ = timeout(CONNECT_TIMEOUT, store.ready()).await;
    store.status()
}

/// Reports every change between available and unavailable.
///
/// Never returns. `was_available` is the status that was reported last.
pub(crate) async fn watch(
    store: &RedisStore,
    engine: &Engine,
    mut was_available: bool,
    tell: impl Fn(&str) + Send + Sync,
) {
    let mut reported = engine.decided_without_store();
    loop {
        sleep(LOOK_EVERY).await;
        let status = store.status();
        if status.is_available == was_available {
            continue;
        }
        was_available = status.is_available;
        if was_available {
            let without = engine.decided_without_store();
            let place = store.url();
            tell(&format!("store: {place} is back; decided without it: {}", without - reported));
            reported = without;
        } else {
            tell(&format!("store: {}", absent(store.url(), &status)));
        }
    }
}

/// Returns the report about a store that is unavailable.
pub(crate) fn absent(place: &Url, status: &Status) -> String {
    let what = &status.what;
    format!("{place} is not reachable: {what}; deciding by each rule's on_store_failure until it is")
}
