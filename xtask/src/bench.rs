//! Runs one benchmark of the `bench` crate in release mode and passes its exit code on.

use crate::failure::Failure;
use crate::run::{describe, not_started};
use crate::suggest::closest;
use crate::workspace::cargo;

/// Name and purpose of each benchmark that the `bench` crate knows.
const BENCHES: [(&str, &str); 7] = [
    ("decide", "CPU time of one decision, beside the peers"),
    ("core", "Single and Limiter on Map beside governor, ratelimit, leaky-bucket and throttlecrab"),
    (
        "redis",
        "CPU of a redis-server per decision beside a plain script, several limits, refusals, bytes per key",
    ),
    ("rules", "finding the rules that apply among 10 to 10,000, and asking a Gate, beside limitador"),
    ("server", "CL.THROTTLE and HTTP beside redis-server and throttlecrab-server: CPU, latency, memory"),
    ("tower", "what a layer costs a request: axum bare, with tower_governor, with ours"),
    ("zone", "Limiter on Zone, hot keys to 10 M keys, beside governor, throttlecrab and Map"),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        for (name, purpose) in BENCHES {
            println!("{name:<10} {purpose}");
        }
        return Ok(());
    };
    if !BENCHES.iter().any(|(known, _)| known == name) {
        return Err(unknown(name));
    }
    let mut command = cargo(&["run", "--release", "-p", "bench", "--locked", "--", name])?;
    command.args(rest);
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure::with_code(format!("{} ended with {status}", describe(&command)), code))
}

fn unknown(name: &str) -> Failure {
    let closest = closest(name, BENCHES.iter().map(|(known, _)| *known)).unwrap_or("none");
    Failure::usage(format!(
        "unknown bench \"{name}\"; did you mean \"{closest}\"? `cargo xtask bench` lists them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_bench_is_refused_before_anything_is_built() {
        for (misspelt, meant) in
            [("decied", "\"decide\""), ("cor", "\"core\""), ("sever", "\"server\""), ("rule", "\"rules\"")]
        {
            let failure = run(&[misspelt.to_owned()]).unwrap_err();

            assert_eq!(failure.code(), 2);
            assert!(failure.to_string().contains(meant), "{failure}");
        }
    }
}
