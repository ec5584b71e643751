//! Long-running proof on the real thing, run as `cargo xtask drill NAME`.
//!
//! A drill floods, kills or misleads what it is about, counts everything, and judges the counts by arithmetic of its
//! own. It says what it did, what it counted, and at the end whether all of it held.
//! Exit codes: 0 it held, 1 it did not, 2 the command line was not understood.

mod account;
mod adaptive;
mod allocations;
mod child;
mod flash_sale;
mod fleet;
mod options;
mod progress;
mod redis_cluster;
mod redis_crowd;
mod redis_errors;
mod redis_replies;
mod redis_sentinel;
mod redis_stop;
mod report;
mod resident;
mod scratch;
mod server;
mod server_descriptors;
mod someone;
mod states_kill;
mod stopping;
mod stopwatch;
mod waiting;
mod windows;
mod zone_clock;
mod zone_flood;
mod zone_kill;
mod zone_newcomers;
mod zone_quiet;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use options::Options;
use report::Report;

/// What a drill, or a part of one, ends with if it cannot go on.
type Outcome = Result<(), String>;

/// One drill.
struct Drill {
    name: &'static str,
    summary: &'static str,
    /// The option that says how much is to be done, if there is one of its own.
    unit: Option<&'static str>,
    run: fn(&Options, &mut Report) -> Outcome,
}

const DRILLS: [Drill; 15] = [
    Drill {
        name: "zone-flood",
        summary: "100 million distinct keys on a zone of 64 MiB: nobody above its bound, memory and time stay",
        unit: None,
        run: zone_flood::run,
    },
    Drill {
        name: "zone-newcomers",
        summary: "threads and processes meet over 100,000 new keys each: exactly the burst passes",
        unit: None,
        run: zone_newcomers::run,
    },
    Drill {
        name: "zone-kill",
        summary: "a process is killed a hundred times at its work on a zone in a file: no key above its bound",
        unit: None,
        run: zone_kill::run,
    },
    Drill {
        name: "states-kill",
        summary: "a server is killed a hundred times under load on every algorithm, two named zones and permits",
        unit: None,
        run: states_kill::run,
    },
    Drill {
        name: "zone-quiet",
        summary: "two million decisions without a system call or an allocation",
        unit: None,
        run: zone_quiet::run,
    },
    Drill {
        name: "zone-clock",
        summary: "clocks that jump, stand still and disagree: no extra admission, no lock-out, no panic",
        unit: None,
        run: zone_clock::run,
    },
    Drill {
        name: "server-descriptors",
        summary: "a server with 256 descriptors and 2,000 clients: it never ends, and accepts again",
        unit: None,
        run: server_descriptors::run,
    },
    Drill {
        name: "redis-stop",
        summary: "a Redis that is stopped, killed or not there yet: answers in time, by each rule's policy",
        unit: Some("--seconds"),
        run: redis_stop::run,
    },
    Drill {
        name: "redis-sentinel",
        summary: "primaries that die or stop under Sentinels: decisions come again, within what a failover may forget",
        unit: Some("--rounds"),
        run: redis_sentinel::run,
    },
    Drill {
        name: "redis-cluster",
        summary: "primaries that die in a cluster and slots that move: the same, and all or none across slots",
        unit: Some("--rounds"),
        run: redis_cluster::run,
    },
    Drill {
        name: "redis-replies",
        summary: "10,000 replies that are lost after the work was done: charged at most once",
        unit: Some("--times"),
        run: redis_replies::run,
    },
    Drill {
        name: "redis-errors",
        summary: "everything that a Redis says instead of doing it, 1,000 times each: told or handled, and over",
        unit: Some("--times"),
        run: redis_errors::run,
    },
    Drill {
        name: "redis-crowd",
        summary: "64 clients of four servers ask one Redis at the same moment: exactly the burst passes",
        unit: Some("--rounds"),
        run: redis_crowd::run,
    },
    Drill {
        name: "adaptive",
        summary: "places that adapt, before services whose capacity falls to a fifth: near the best fixed limit",
        unit: Some("--plot"),
        run: adaptive::run,
    },
    Drill {
        name: "flash-sale",
        summary: "a shop whose crowd, database, Redis and network do their worst: nothing sold twice, nothing lost",
        unit: Some("--rounds"),
        run: flash_sale::run,
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
    let parts = if drill.name == "flash-sale" { flash_sale::PARTS } else { &[] };
    match Options::parse(rest, drill.unit, parts) {
        Ok(options) => hold(drill, &options),
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn hold(drill: &Drill, options: &Options) -> ExitCode {
    let mut report = Report::begin(drill.name, options);
    let outcome = attempt(|| (drill.run)(options, &mut report));
    report.end(outcome)
}

/// Does something that may panic; what that was about has been said by then.
fn attempt<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|_| Err("it panicked".to_owned()))
}
