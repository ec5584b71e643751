//! `/v1/bans`: the keys that penalties of rules ban.
//!
//! ```text
//! {"bans":[{"rule":"login","key":["ana"],"ends_in_ms":600000}]}
//! ```
//!
//! The query of the URI has the parameters `rule` and `n`, as that of `/v1/top`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_rules::BannedKey;
use tidegate_support::ceil_ms;

use super::problem::Problem;
use super::reply::Reply;
use super::top::{no_such_rule, parameters};
use crate::engine::Engine;
use crate::top_keys::BansQuery;

#[derive(Serialize)]
struct Banned {
    /// The name of the rule.
    rule: String,
    /// The key parts, as text.
    key: Vec<String>,
    /// Milliseconds until the ban ends.
    ends_in_ms: u64,
}

/// Returns the banned keys, the longest bans first.
///
/// A remote store is asked if each ban is still in force, so its failure is status 503.
pub(super) async fn bans(query: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let asked = read(query).map_err(Problem::bad_request)?;
    asked.check(engine).map_err(no_such_rule)?;
    let bans = asked.run(engine).await?.into_iter();
    let bans = bans.map(|BannedKey { rule, key, ends_in, .. }| Banned {
        rule: rule.to_string(),
        key,
        ends_in_ms: ceil_ms(ends_in),
    });
    Ok(Reply::of(&BTreeMap::from([("bans", bans.collect::<Vec<_>>())])))
}

/// Parses the query of the URI. An unknown parameter is an error.
fn read(query: &[u8]) -> Result<BansQuery<Cow<'_, str>>, String> {
    let mut asked = BansQuery::default();
    for parameter in parameters(query)? {
        match parameter? {
            ("rule", value) => asked.rule = Some(value),
            ("n", value) => asked.set_keys(&value).map_err(|what| format!("n {what}"))?,
            (other, _) => return Err(format!("{other:?} is no parameter; there are rule and n")),
        }
    }
    Ok(asked)
}
