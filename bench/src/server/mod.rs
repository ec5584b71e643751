//! Our server beside redis-server and throttlecrab-server, in one run.
//!
//! Every server is a process of its own on one core, and the load, one thread of this program, is on another.
//! They take turns: while one is measured, the others are stopped.
//! `server SECTION...` measures only these, `--plot` draws what a request costs by the depth of the pipeline.

mod admit;
pub(crate) mod candidate;
pub(crate) mod host;
mod memory;

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use harness::plot::{Axis, Chart, Series};
use harness::{Goal, Section, Sections, raise_open_files};

use self::candidate::{Call, Candidate, Keys, ROUNDS, Table, Turn};
use self::host::{Programs, Server};

/// How many connections the load has at the peak.
pub(crate) const CONNECTIONS: usize = 50;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/server_cost.svg");

/// What others are compared with.
const PING: &str = "redis-server PING";
const OURS: &str = "tidegate CL.THROTTLE, 1 M keys";
const OURS_HOT: &str = "tidegate CL.THROTTLE, one hot key";
const SCRIPT: &str = "redis-server Lua GCRA, 1 M keys";
const SCRIPT_HOT: &str = "redis-server Lua GCRA, one hot key";
const CRAB: &str = "throttlecrab THROTTLE*, 1 M keys";
const CRAB_HOT: &str = "throttlecrab THROTTLE*, one hot key";
/// What refers to a line under the tables.
const FOOTNOTE: char = '*';
/// How many requests are in flight on each connection.
const PIPELINES: [usize; 3] = [1, 16, 64];

/// The programs, and whether a picture is drawn.
struct Context {
    programs: Programs,
    plot: bool,
}

const SECTIONS: [Section<Context>; 6] = [
    ("resp", "CL.THROTTLE at pipeline 1, 16 and 64, a million keys and a hot one", resp),
    ("admit", "TG.ADMIT with two rules beside TG.TAKE", |context| admit::run(&context.programs)),
    ("http", "POST /v1/take", http),
    ("latency", "latencies at half of the peak, open loop", latency),
    ("connections", "ten times the connections of the peak", connections),
    ("memory", "resident memory with 3,000,000 keys", |context| memory::run(&context.programs)),
];

/// Runs the bench.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    let sections = match Sections::read("server", arguments, &SECTIONS, &["--plot"]) {
        Ok(sections) => sections,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    let context = Context { programs: Programs::prepare(), plot: sections.has("--plot") };
    if let Err(problem) = raise_open_files() {
        eprintln!("server: {problem}");
    }
    println!("{}", legend());
    sections.run("server", &SECTIONS, &context)
}

/// Something that is asked: its name, the server, the call, the keys and the connections.
type Asked<'a> = (&'static str, &'a Option<Server>, Call, Keys, usize);

/// Connects to the servers that are there; their keys are known afterwards.
fn candidates<'a>(all: impl IntoIterator<Item = Asked<'a>>) -> Result<Vec<Candidate<'a>>, String> {
    let there = all.into_iter().filter_map(|(name, server, call, keys, connections)| {
        Some((name, server.as_ref()?, call, keys, connections))
    });
    let candidate = |(name, server, call, keys, connections)| {
        eprintln!("server: {name} meets its keys");
        Candidate::new(name, server, &call, keys, connections)?.meet()
    };
    there.map(candidate).collect()
}

