//! What rules cost: finding those that apply among few or many, and a whole answer of a gate.
//!
//! An index is measured by how little its cost grows with the number of rules: every set of rules is asked about the
//! same request, to which the same two of them apply, however many there are.

mod admit;
mod instructions;
mod matching;
mod peer;
mod sets;
mod table;

use std::process::ExitCode;

use self::table::ROUNDS;
use crate::goal::Goal;
use crate::options::Options;
use crate::stopwatch::instant;

/// A part of the bench: its name, what it does, and how.
type Section = (&'static str, &'static str, fn() -> Vec<Goal>);

const SECTIONS: [Section; 4] = [
    ("matching", "finding the two rules that apply among 10 to 10,000", matching::run),
    ("admit", "a whole answer of a gate beside one take without rules", admit::run),
    ("counts", "instructions and allocations of an admit, by valgrind", instructions::run),
    ("peer", "a whole answer beside limitador's", peer::run),
];

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        ["ask", call, set, rules, times] => instructions::ask([call, set, rules, times]),
        ["--instructions"] => instructions::compare(),
        _ => {
            let names = SECTIONS.map(|(name, ..)| name);
            match Options::read(arguments, &names).filter(|options| !options.plot) {
                Some(options) => compare_all(&options),
                None => {
                    eprintln!("usage: rules [{}]... | rules --instructions", names.join(" | "));
                    ExitCode::from(2)
                }
            }
        }
    }
}

fn compare_all(options: &Options) -> ExitCode {
    println!(
        "medians of {ROUNDS} interleaved rounds; ns are CPU time of one thread; a ratio is that of the same round\n"
    );
    let start = instant();
    let mut goals = Vec::new();
    for (name, what, section) in SECTIONS.into_iter().filter(|(name, ..)| options.asks_for(name)) {
        eprintln!("rules {name}: {what} ({} s)", start.elapsed().as_secs());
        goals.extend(section());
    }
    eprintln!("rules: done ({} s)", start.elapsed().as_secs());
    let met: Vec<_> = goals.iter().map(Goal::print).collect();
    ExitCode::from(u8::from(met.contains(&false)))
}
