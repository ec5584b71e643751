//! Trial of all operations of the store, on the doctor's own keys.
//!
//! The trial finds what no single command shows: ACL rules that forbid a command within a script, a proxy that does not
//! support scripts, and a server with an incompatible implementation of Lua.

use std::time::Duration;

use tidegate_core::{
    Adjustment, Algorithm, Ask, Cost, Key, Limit, PreparedLimit, Store as _, StoreError, Subject,
};

use super::Finding;
use crate::store::RedisStore;

/// The namespace of the doctor's keys.
const NAMESPACE: &str = "tidegate-doctor";

/// Limits of all algorithms, so that every command of every script is tried.
///
/// Each limit admits ten units, so that the trial of one unit is allowed.
const LIMITS: [Limit; 7] = [
    Limit::per_second(10),
    Limit::leaky_bucket(10, Duration::from_secs(1)),
    Limit::fixed_window(10, Duration::from_secs(1)),
    Limit::sliding_log(10, Duration::from_secs(1)),
    Limit::sliding_window(10, Duration::from_secs(1)),
    Limit::pacer(10, Duration::from_secs(1)),
    Limit::concurrency(10, Duration::from_secs(1)),
];

/// Tries every operation under every algorithm. The key is random, so several doctors can run at the same time. All
/// states and the table of the namespace are removed, unless an operation fails before.
pub(super) async fn look(store: &RedisStore, findings: &mut Vec<Finding>) {
    if let Err(error) = store.ready().await {
        findings.push(Finding::bad("store", reason(&error)));
        return;
    }
    let key = Key::new(fastrand::u64(..));
    for limit in &LIMITS {
        let subject = Subject::new(NAMESPACE, &key, limit);
        if let Err(error) = try_all(store, subject).await {
            let what = reason(&error);
            findings.push(Finding::bad("scripts", format!("{}: {what}", limit.algorithm())));
            return;
        }
    }
    // All algorithms in one request use the general script.
    let several: Vec<_> =
        LIMITS.iter().map(|limit| (Subject::new(NAMESPACE, &key, limit), Ask::ONE)).collect();
    let taken = store.take(&several).await;
    let carried = try_change(store, &key).await;
    let forgotten = carried.and(store.inner.forget_namespace(several[0].0).await);
    findings.push(match (taken, forgotten) {
        (Ok(taken), Ok(_)) if taken.is_allowed() => Finding::good(
            "scripts",
            "every verb works under every algorithm, and seven limits in one request",
        ),
        (Ok(taken), Ok(_)) => {
            Finding::bad("scripts", format!("a fresh key was denied: {:?}", taken.verdict()))
        }
        (Err(error), _) | (_, Err(error)) => Finding::bad("scripts", reason(&error)),
    });
}

/// Changes the numbers of a rule, so that counts are carried over.
///
/// The second take runs the scripts that list limits and read states of previous limits.
async fn try_change(store: &RedisStore, key: &Key) -> Result<(), StoreError> {
    for amount in [10, 20] {
        let limit = PreparedLimit::of_rule(NAMESPACE, Limit::per_second(amount));
        store.take(&[(limit.subject(key), Ask::ONE)]).await?;
    }
    Ok(())
}

/// Takes, peeks, adjusts or renews and releases, and resets, under one limit. Permits are renewed and released. Other
/// limits are charged and refunded.
async fn try_all(store: &RedisStore, subject: Subject<'_>) -> Result<(), StoreError> {
    let asks = [(subject, Ask::ONE)];
    let taken = store.take(&asks).await?;
    store.peek(subject, Ask::ONE).await?;
    match taken.each().first().and_then(tidegate_core::Decision::permit) {
        Some(permit) => {
            store.renew(subject, permit).await?;
            store.release(subject, permit).await?;
        }
        None => {
            debug_assert!(subject.limit().algorithm() != Algorithm::Concurrency, "such takes have permits");
            store.adjust(subject, Adjustment::Charge(Cost::ONE)).await?;
            store.adjust(subject, Adjustment::Refund(Cost::ONE)).await?;
        }
    }
    store.reset(subject).await.map(|_| ())
}

/// Returns the message of the cause, which names the server and the remedy.
fn reason(error: &StoreError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