/// `CL.THROTTLE` at three pipelines, beside Redis's `PING`, a script of Redis and throttlecrab.
///
/// Redis is there twice, because keys that expire would be swept while `PING` is measured.
fn resp(context: &Context) -> Result<Vec<Goal>, String> {
    let programs = &context.programs;
    let (ours, ping, script, crab) =
        (programs.tidegate(), programs.redis(), programs.redis(), programs.throttlecrab());
    let name = script.as_ref().map(Server::load_script).transpose()?;
    let called = Call::Script(name.unwrap_or_default());
    let mut candidates = candidates([
        (PING, &ping, Call::Ping, Keys::None, CONNECTIONS),
        (OURS, &ours, Call::ClThrottle, Keys::Million, CONNECTIONS),
        (OURS_HOT, &ours, Call::ClThrottle, Keys::Hot, CONNECTIONS),
        (SCRIPT, &script, called.clone(), Keys::Million, CONNECTIONS),
        (SCRIPT_HOT, &script, called, Keys::Hot, CONNECTIONS),
        (CRAB, &crab, Call::Throttle, Keys::Million, CONNECTIONS),
        (CRAB_HOT, &crab, Call::Throttle, Keys::Hot, CONNECTIONS),
    ])?;
    let mut tables = Vec::new();
    for depth in PIPELINES {
        eprintln!("server resp: pipeline {depth}");
        let table = Table::measure(&mut candidates, Turn::Closed(depth, Duration::from_millis(600)))?;
        table.print(&format!("RESP, pipeline {depth}, {CONNECTIONS} connections; base: {PING}"), PING);
        tables.push(table);
    }
    println!(
        "* throttlecrab-server does not set TCP_NODELAY: its latencies are those of Nagle's algorithm\n"
    );
    if context.plot {
        draw(&tables)?;
    }
    let [one, sixteen, sixty_four] =
        [0, 1, 2].map(|place: usize| tables[place].ratio(OURS, PING, |sample| sample.cpu));
    Ok(vec![
        Goal::at_most("server/pipeline-1", one, 1.1, 1.0),
        Goal::at_most("server/pipeline-16", sixteen, 1.1, 1.0),
        Goal::at_most("server/pipeline-64", sixty_four, 1.2, 1.0),
    ])
}

/// `POST /v1/take` over connections that stay open, beside throttlecrab's call.
fn http(context: &Context) -> Result<Vec<Goal>, String> {
    const OURS: &str = "tidegate POST /v1/take, 1 M keys";
    const OURS_HOT: &str = "tidegate POST /v1/take, one hot key";
    const CRAB: &str = "throttlecrab POST /throttle, 1 M keys";
    const CRAB_HOT: &str = "throttlecrab POST /throttle, one hot key";
    let (ours, crab) = (context.programs.tidegate(), context.programs.throttlecrab());
    let mut candidates = Vec::new();
    for (name, server, call, keys) in [
        (OURS, &ours, Call::Take, Keys::Million),
        (OURS_HOT, &ours, Call::Take, Keys::Hot),
        (CRAB, &crab, Call::HttpThrottle, Keys::Million),
        (CRAB_HOT, &crab, Call::HttpThrottle, Keys::Hot),
    ] {
        if let Some(server) = server {
            candidates.push(Candidate::new(name, server, &call, keys, CONNECTIONS)?);
        }
    }
    let table = Table::measure(&mut candidates, Turn::Closed(1, Duration::from_millis(1000)))?;
    table.print(&format!("HTTP, {CONNECTIONS} connections that stay open; base: {CRAB}"), CRAB);
    let ratio = table.ratio(OURS, CRAB, |sample| sample.cpu);
    Ok(vec![Goal::at_most("server/http-take", ratio, 0.85, 0.75)])
}

/// Latencies at half of the peak: requests come by the clock, not when the server is done with those before.
fn latency(context: &Context) -> Result<Vec<Goal>, String> {
    let (ours, ping) = (context.programs.tidegate(), context.programs.redis());
    let mut candidates = candidates([
        (OURS, &ours, Call::ClThrottle, Keys::Million, CONNECTIONS),
        (PING, &ping, Call::Ping, Keys::None, CONNECTIONS),
    ])?;
    // Without our server, that of Redis shows what its own latencies are.
    let Some(first) = candidates.first().map(|candidate| candidate.name) else { return Ok(Vec::new()) };
    let peaks = Table::measure(&mut candidates, Turn::Closed(1, Duration::from_millis(600)))?;
    peaks.print(&format!("closed loop, pipeline 1, {CONNECTIONS} connections: the peak; base: {PING}"), PING);
    let rate = peaks.middle(first, |sample| sample.rate) / 2.0;
    let table = Table::measure(&mut candidates, Turn::Open(rate, Duration::from_millis(2000)))?;
    table.print(&format!("open loop, {rate:.0} requests/s on {CONNECTIONS} connections; base: {PING}"), PING);
    let ratio = table.ratio(OURS, PING, |sample| sample.p99);
    Ok(vec![Goal::at_most("server/p99-at-half-of-peak", ratio, 1.5, 1.0)])
}

