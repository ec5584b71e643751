//! Runs one benchmark of the `bench` crate, or one drill of the `drills` crate, in release mode and passes its exit code on.

use crate::failure::Failure;
use crate::run::{describe, not_started, succeed};
use crate::suggest::closest;
use crate::workspace::cargo;

/// A crate whose program knows several things by name.
struct Programs {
    /// One of these things.
    what: &'static str,
    package: &'static str,
    /// Name and purpose of each.
    known: &'static [(&'static str, &'static str)],
}

const BENCHES: Programs = Programs {
    what: "bench",
    package: "bench",
    known: &[
        ("decide", "CPU time of one decision, beside the peers"),
        (
            "core",
            "DirectLimiter and Limiter on Map beside governor, ratelimit, leaky-bucket and throttlecrab",
        ),
        (
            "redis",
            "CPU of a redis-server per decision beside a plain script, several limits, denials, bytes per key",
        ),
        ("rules", "finding the rules that apply among 10 to 10,000, and asking a Gate, beside limitador"),
        ("server", "CL.THROTTLE and HTTP beside redis-server and throttlecrab-server: CPU, latency, memory"),
        ("tower", "what a layer costs a request: axum bare, with tower_governor, with ours"),
        ("zone", "Limiter on Zone, hot keys to 10 M keys, beside governor, throttlecrab and Map"),
    ],
};

const DRILLS: Programs = Programs {
    what: "drill",
    package: "drills",
    known: &[
        ("zone-flood", "100 million distinct keys on a zone of 64 MiB"),
        ("zone-newcomers", "threads and processes that meet over new keys"),
        ("zone-kill", "a process killed a hundred times at its work on a zone in a file"),
        (
            "states-kill",
            "a server killed a hundred times under every algorithm, in three zones, with permits",
        ),
        ("zone-quiet", "no system call and no allocation in two million decisions"),
        ("zone-clock", "clocks that jump, stand still and disagree"),
        ("server-descriptors", "a server with few descriptors and many clients"),
        ("redis-stop", "a Redis that is stopped, killed or not there yet, under load"),
        ("redis-sentinel", "primaries that die or stop under Sentinels, fifty times"),
        ("redis-cluster", "primaries that die in a cluster, and slots that move"),
        ("redis-replies", "ten thousand replies that are lost after the work was done"),
        ("redis-errors", "a thousand times everything that a Redis says instead of doing it"),
        ("redis-crowd", "clients of four servers that ask one Redis at the same moment"),
        ("adaptive", "adaptive limits before services whose capacity falls to a fifth and comes back"),
        ("flash-sale", "a shop that is killed, misled and asked twice in the middle of its sales"),
    ],
};

/// Drills that need another program beside the one that runs them, and its crate.
const WITH: [(&str, &str); 4] = [
    ("states-kill", "tidegate-server"),
    ("server-descriptors", "tidegate-server"),
    ("redis-crowd", "tidegate-server"),
    ("flash-sale", "drills"),
];

pub(crate) fn bench(arguments: &[String]) -> Result<(), Failure> {
    BENCHES.run(arguments)
}

pub(crate) fn drill(arguments: &[String]) -> Result<(), Failure> {
    DRILLS.run(arguments)
}

impl Programs {
    fn run(&self, arguments: &[String]) -> Result<(), Failure> {
        let Some((name, rest)) = arguments.split_first() else {
            self.known.iter().for_each(|(name, purpose)| println!("{name:<18} {purpose}"));
            return Ok(());
        };
        if !self.known.iter().any(|(known, _)| known == name) {
            return Err(self.unknown(name));
        }
        for (_, package) in WITH.iter().filter(|(drill, _)| drill == name) {
            succeed(&mut cargo(&["build", "--release", "-p", package, "--locked"])?)?;
        }
        let mut command = cargo(&["run", "--release", "-p", self.package, "--locked", "--", name])?;
        command.args(rest);
        let status = command.status().map_err(|error| not_started(&command, &error))?;
        if status.success() {
            return Ok(());
        }
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        Err(Failure::with_code(format!("{} ended with {status}", describe(&command)), code))
    }

    fn unknown(&self, name: &str) -> Failure {
        let what = self.what;
        let closest = closest(name, self.known.iter().map(|(known, _)| *known)).unwrap_or("none");
        Failure::usage(format!(
            "unknown {what} \"{name}\"; did you mean \"{closest}\"? `cargo xtask {what}` lists them"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::root;

    #[test]
    fn a_misspelt_name_is_refused_before_anything_is_built() {
        for (run, misspelt, meant) in [
            (bench as fn(&[String]) -> _, "decied", "\"decide\""),
            (bench, "cor", "\"core\""),
            (bench, "sever", "\"server\""),
            (bench, "rule", "\"rules\""),
            (drill, "zone-food", "\"zone-flood\""),
        ] {
            let failure = run(&[misspelt.to_owned()]).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(failure.to_string().contains(meant), "{failure}");
        }
    }

    #[test]
    fn the_program_knows_the_same_drills() {
        let program = fs::read_to_string(root().join("drills/src/main.rs")).unwrap();
        let names = program
            .lines()
            .filter_map(|line| line.trim().strip_prefix("(\"").filter(|rest| rest.contains("::run")));
        let names: Vec<_> = names.filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(names, DRILLS.known.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
