//! Long-running proof on the real thing, run as `cargo xtask drill NAME`.
//!
//! A drill floods, kills or misleads what it is about, counts everything, and judges the counts by arithmetic of its
//! own. It says what it did, what it counted, and at the end whether all of it held.
//! Exit codes: 0 it held, 1 it did not, 2 the command line was not understood.

mod account;
mod adaptive;
mod allocations;
mod flash_sale;
mod fleet;
mod redis_cluster;
mod redis_crowd;
mod redis_errors;
mod redis_replies;
mod redis_sentinel;
mod redis_stop;
mod server_descriptors;
mod someone;
mod states_kill;
mod stretches;
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

use conformance::random::Random;
use harness::{Options, Report};

/// What a drill, or a part of one, ends with if it cannot go on.
type Outcome = Result<(), String>;

/// A drill: its name, the option that says how much is to be done if it has one of its own, and what it does.
type Drill = (&'static str, Option<&'static str>, fn(&Options, &mut Report) -> Outcome);

/// `cargo xtask drill` says what each is for.
const DRILLS: [Drill; 15] = [
    ("zone-flood", None, zone_flood::run),
    ("zone-newcomers", None, zone_newcomers::run),
    ("zone-kill", None, zone_kill::run),
    ("states-kill", None, states_kill::run),
    ("zone-quiet", None, zone_quiet::run),
    ("zone-clock", None, zone_clock::run),
    ("server-descriptors", None, server_descriptors::run),
    ("redis-stop", Some("--seconds"), redis_stop::run),
    ("redis-sentinel", Some("--rounds"), redis_sentinel::run),
    ("redis-cluster", Some("--rounds"), redis_cluster::run),
    ("redis-replies", Some("--times"), redis_replies::run),
    ("redis-errors", Some("--times"), redis_errors::run),
    ("redis-crowd", Some("--rounds"), redis_crowd::run),
    ("adaptive", Some("--plot"), adaptive::run),
    ("flash-sale", Some("--rounds"), flash_sale::run),
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
        DRILLS.iter().for_each(|(name, ..)| println!("{name}"));
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
    let Some((name, unit, run)) = DRILLS.iter().find(|(known, ..)| known == name) else {
        eprintln!("unknown drill \"{name}\"; without a name they are listed");
        return ExitCode::from(2);
    };
    let parts = if *name == "flash-sale" { flash_sale::PARTS } else { &[] };
    match Options::new(Random::seed_from_environment()).parse(rest, *unit, parts) {
        Ok(options) => {
            let mut report = Report::begin(name, &options);
            let outcome = attempt(|| run(&options, &mut report));
            report.end(outcome)
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

/// Does something that may panic; what that was about has been said by then.
fn attempt<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|_| Err("it panicked".to_owned()))
}

/// Returns the argument at this place of a part, read as a number.
fn number<T: std::str::FromStr>(arguments: &[String], place: usize) -> Result<T, String> {
    let argument = arguments.get(place).and_then(|argument| argument.parse().ok());
    argument.ok_or_else(|| format!("argument {place} is to be a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_or_missed() {
        let arguments = ["zone.tg".to_owned(), "17".to_owned()];
        assert_eq!(number(&arguments, 1), Ok(17_u64));
        assert!(number::<u64>(&arguments, 0).is_err() && number::<u64>(&arguments, 2).is_err());
    }
}
