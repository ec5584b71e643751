//! `Zone`, the default store, beside governor, throttlecrab and our own `Map`, in one run.
//!
//! A key is at hand when it is asked about, as in a server that has just read it: few keys lie ready, many are
//! written into a buffer, and what only that costs is a row of its own; nothing is subtracted.
//! `zone SECTION...` measures only these, `--plot` draws what a decision costs by the number of keys, and
//! `--instructions` counts with valgrind instead.

mod candidate;
mod curve;
mod folder;
mod hot;
mod instructions;
mod key;
mod million;
mod plot;
mod scaling;
mod side;
mod sides;
mod states;
mod table;
mod turnover;
mod visits;
mod worst;
mod zipf;

use std::process::ExitCode;
use std::time::Instant;

use self::table::{FEWEST_MET, ROUNDS};
use crate::goal::Goal;
use crate::options::Options;
use crate::process::most_resident;

/// How many threads decide at the same time, in one table after the other.
const THREADS: [usize; 2] = [1, 2];

/// A part of the bench: its name, what it does, and how.
type Section = (&'static str, &'static str, fn(&Options) -> Vec<Goal>);

const SECTIONS: [Section; 6] = [
    ("hot", "one hot key, and two in turn", hot::run),
    (
        "million",
        "1,000,000 keys: one by one, in batches, in a file; what a second thread is worth",
        million::run,
    ),
    (
        "states",
        "states of more than one word, in memory and in a file; a start with a full file",
        states::run,
    ),
    ("curve", "1,000 to 10,000,000 keys", curve::run),
    ("memory", "resident memory while keys come and go, in processes of their own", turnover::run),
    ("worst", "the worst call while keys come and go", worst::run),
];

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        ["resident", name] => turnover::print_one(name),
        ["decide", name, decisions] => instructions::decide(name, decisions),
        ["--instructions"] => instructions::compare(),
        _ => {
            let names = SECTIONS.map(|(name, ..)| name);
            match Options::read(arguments, &names) {
                Some(options) => compare_all(&options),
                None => {
                    eprintln!("usage: zone [--plot] [{}]... | zone --instructions", names.join(" | "));
                    ExitCode::from(2)
                }
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
fn compare_all(options: &Options) -> ExitCode {
    println!("{}", legend());
    let start = Instant::now();
    let mut goals = Vec::new();
    for (name, what, section) in SECTIONS.into_iter().filter(|(name, ..)| options.asks_for(name)) {
        eprintln!("zone {name}: {what} ({} s)", start.elapsed().as_secs());
        goals.extend(section(options));
    }
    let mebibytes = most_resident().map_or(0, |bytes| bytes >> 20);
    eprintln!("zone: done ({} s, at most {mebibytes} MiB resident)", start.elapsed().as_secs());
    let met: Vec<_> = goals.iter().map(Goal::print).collect();
    ExitCode::from(u8::from(met.contains(&false)))
}

/// What the columns of the tables say.
fn legend() -> String {
    format!(
        "medians of {ROUNDS} interleaved rounds; a clock is read for each decision, or batch of them\n\
         ns CPU: time on processors, of all threads, per decision\n\
         ns wall: less waiting for a processor; with 2 threads that of a round divided by the decisions of both\n\
         met: rounds in which all threads had a processor most of the time. Only these count, if they are \
         {FEWEST_MET} or more;\n  fewer are of threads that sleep at a lock, or of a machine that is too busy to tell\n\
         \u{f7} governor: CPU time divided by that of governor's default in the same round, median of the rounds\n"
    )
}
