//! `/readyz`: readiness of the server, state of the rules file, and state of a remote store.
//!
//! A server is not ready only while it stops. An invalid rules file or a store that is down would be the same on
//! every server, so taking this one out of rotation would not help.

use hyper::StatusCode;
use serde_json::{Map, Value, json};
use tidegate::DecidedBy;
use tidegate_redis::RedisStore;

use super::problem::Problem;
use super::reply::Reply;
use crate::engine::Engine;

/// The level of detail of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadyDetail {
    /// Without the file's error and the store's address, since any client may ask.
    InShort,
    /// With the file's error and the state of the remote store.
    InDetail,
}

/// Returns the page, or status 503 while the server stops.
pub(super) fn page(engine: &Engine, detail: ReadyDetail) -> Result<Reply, Problem> {
    if engine.is_stopping() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; ask another"));
    }
    // An invalid file does not make the server unready: the rules before it are in force.
    let wrong = engine.rules().status().wrong;
    let mut page = Map::new();
    page.insert("ready".to_owned(), true.into());
    page.insert("rules".to_owned(), if wrong.is_some() { "rejected" } else { "ok" }.into());
    if let Some(wrong) = wrong.filter(|_| detail == ReadyDetail::InDetail) {
        page.insert("detail".to_owned(), wrong.lines().next().unwrap_or_default().into());
    }
    // Nor does a store that is down: other servers cannot reach it either, and each rule has a fallback.
    if let Some(redis) = engine.redis() {
        page.insert("store".to_owned(), store(engine, redis, detail));
    }
    Ok(Reply::of(&page))
}

/// Returns the state of the remote store.
fn store(engine: &Engine, redis: &RedisStore, detail: ReadyDetail) -> Value {
    let status = redis.status();
    let mut page = json!({
        "kind": DecidedBy::Remote.as_str(),
        "available": status.is_available,
        "decided_without": engine.decided_without_store(),
    });
    if detail == ReadyDetail::InDetail {
        page["what"] = status.what.into();
    }
    page
}
