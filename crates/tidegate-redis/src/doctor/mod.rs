//! Diagnosis of a deployment: reachability, roles, permissions and eviction of its servers.
//!
//! Every finding contains the fault and its remedy.
//!
//! The command `tidegate doctor` prints these findings. A program can call [`examine`] at startup or from an
//! administrative endpoint. The checks are:
//!
//! - `reach`, `version`, `role`: each server answers, is new enough, and is a primary;
//! - `eviction`: no key is evicted when the memory of a server is full;
//! - `replicas`, `sentinel`, `cluster`: a failover is possible, and all slots have an owner;
//! - `distance`, `clock`: round trips against the deadline, and the differences between clocks;
//! - `scripts`: every operation under every algorithm, which also tests the permissions of the user.

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
///
/// The call is safe on a server in production: it creates a handful of keys under a random name, and deletes them. It
/// sends twenty `PING` to each primary.
///
/// # Errors
///
/// Returns an error if the options are invalid. An unreachable server is a finding, not an error.
///
/// # Examples
///
/// ```no_run
/// use tidegate::redis::Options;
/// use tidegate::redis::doctor::{Gravity, examine};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let findings = examine(Options::new("redis://127.0.0.1:6379".parse()?)).await?;
/// for finding in findings.iter().filter(|finding| finding.gravity >= Gravity::Warning) {
///     eprintln!("{finding}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "health check")]
#[doc(alias = "diagnostics")]
#[doc(alias = "self test")]
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

/// Runs the checks in their order. The trial of operations is last, because it needs a reachable primary.
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
