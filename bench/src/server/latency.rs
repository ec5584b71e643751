//! Latencies at half of the peak: requests come by the clock, not when the server is done with those before.

use std::time::Duration;

use super::call::{Call, Keys};
use super::candidate::{Candidate, Turn};
use super::host::Programs;
use super::resp::OURS;
use super::table::Table;
use super::{CONNECTIONS, PING};
use crate::goal::Goal;
use crate::options::Options;

const PEAK_TURN: Duration = Duration::from_millis(600);
const TURN: Duration = Duration::from_millis(2000);

/// Prints the peaks, and a table at half of ours.
pub(super) fn run(_: &Options, programs: &Programs) -> Result<Vec<Goal>, String> {
    let (ours, ping) = (programs.tidegate(), programs.redis());
    let mut candidates = Vec::new();
    if let Some(server) = &ours {
        candidates
            .push(Candidate::new(OURS, server, (Call::ClThrottle, Keys::Million), CONNECTIONS)?.meet()?);
    }
    if let Some(server) = &ping {
        candidates.push(Candidate::new(PING, server, (Call::Ping, Keys::None), CONNECTIONS)?);
    }
    // Without our server, that of Redis shows what its own latencies are.
    let Some(first) = candidates.first().map(|candidate| candidate.name) else { return Ok(Vec::new()) };
    let peaks = Table::measure(&mut candidates, Turn::Closed(1, PEAK_TURN))?;
    peaks.print(&format!("closed loop, pipeline 1, {CONNECTIONS} connections: the peak; base: {PING}"), PING);
    let rate = peaks.middle(first, |sample| sample.rate) / 2.0;
    let table = Table::measure(&mut candidates, Turn::Open(rate, TURN))?;
    table.print(&format!("open loop, {rate:.0} requests/s on {CONNECTIONS} connections; base: {PING}"), PING);
    let ratio = table.ratio(OURS, PING, |sample| sample.p99);
    Ok(vec![Goal::at_most("server/p99-at-half-of-peak", ratio, 1.5, 1.0)])
}
