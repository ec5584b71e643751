//! Our server beside redis-server and throttlecrab-server, in one run.
//!
//! Every server is a process of its own on one core, and the load, one thread of this program, is on another.
//! They take turns: while one is measured, the others are stopped.
//! `server SECTION...` measures only these, `--plot` draws what a request costs by the depth of the pipeline.

mod admit;
mod call;
pub(crate) mod candidate;
mod connections;
pub(crate) mod host;
mod http;
mod latency;
pub(crate) mod load;
mod memory;
mod plot;
mod resp;
pub(crate) mod table;

use std::process::ExitCode;

use rustix::process::{Resource, getrlimit, setrlimit};

use self::host::Programs;
use self::table::ROUNDS;
use crate::goal::Goal;
use crate::options::Options;
use crate::stopwatch::instant;

/// How many connections the load has at the peak.
pub(crate) const CONNECTIONS: usize = 50;
/// What others are compared with.
const PING: &str = "redis-server PING";

/// A part of the bench: its name, what it does, and how.
type Section = (&'static str, &'static str, fn(&Options, &Programs) -> Result<Vec<Goal>, String>);

const SECTIONS: [Section; 6] = [
    ("resp", "CL.THROTTLE at pipeline 1, 16 and 64, a million keys and a hot one", resp::run),
    ("admit", "TG.ADMIT with two rules beside TG.TAKE", admit::run),
    ("http", "POST /v1/take", http::run),
    ("latency", "latencies at half of the peak, open loop", latency::run),
    ("connections", "ten times the connections of the peak", connections::run),
    ("memory", "resident memory with 3,000,000 keys", memory::run),
];

/// Runs the bench, or what guards a server.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    if let ["guard", server] = arguments {
        return host::run_guard(server);
    }
    let names = SECTIONS.map(|(name, ..)| name);
    match Options::read(arguments, &names) {
        Some(options) => compare_all(&options),
        None => {
            eprintln!("usage: server [--plot] [{}]...", names.join(" | "));
            ExitCode::from(2)
        }
    }
}

fn compare_all(options: &Options) -> ExitCode {
    let programs = Programs::prepare();
    raise_open_files();
    println!("{}", legend());
    let start = instant();
    let (mut goals, mut failed) = (Vec::new(), false);
    for (name, what, section) in SECTIONS.into_iter().filter(|(name, ..)| options.asks_for(name)) {
        eprintln!("server {name}: {what} ({} s)", start.elapsed().as_secs());
        match section(options, &programs) {
            Ok(reached) => goals.extend(reached),
            Err(problem) => {
                eprintln!("server {name} failed: {problem}");
                failed = true;
            }
        }
    }
    eprintln!("server: done ({} s)", start.elapsed().as_secs());
    let met: Vec<_> = goals.iter().map(Goal::print).collect();
    ExitCode::from(u8::from(failed || met.contains(&false)))
}

/// As many open files as this process may have: a connection is one.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        eprintln!("server: the number of open files is not raised: {error}");
    }
}

/// What the columns of the tables say.
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
