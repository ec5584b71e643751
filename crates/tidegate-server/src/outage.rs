//! Tells people when a store elsewhere goes away, and when it is back.

use std::time::Duration;

use tidegate_redis::{RedisStore, Status, Url};
use tokio::time::{sleep, timeout};

use crate::engine::Engine;

/// How long a start waits to see whether the store is there. Whoever refuses does so at once.
const A_MOMENT: Duration = Duration::from_millis(500);
/// How often it is looked at, so that a store which comes and goes is not told more often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How the store is, once it was reached or was not.
pub(crate) async fn first_look(store: &RedisStore) -> Status {
    // The status says what went wrong.
    let _ = timeout(A_MOMENT, store.ready()).await;
    store.status()
}

/// Tells whenever it is another than it was.
pub(crate) async fn watch(
    store: &RedisStore,
    engine: &Engine,
    mut was_available: bool,
    tell: impl Fn(&str) + Send + Sync,
) {
    let mut told = engine.decided_without_store();
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
            tell(&format!("store: {place} is back; decided without it: {}", without - told));
            told = without;
        } else {
            tell(&format!("store: {}", absent(store.url(), &status)));
        }
    }
}

/// What is said about a store that is not there.
pub(crate) fn absent(place: &Url, status: &Status) -> String {
    let what = &status.what;
    format!("{place} is not reachable: {what}; deciding by each rule's on_store_failure until it is")
}
