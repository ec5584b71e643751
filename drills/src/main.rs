//! Long-running proof on the real thing, run as `cargo xtask drill NAME`.
//!
//! A drill floods, kills or misleads what it is about, counts everything, and judges the counts by arithmetic of its
//! own. It says what it did, what it counted, and at the end whether all of it held.
//! Exit codes: 0 it held, 1 it did not, 2 the command line was not understood.

mod account;
mod allocations;
mod child;
mod options;
mod progress;
mod report;
mod resident;
mod scratch;
mod server_descriptors;
mod stopwatch;
mod waiting;
mod zone_clock;
mod zone_flood;
mod zone_kill;
mod zone_newcomers;
mod zone_quiet;

use std::env;
use std::process::ExitCode;

use options::Options;
use report::Report;

/// What a drill, or a part of one, ends with if it cannot go on.
type Outcome = Result<(), String>;

/// One drill.
struct Drill {
    name: &'static str,
    summary: &'static str,
    run: fn(&Options, &mut Report) -> Outcome,
}

const DRILLS: [Drill; 6] = [
    Drill {
        name: "zone-flood",
        summary: "100 million distinct keys on a zone of 64 MiB: nobody above its bound, memory and time stay",
        run: zone_flood::run,
    },
    Drill {
        name: "zone-newcomers",
        summary: "threads and processes meet over 100,000 new keys each: exactly the burst passes",
        run: zone_newcomers::run,
    },
    Drill {
        name: "zone-kill",
        summary: "a process is killed a hundred times at its work on a zone in a file: no key above its bound",
        run: zone_kill::run,
    },
    Drill {
        name: "zone-quiet",
        summary: "two million decisions without a system call or an allocation",
        run: zone_quiet::run,
    },
    Drill {
        name: "zone-clock",
        summary: "clocks that jump, stand still and disagree: no extra admission, no lock-out, no panic",
        run: zone_clock::run,
    },
    Drill {
        name: "server-descriptors",
        summary: "a server with 256 descriptors and 2,000 clients: it never ends, and accepts again",
        run: server_descriptors::run,
    },
];

/// A part of a drill that runs in a process of its own, which the drill starts.
type Part = fn(&[String]) -> Outcome;

const PARTS: [(&str, Part); 3] = [
    (zone_newcomers::PART, zone_newcomers::part),
    (zone_kill::PART, zone_kill::part),
    (zone_quiet::PART, zone_quiet::part),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        DRILLS.iter().for_each(|drill| println!("{:<18} {}", drill.name, drill.summary));
        return ExitCode::SUCCESS;
    };
    if let Some((_, part)) = PARTS.iter().find(|(known, _)| known == name) {
        return match part(rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("{name}: {problem}");
                ExitCode::FAILURE
            }
        };
    }
    let Some(drill) = DRILLS.iter().find(|drill| drill.name == name) else {
        eprintln!("unknown drill \"{name}\"; without a name they are listed");
        return ExitCode::from(2);
    };
    match Options::parse(rest) {
        Ok(options) => hold(drill, &options),
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn hold(drill: &Drill, options: &Options) -> ExitCode {
    let mut report = Report::begin(drill.name, options);
    let outcome = (drill.run)(options, &mut report);
    report.end(outcome)
}
