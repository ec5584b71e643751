//! The servers of a deployment, as reported by those in the URL.
//!
//! All Sentinels of the URL are queried, and a difference between them is a finding. Of cluster nodes only the first
//! that answers is queried for the slot map: nodes agree, except during a failover.

use tokio::time::timeout;

use super::{Finding, TIMEOUT};
use crate::dial::Dialer;
use crate::options::Options;
use crate::topology::{SLOTS, ask_sentinel, ask_slots};
use crate::url::{Address, Deployment};

/// The minimum number of Sentinels that can agree when one of them is down. A failover needs a majority of the
/// Sentinels.
const FEWEST_SENTINELS: usize = 3;

/// Returns the primaries that would decide. Faults of Sentinels and of the slot map are findings. The result is empty
/// if no primary is known.
pub(super) async fn servers(options: &Options, findings: &mut Vec<Finding>) -> Vec<Address> {
    match &options.url.place {
        Deployment::Standalone(address) => vec![address.clone()],
        Deployment::Sentinel { sentinels, service } => primary(options, (sentinels, service), findings).await,
        Deployment::Cluster(nodes) => primaries(options, nodes, findings).await,
    }
}

/// Queries each Sentinel for the primary. Returns each distinct address once; more than one is a fault. The credentials
/// are those for Sentinels, not those of the URL.
async fn primary(
    options: &Options,
    (sentinels, service): (&[Address], &str),
    findings: &mut Vec<Finding>,
) -> Vec<Address> {
    let dialer = Dialer::for_sentinels(options);
    let mut named: Vec<Address> = Vec::new();
    for sentinel in sentinels {
        match timeout(TIMEOUT, ask_sentinel(&dialer, sentinel, service)).await {
            Ok(Ok(view)) => {
                findings
                    .push(Finding::good("sentinel", format!("{sentinel} names {} as primary", view.primary)));
                if !named.contains(&view.primary) {
                    named.push(view.primary);
                }
            }
            Ok(Err(why)) => findings.push(Finding::bad("sentinel", why)),
            Err(_) => findings.push(Finding::bad("sentinel", format!("{sentinel}: no answer"))),
        }
    }
    // The difference is normal for a moment after a failover. If it stays, a part of the Sentinels is cut off.
    if named.len() > 1 {
        let list: Vec<_> = named.iter().map(Address::to_string).collect();
        findings.push(Finding::bad(
            "sentinel",
            format!(
                "they name different primaries: {}; wait for a failover to end, or restart the Sentinel that is wrong",
                list.join(", ")
            ),
        ));
    }
    // The URL may name fewer Sentinels than exist. The store then cannot find the others when these are down.
    if sentinels.len() < FEWEST_SENTINELS {
        findings.push(Finding::warning(
            "sentinel",
            format!("the URL names {} of them; name at least {FEWEST_SENTINELS}, or none can be queried when one is down", sentinels.len()),
        ));
    }
    named
}

/// Reads the slot map from the first node that answers. Slots without an owner are a fault, but the other owners are
/// still examined. If no node answers, the result is empty, and there is a finding for each of them.
async fn primaries(options: &Options, nodes: &[Address], findings: &mut Vec<Finding>) -> Vec<Address> {
    let dialer = Dialer::new(options);
    for node in nodes {
        match timeout(TIMEOUT, ask_slots(&dialer, node)).await {
            Ok(Ok(map)) => {
                let missing = map.missing();
                findings.push(if missing == 0 {
                    Finding::good("cluster", format!("{node} knows {} primaries for all {SLOTS} slots", map.nodes.len()))
                } else {
                    Finding::bad("cluster", format!("{missing} of {SLOTS} slots have no primary; repair it: redis-cli --cluster fix {node}"))
                });
                return map.nodes;
            }
            Ok(Err(why)) => findings.push(Finding::bad("cluster", why)),
            Err(_) => findings.push(Finding::bad("cluster", format!("{node}: no answer"))),
        }
    }
    Vec::new()
}
