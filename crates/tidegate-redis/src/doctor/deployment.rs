//! The servers of a deployment, as reported by those in the URL.

use tokio::time::timeout;

use super::{Finding, TIMEOUT};
use crate::dial::Dialer;
use crate::options::Options;
use crate::topology::{SLOTS, ask_sentinel, ask_slots};
use crate::url::{Address, Deployment};

/// The minimum number of Sentinels that can agree when one of them is down.
const FEWEST_SENTINELS: usize = 3;

/// Returns the primaries that would decide.
pub(super) async fn servers(options: &Options, findings: &mut Vec<Finding>) -> Vec<Address> {
    match &options.url.place {
        Deployment::Standalone(address) => vec![address.clone()],
        Deployment::Sentinel { sentinels, service } => primary(options, (sentinels, service), findings).await,
        Deployment::Cluster(nodes) => primaries(options, nodes, findings).await,
    }
}

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
    if named.len() > 1 {
        let list: Vec<_> = named.iter().map(Address::to_string).collect();
        findings.push(Finding::bad(
            "sentinel",
            format!(
                "they name different primaries: {}; wait for a failover to end, or restart who is wrong",
                list.join(", ")
            ),
        ));
    }
    if sentinels.len() < FEWEST_SENTINELS {
        findings.push(Finding::warning(
            "sentinel",
            format!("the URL names {} of them; name at least {FEWEST_SENTINELS}, or nobody is left to ask when one is gone", sentinels.len()),
        ));
    }
    named
}

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
