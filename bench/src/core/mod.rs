//! Whole decisions, as a program takes them, beside the peers: limits and keys that are known only at run
//! time, and a clock that is read for every decision.
//!
//! One subject, many subjects, and how steady a map is that grows to a million keys and loses them again.
//! `core --instructions` prints what valgrind counts, which is the same on a busy machine. In processes of their own,
//! `core decide NAME OUTCOME` takes decisions of one candidate for valgrind, `core steady` measures how steady a map is, and
//! `core resident NAME` prints what a million keys of one candidate take.

mod instructions;
mod keyed;
mod resident;
mod single;
mod steady;

use std::process::ExitCode;

use harness::Goal;

use crate::rounds::{Candidate, ROUNDS, measure};

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        [] => compare_all(),
        ["--instructions"] => instructions::compare(),
        ["decide", name, outcome] => instructions::decide(name, outcome),
        ["steady"] => steady::run(),
        ["resident", name] => resident::run(name),
        _ => {
            eprintln!("usage: core [--instructions | decide NAME OUTCOME | steady | resident NAME]");
            ExitCode::from(2)
        }
    }
}

fn compare_all() -> ExitCode {
    println!(
        "medians of {ROUNDS} interleaved rounds, less waiting for a processor; a clock is read for every decision\n"
    );
    let allowed = single::compare("one subject, mostly allowed", single::ALLOWED);
    let denied = single::compare("one subject, mostly denied", single::DENIED);
    keyed::compare();
    single::calls();
    let steady = match steady::measure() {
        Ok(steady) => steady,
        Err(problem) => {
            eprintln!("core steady: {problem}");
            return ExitCode::FAILURE;
        }
    };
    resident::compare();
    let met = Goal::print_all(&[
        Goal::at_most("single/allowed", allowed, 1.2, 1.0),
        Goal::at_most("single/denied", denied, 1.2, 1.0),
        Goal::at_most("map/worst-call-ms", steady.smallest_worst_call.as_secs_f64() * 1e3, 1.0, 0.3),
        Goal::at_most("map/bytes-after-expiry", steady.share_of_bytes_after, 0.05, 0.01),
    ]);
    ExitCode::from(u8::from(!met))
}

/// Measures candidates and prints them with their ratio to the first; their times, in order.
fn table(title: &str, not_measured: &str, candidates: &mut [Candidate<'_>]) -> Vec<f64> {
    let shares: Vec<_> = candidates.iter_mut().map(Candidate::share_allowed).collect();
    let times = measure(candidates);
    println!("{title}\nnot measured: {not_measured}");
    println!("{:<40} {:>9} {:>8} {:>9}", "", "ns", "\u{f7} first", "allowed");
    for ((candidate, time), share) in candidates.iter().zip(&times).zip(shares) {
        let (ratio, percent) = (time / times[0], share * 100.0);
        println!("{:<40} {time:>9.1} {ratio:>8.2} {percent:>8.1}%", candidate.name);
    }
    println!();
    times
}
