//! `/readyz`: whether to send requests here, and whether the rules are those of the file.

use hyper::StatusCode;
use serde_json::json;

use super::problem::Problem;
use super::reply::Reply;
use crate::engine::Engine;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing of the file, as anybody may ask.
    InShort,
    /// What is wrong with it, too.
    InDetail,
}

pub(super) fn page(engine: &Engine, told: Told) -> Result<Reply, Problem> {
    if engine.is_stopping() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping; ask another"));
    }
    // A file that does not hold is no reason to send requests elsewhere: the rules before it are in force.
    Ok(match engine.rules.status().wrong {
        None => Reply::json(r#"{"ready":true,"rules":"ok"}"#),
        Some(_) if told == Told::InShort => Reply::json(r#"{"ready":true,"rules":"rejected"}"#),
        Some(wrong) => {
            let first = wrong.lines().next().unwrap_or_default();
            Reply::of(&json!({"ready": true, "rules": "rejected", "detail": first}))
        }
    })
}
