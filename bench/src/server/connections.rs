//! Ten times the connections: what is still answered when far more ask than at the peak.

use std::time::Duration;

use super::call::{Call, Keys};
use super::candidate::{Candidate, Turn};
use super::host::Programs;
use super::table::Table;
use super::{CONNECTIONS, PING};
use crate::goal::Goal;
use crate::options::Options;

const OURS: &str = "tidegate CL.THROTTLE, 50 connections";
const OURS_TENFOLD: &str = "tidegate CL.THROTTLE, 500 connections";
const PING_TENFOLD: &str = "redis-server PING, 500 connections";
const TENFOLD: usize = 10 * CONNECTIONS;
const TURN: Duration = Duration::from_millis(1000);

/// Prints a table.
pub(super) fn run(_: &Options, programs: &Programs) -> Result<Vec<Goal>, String> {
    let (ours, ping) = (programs.tidegate(), programs.redis());
    let ours_asked = (Call::ClThrottle, Keys::Million);
    let ping_asked = (Call::Ping, Keys::None);
    let all = [
        (PING, &ping, &ping_asked, CONNECTIONS),
        (PING_TENFOLD, &ping, &ping_asked, TENFOLD),
        (OURS, &ours, &ours_asked, CONNECTIONS),
        (OURS_TENFOLD, &ours, &ours_asked, TENFOLD),
    ];
    let mut candidates = Vec::new();
    for (name, server, asked, connections) in all {
        if let Some(server) = server {
            candidates.push(Candidate::new(name, server, asked.clone(), connections)?.meet()?);
        }
    }
    let table = Table::measure(&mut candidates, Turn::Closed(1, TURN))?;
    table.print(&format!("pipeline 1, {CONNECTIONS} connections and ten times as many; base: {PING}"), PING);
    let kept = |tenfold, few| table.ratio(tenfold, few, |sample| sample.rate);
    let (ours, peer) = (kept(OURS_TENFOLD, OURS), kept(PING_TENFOLD, PING));
    println!(
        "\nreplies/s with {TENFOLD} connections ÷ with {CONNECTIONS}: tidegate {ours:.3}, redis-server {peer:.3}"
    );
    Ok(vec![Goal::at_least("server/ten-times-the-connections", ours, 0.9, 1.0)])
}
