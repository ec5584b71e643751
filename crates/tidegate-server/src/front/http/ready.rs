//! `/readyz`: whether to send requests here, whether the rules are those of the file, and how a remote store is.

use hyper::StatusCode;
use serde_json::{Map, Value, json};
use tidegate::DecidedBy;
use tidegate_redis::RedisStore;

use super::problem::Problem;
use super::reply::Reply;
use crate::engine::Engine;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing of the file and of where a store is, as anybody may ask.
    InShort,
    /// What is wrong with it and with a remote store, too.
    InDetail,
}

pub(super) fn page(engine: &Engine, told: Told) -> Result<Reply, Problem> {
    if engine.is_stopping() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; ask another"));
    }
    // A file that does not hold is no reason to send requests elsewhere: the rules before it are in force.
    let wrong = engine.rules().status().wrong;
    let mut page = Map::new();
    page.insert("ready".to_owned(), true.into());
    page.insert("rules".to_owned(), if wrong.is_some() { "rejected" } else { "ok" }.into());
    if let Some(wrong) = wrong.filter(|_| told == Told::InDetail) {
        page.insert("detail".to_owned(), wrong.lines().next().unwrap_or_default().into());
    }
    // Nor is a store that does not answer: other servers do not reach it either, and each rule says what holds then.
    if let Some(redis) = engine.redis() {
        page.insert("store".to_owned(), store(engine, redis, told));
    }
    Ok(Reply::of(&page))
}

fn store(engine: &Engine, redis: &RedisStore, told: Told) -> Value {
    let status = redis.status();
    let mut page = json!({
        "kind": DecidedBy::Remote.as_str(),
        "available": status.is_available,
        "decided_without": engine.decided_without_store(),
    });
    if told == Told::InDetail {
        page["what"] = status.what.into();
    }
    page
}
