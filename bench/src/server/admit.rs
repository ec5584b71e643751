//! `TG.ADMIT` with two rules that match, beside `TG.TAKE` and `CL.THROTTLE` on the same server.

use std::time::Duration;

use harness::Goal;

use super::CONNECTIONS;
use super::candidate::{Call, Candidate, Keys, Table, Turn};
use super::host::Programs;

const ADMIT: &str = "tidegate TG.ADMIT, two rules, 1 M keys";
const TAKE: &str = "tidegate TG.TAKE, 1 M keys";
const THROTTLE: &str = "tidegate CL.THROTTLE, 1 M keys";
/// One rule for each user and one for all of a path.
const RULES: &str = "\
[[rule]]
name = 'per-user'
when = { path = '/api/{*rest}' }
key = ['user']
limit = '30/h burst 100'

[[rule]]
name = 'api'
when = { path = '/api/{*rest}' }
limit = '10000000/s burst 10000000'
";
const DEPTH: usize = 16;
const TURN: Duration = Duration::from_millis(600);

/// Prints a table.
pub(super) fn run(programs: &Programs) -> Result<Vec<Goal>, String> {
    let server = programs.tidegate_with_rules(RULES);
    let server = server.as_ref().ok_or("there is no server of ours")?;
    let all = [(ADMIT, Call::Admit), (TAKE, Call::TgTake), (THROTTLE, Call::ClThrottle)];
    let mut candidates = Vec::new();
    for (name, call) in all {
        candidates.push(Candidate::new(name, server, &call, Keys::Million, CONNECTIONS)?.meet()?);
    }
    let table = Table::measure(&mut candidates, Turn::Closed(DEPTH, TURN))?;
    table.print(&format!("RESP, pipeline {DEPTH}, {CONNECTIONS} connections; base: {TAKE}"), TAKE);
    let ratio = table.ratio(ADMIT, TAKE, |sample| sample.cpu);
    Ok(vec![Goal::at_most("server/admit-two-rules", ratio, 2.0, 1.6)])
}
