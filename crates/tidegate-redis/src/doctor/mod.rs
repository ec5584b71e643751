//! Diagnosis of a deployment: reachability, roles, permissions and eviction of its servers.
//!
//! Every finding contains the fault and its remedy.

mod deployment;
mod finding;
mod server;
mod trial;

pub use finding::{Finding, Gravity};

use std::time::Duration;

use crate::open::{OpenError, check};
use crate::options::Options;
use crate::store::RedisStore;

/// The timeout of one step.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Examines a deployment and returns all findings, in the order of the checks. It uses its own keys, and removes them.
///
/// Waits for servers for at most a few seconds, and needs no runtime of the caller. Returns an error if the options are
/// invalid.
pub async fn examine(options: Options) -> Result<Vec<Finding>, OpenError> {
    check(&options)?;
    let store = RedisStore::open(options.clone())?;
    let running = match store.inner.running() {
        Ok(running) => running,
        Err(fault) => return Ok(vec![Finding::bad("thread", fault.to_string())]),
    };
    let looking = running.background.handle().spawn(look(options, store.clone()));
    Ok(looking
        .await
        .unwrap_or_else(|error| vec![Finding::bad("doctor", format!("it failed itself: {error}"))]))
}

async fn look(options: Options, store: RedisStore) -> Vec<Finding> {
    let mut findings = Vec::new();
    let servers = deployment::servers(&options, &mut findings).await;
    let mut clocks = Vec::new();
    for address in &servers {
        clocks.extend(server::look(address, &options, &mut findings).await);
    }
    server::compare(&clocks, &mut findings);
    if servers.is_empty() {
        return findings;
    }
    trial::look(&store, &mut findings).await;
    findings
}
