//! What a decision costs a Redis or Valkey server, beside a plain script on the same server.
//!
//! A server is on one core; the load, or our own store, is on another. All that is compared is asked of one and the same
//! process, in turns, over connections of their own.
//! `redis SECTION...` measures only these, `--valkey` asks a Valkey instead.

mod algorithms;
mod one;
mod question;
mod served;
mod several;
mod side;
mod size;
mod store;
mod table;

use std::process::ExitCode;

use testbed::Flavour;

use crate::goal::Goal;
use crate::options::Options;
use crate::server::host::{Server, start_redis};
use crate::stopwatch::instant;

/// A part of the bench: its name, what it does, and how.
type Section = (&'static str, &'static str, fn(Flavour) -> Result<Vec<Goal>, String>);

const SECTIONS: [Section; 6] = [
    ("one", "a token bucket beside a plain script", one::run),
    ("algorithms", "the other algorithms", algorithms::run),
    ("several", "one, three and five limits in one request", several::run),
    ("store", "our store, with refusals that it remembers and without", store::run),
    ("served", "our server with its limits in the Redis", served::run),
    ("size", "bytes that a key takes", size::run),
];

/// Runs the bench.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    let names = SECTIONS.map(|(name, ..)| name);
    let flavour = if arguments.contains(&"--valkey") { Flavour::Valkey } else { Flavour::Redis7 };
    let rest: Vec<_> = arguments.iter().copied().filter(|word| *word != "--valkey").collect();
    match Options::read(&rest, &names).filter(|options| !options.plot) {
        Some(options) => measure_all(&options, flavour),
        None => {
            eprintln!("usage: redis [--valkey] [{}]...", names.join(" | "));
            ExitCode::from(2)
        }
    }
}

fn measure_all(options: &Options, flavour: Flavour) -> ExitCode {
    println!("{}", legend(flavour));
    let start = instant();
    let (mut goals, mut failed) = (Vec::new(), false);
    for (name, what, section) in SECTIONS.into_iter().filter(|(name, ..)| options.asks_for(name)) {
        eprintln!("redis {name}: {what} ({} s)", start.elapsed().as_secs());
        match section(flavour) {
            Ok(reached) => goals.extend(reached),
            Err(problem) => {
                eprintln!("redis {name} failed: {problem}");
                failed = true;
            }
        }
    }
    eprintln!("redis: done ({} s)", start.elapsed().as_secs());
    let met: Vec<_> = goals.iter().map(Goal::print).collect();
    ExitCode::from(u8::from(failed || met.contains(&false)))
}

/// A server of this kind, freshly started on its core.
fn start(flavour: Flavour) -> Result<Server, String> {
    start_redis(&flavour.program().map_err(|missing| missing.to_string())?)
}

/// What the columns of the tables say.
fn legend(flavour: Flavour) -> String {
    format!(
        "{flavour}, one process for all that is compared, on one core; the load on another\n\
         medians of {} interleaved rounds of {} ms\n\
         CPU \u{b5}s: microseconds of processors, user and system, of all threads of the server, per decision\n\
         \u{f7} base: divided by that of the base in the same round, median of the rounds; spread: smallest and largest\n\
         busy: CPU time of the server divided by time; far below 100% the load was waited for, or another process\n\
         load \u{b5}s: CPU time of the load per decision\n",
        table::ROUNDS,
        table::TURN.as_millis(),
    )
}
