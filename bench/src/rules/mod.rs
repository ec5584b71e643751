//! What rules cost: finding those that apply among few or many, and a whole answer of a gate.
//!
//! An index is measured by how little its cost grows with the number of rules: every set of rules is asked about the
//! same request, to which the same two of them apply, however many there are.

mod admit;
mod groups;
mod instructions;
mod matching;
mod peer;
mod sets;
mod table;

use std::process::ExitCode;

use harness::{Section, Sections};

use self::table::ROUNDS;

const SECTIONS: [Section<()>; 5] = [
    ("matching", "finding the two rules that apply among 10 to 10,000", |()| Ok(matching::run())),
    ("groups", "the same with limits in groups, and an admit under one of a hundred members", |()| {
        Ok(groups::run())
    }),
    ("admit", "a whole answer of a gate beside one take without rules", |()| Ok(admit::run())),
    ("counts", "instructions and allocations of an admit, by valgrind", |()| instructions::run()),
    ("peer", "a whole answer beside limitador's", |()| Ok(peer::run())),
];

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        ["ask", call, set, rules, times] => instructions::ask([call, set, rules, times]),
        ["--instructions"] => instructions::compare(),
        _ => match Sections::read("rules", arguments, &SECTIONS, &[]) {
            Ok(sections) => {
                println!(
                    "medians of {ROUNDS} interleaved rounds; ns are CPU time of one thread; a ratio is that of the same round\n"
                );
                sections.run("rules", &SECTIONS, &())
            }
            Err(usage) => {
                eprintln!("{usage} | rules --instructions");
                ExitCode::from(2)
            }
        },
    }
}
