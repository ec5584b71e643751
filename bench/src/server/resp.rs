//! `CL.THROTTLE` at three pipelines, beside Redis's `PING`, a script of Redis and throttlecrab.

use std::time::Duration;

use super::call::{Call, Keys};
use super::candidate::{Candidate, Turn};
use super::host::{Programs, Server, load_script};
use super::plot::draw;
use super::table::Table;
use super::{CONNECTIONS, PING};
use crate::goal::Goal;
use crate::options::Options;

pub(super) const OURS: &str = "tidegate CL.THROTTLE, 1 M keys";
pub(super) const OURS_HOT: &str = "tidegate CL.THROTTLE, one hot key";
pub(super) const SCRIPT: &str = "redis-server Lua GCRA, 1 M keys";
pub(super) const SCRIPT_HOT: &str = "redis-server Lua GCRA, one hot key";
pub(super) const CRAB: &str = "throttlecrab THROTTLE*, 1 M keys";
pub(super) const CRAB_HOT: &str = "throttlecrab THROTTLE*, one hot key";
/// How many requests are in flight on each connection.
pub(super) const PIPELINES: [usize; 3] = [1, 16, 64];

const TURN: Duration = Duration::from_millis(600);

/// The servers; Redis twice, because keys that expire would be swept while `PING` is measured.
struct Servers {
    ours: Option<Server>,
    ping: Option<Server>,
    script: Option<Server>,
    crab: Option<Server>,
}

/// Prints a table for each pipeline; draws them if that was asked for.
pub(super) fn run(options: &Options, programs: &Programs) -> Result<Vec<Goal>, String> {
    let servers = Servers {
        ours: programs.tidegate(),
        ping: programs.redis(),
        script: programs.redis(),
        crab: programs.throttlecrab(),
    };
    let mut candidates = servers.candidates()?;
    let mut tables = Vec::new();
    for depth in PIPELINES {
        eprintln!("server resp: pipeline {depth}");
        let table = Table::measure(&mut candidates, Turn::Closed(depth, TURN))?;
        table.print(&format!("RESP, pipeline {depth}, {CONNECTIONS} connections; base: {PING}"), PING);
        tables.push(table);
    }
    println!(
        "* throttlecrab-server does not set TCP_NODELAY: its latencies are those of Nagle's algorithm\n"
    );
    if options.plot {
        draw(&tables);
    }
    let [one, sixteen, sixty_four] =
        [0, 1, 2].map(|place: usize| tables[place].ratio(OURS, PING, |sample| sample.cpu));
    Ok(vec![
        Goal::at_most("server/pipeline-1", one, 1.1, 1.0),
        Goal::at_most("server/pipeline-16", sixteen, 1.1, 1.0),
        Goal::at_most("server/pipeline-64", sixty_four, 1.2, 1.0),
    ])
}

impl Servers {
    /// All that is measured, with keys that are known.
    fn candidates(&self) -> Result<Vec<Candidate<'_>>, String> {
        let script = self.script.as_ref().map(|server| load_script(server.resp)).transpose()?;
        let script = Call::Script(script.unwrap_or_default());
        let all = [
            (PING, &self.ping, Call::Ping, Keys::None),
            (OURS, &self.ours, Call::ClThrottle, Keys::Million),
            (OURS_HOT, &self.ours, Call::ClThrottle, Keys::Hot),
            (SCRIPT, &self.script, script.clone(), Keys::Million),
            (SCRIPT_HOT, &self.script, script, Keys::Hot),
            (CRAB, &self.crab, Call::Throttle, Keys::Million),
            (CRAB_HOT, &self.crab, Call::Throttle, Keys::Hot),
        ];
        let there = all
            .into_iter()
            .filter_map(|(name, server, call, keys)| Some((name, server.as_ref()?, call, keys)));
        let candidate = |(name, server, call, keys)| {
            eprintln!("server resp: {name} meets its keys");
            Candidate::new(name, server, (call, keys), CONNECTIONS)?.meet()
        };
        there.map(candidate).collect()
    }
}
