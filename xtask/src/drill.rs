//! Runs one drill of the `drills` crate in release mode and passes its exit code on.

use crate::failure::Failure;
use crate::run::{describe, not_started, succeed};
use crate::suggest::closest;
use crate::workspace::cargo;

/// Name and purpose of each drill that the `drills` crate knows.
const DRILLS: [(&str, &str); 15] = [
    ("zone-flood", "100 million distinct keys on a zone of 64 MiB"),
    ("zone-newcomers", "threads and processes that meet over new keys"),
    ("zone-kill", "a process killed a hundred times at its work on a zone in a file"),
    ("states-kill", "a server killed a hundred times under every algorithm, in three zones, with permits"),
    ("zone-quiet", "no system call and no allocation in two million decisions"),
    ("zone-clock", "clocks that jump, stand still and disagree"),
    ("server-descriptors", "a server with few descriptors and many clients"),
    ("redis-stop", "a Redis that is stopped, killed or not there yet, under load"),
    ("redis-sentinel", "primaries that die or stop under Sentinels, fifty times"),
    ("redis-cluster", "primaries that die in a cluster, and slots that move"),
    ("redis-replies", "ten thousand replies that are lost after the work was done"),
    ("redis-errors", "a thousand times everything that a Redis says instead of doing it"),
    ("redis-crowd", "clients of four servers that ask one Redis at the same moment"),
    ("adaptive", "places that adapt, before services whose capacity falls to a fifth and comes back"),
    ("flash-sale", "a shop that is killed, misled and asked twice in the middle of its sales"),
];

/// Drills that need another program beside theirs, and whose.
const WITH: [(&str, &str); 4] = [
    ("states-kill", "tidegate-server"),
    ("server-descriptors", "tidegate-server"),
    ("redis-crowd", "tidegate-server"),
    ("flash-sale", "flash-sale"),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        for (name, purpose) in DRILLS {
            println!("{name:<18} {purpose}");
        }
        return Ok(());
    };
    if !DRILLS.iter().any(|(known, _)| known == name) {
        return Err(unknown(name));
    }
    for (_, package) in WITH.iter().filter(|(drill, _)| drill == name) {
        succeed(&mut cargo(&["build", "--release", "-p", package, "--locked"])?)?;
    }
    let mut command = cargo(&["run", "--release", "-p", "drills", "--locked", "--", name])?;
    command.args(rest);
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure::with_code(format!("{} ended with {status}", describe(&command)), code))
}

fn unknown(name: &str) -> Failure {
    let closest = closest(name, DRILLS.iter().map(|(known, _)| *known)).unwrap_or("none");
    Failure::usage(format!(
        "unknown drill \"{name}\"; did you mean \"{closest}\"? `cargo xtask drill` lists them"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn a_misspelt_drill_is_refused_before_anything_is_built() {
        let failure = run(&["zone-food".to_owned()]).unwrap_err();

        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("\"zone-flood\""), "{failure}");
    }

    #[test]
    fn the_program_knows_the_same_drills() {
        let program = fs::read_to_string(root().join("drills/src/main.rs")).unwrap();
        let names = program.lines().filter_map(|line| line.trim().strip_prefix("name: \""));
        let names: Vec<_> = names.filter_map(|rest| rest.split('"').next()).collect();

        assert_eq!(names, DRILLS.map(|(name, _)| name));
    }
}