/// Ten times the connections: what is still answered when far more ask than at the peak.
fn connections(context: &Context) -> Result<Vec<Goal>, String> {
    const OURS: &str = "tidegate CL.THROTTLE, 50 connections";
    const OURS_TENFOLD: &str = "tidegate CL.THROTTLE, 500 connections";
    const PING_TENFOLD: &str = "redis-server PING, 500 connections";
    const TENFOLD: usize = 10 * CONNECTIONS;
    let (ours, ping) = (context.programs.tidegate(), context.programs.redis());
    let mut candidates = candidates([
        (PING, &ping, Call::Ping, Keys::None, CONNECTIONS),
        (PING_TENFOLD, &ping, Call::Ping, Keys::None, TENFOLD),
        (OURS, &ours, Call::ClThrottle, Keys::Million, CONNECTIONS),
        (OURS_TENFOLD, &ours, Call::ClThrottle, Keys::Million, TENFOLD),
    ])?;
    let table = Table::measure(&mut candidates, Turn::Closed(1, Duration::from_millis(1000)))?;
    table.print(&format!("pipeline 1, {CONNECTIONS} connections and ten times as many; base: {PING}"), PING);
    let kept = |tenfold, few| table.ratio(tenfold, few, |sample| sample.rate);
    let (ours, peer) = (kept(OURS_TENFOLD, OURS), kept(PING_TENFOLD, PING));
    println!(
        "\nreplies/s with {TENFOLD} connections ÷ with {CONNECTIONS}: tidegate {ours:.3}, redis-server {peer:.3}"
    );
    Ok(vec![Goal::at_least("server/ten-times-the-connections", ours, 0.9, 1.0)])
}

/// Writes the picture of what a request costs the server by the depth of the pipeline.
fn draw(tables: &[Table]) -> Result<(), String> {
    let cost = |name| tables.iter().map(|table| table.middle(name, |sample| sample.cpu)).collect();
    let costs = [OURS, OURS_HOT, PING, SCRIPT, CRAB].map(|name| (name, cost(name)));
    fs::write(PICTURE, picture(&costs))
        .map_err(|error| format!("docs/server_cost.svg is not drawn: {error}"))?;
    eprintln!("drawn: docs/server_cost.svg");
    Ok(())
}

/// A line per name, from its microseconds at each pipeline; one that was left out has none.
fn picture(costs: &[(&str, Vec<f64>)]) -> String {
    let chart = Chart::new("What a request costs the server")
        .subtitle("CPU time of the server, RESP, 50 connections; both axes are logarithmic")
        .x(Axis::number("requests in flight on a connection").log())
        .y(Axis::nanoseconds("CPU per request").log());
    let measured = costs.iter().filter(|(_, costs)| costs.iter().any(|cost| cost.is_finite()));
    let drawn = measured.fold(chart, |chart, (name, costs)| {
        let points = PIPELINES.iter().zip(costs).map(|(depth, cost)| (*depth as f64, cost * 1e3));
        let line = Series::line(name.replace(FOOTNOTE, ""), points);
        chart.series(if *name == PING { line.dashed() } else { line })
    });
    drawn.render()
}

/// The meaning of the columns of the tables.
fn legend() -> String {
    format!(
        "medians of {ROUNDS} interleaved rounds; the server on one core, the load on another, all others stopped\n\
         CPU s/M: seconds of processors, user and system, of all threads of the server, per million replies\n\
         \u{f7} base: CPU time divided by that of the base in the same round, median of the rounds\n\
         p50, p99: from the sending of a batch, in a closed loop; from when a request was due, in an open one\n\
         busy: CPU time of the server divided by time; far below 100% the load was waited for, or another process\n\
         allowed: of 1 M keys nearly all, of one hot key hardly any, else the run fails\n\
         load s/M: CPU time of the load per million replies\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_was_measured_is_a_line() {
        let svg =
            picture(&[(PING, vec![6.0, 0.5, 0.3]), (OURS, vec![f64::NAN; 3]), (CRAB, vec![9.0, 4.0, 4.0])]);
        let is_there = [PING, "throttlecrab THROTTLE,", "tidegate CL"].map(|name| svg.contains(name));
        assert_eq!(is_there, [true, true, false], "{svg}");
    }
}
