//! `POST /v1/take` over connections that stay open, beside throttlecrab's call.

use std::time::Duration;

use super::CONNECTIONS;
use super::call::{Call, Keys};
use super::candidate::{Candidate, Turn};
use super::host::Programs;
use super::table::Table;
use crate::goal::Goal;
use crate::options::Options;

const OURS: &str = "tidegate POST /v1/take, 1 M keys";
const OURS_HOT: &str = "tidegate POST /v1/take, one hot key";
const CRAB: &str = "throttlecrab POST /throttle, 1 M keys";
const CRAB_HOT: &str = "throttlecrab POST /throttle, one hot key";
const TURN: Duration = Duration::from_millis(1000);

/// Prints a table.
pub(super) fn run(_: &Options, programs: &Programs) -> Result<Vec<Goal>, String> {
    let (ours, crab) = (programs.tidegate(), programs.throttlecrab());
    let all = [
        (OURS, &ours, Call::Take, Keys::Million),
        (OURS_HOT, &ours, Call::Take, Keys::Hot),
        (CRAB, &crab, Call::HttpThrottle, Keys::Million),
        (CRAB_HOT, &crab, Call::HttpThrottle, Keys::Hot),
    ];
    let mut candidates = Vec::new();
    for (name, server, call, keys) in all {
        if let Some(server) = server {
            candidates.push(Candidate::new(name, server, (call, keys), CONNECTIONS)?);
        }
    }
    let table = Table::measure(&mut candidates, Turn::Closed(1, TURN))?;
    table.print(&format!("HTTP, {CONNECTIONS} connections that stay open; base: {CRAB}"), CRAB);
    let ratio = table.ratio(OURS, CRAB, |sample| sample.cpu);
    Ok(vec![Goal::at_most("server/http-take", ratio, 0.85, 0.75)])
}
