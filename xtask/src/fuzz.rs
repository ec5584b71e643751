//! Feeds bytes that nobody thought of to what reads bytes: the targets in `fuzz/`, with cargo-fuzz.
//!
//! The fuzzer needs nightly and a compiler for C++, which nobody needs for anything else here. What it has found
//! to be interesting stays in the target folder, so that the next run begins with it; what made a target fail is
//! in `fuzz/artifacts`, and cargo-fuzz says how to run it again.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::run::{describe, succeed};
use crate::workspace::{has_cargo_tool, has_nightly_tool, nightly_cargo, target_folder};

/// What is fuzzed, one after the other.
const TARGETS: [&str; 1] = ["zone_header"];

/// For how long, each.
const SECONDS: u64 = 60;

/// The longest input: some more than the page that a zone's header has.
const MAX_BYTES: &str = "-max_len=5000";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let seconds = parse(arguments)?;
    require_tools(has_cargo_tool("fuzz")?, || has_nightly_tool("fuzz"))?;
    let folder = target_folder()?.join("fuzz");
    for target in TARGETS {
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus).map_err(Failure::at(&corpus))?;
        let mut command = command(target, seconds, &folder)?;
        println!("{}", describe(&command));
        succeed(&mut command)?;
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<u64, Failure> {
    match arguments {
        [] => Ok(SECONDS),
        [seconds] => seconds.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
            Failure::usage(format!("\"{seconds}\" is not a number of seconds; write `fuzz 60`"))
        }),
        [_, second, ..] => {
            Err(Failure::usage(format!("`fuzz` takes one number of seconds, but also got \"{second}\"")))
        }
    }
}

fn require_tools(has_fuzz: bool, has_nightly: impl Fn() -> Result<bool, Failure>) -> Result<(), Failure> {
    if !has_fuzz {
        return Err(Failure::new("cargo-fuzz is not installed; `cargo install --locked cargo-fuzz`"));
    }
    if !has_nightly()? {
        let remedy = "`rustup toolchain install nightly --profile minimal`";
        return Err(Failure::new(format!("nightly is not installed, which cargo-fuzz needs; {remedy}")));
    }
    Ok(())
}

fn command(target: &str, seconds: u64, folder: &Path) -> Result<Command, Failure> {
    let mut command = nightly_cargo(&["fuzz", "run", target])?;
    command.arg(folder.join("corpus").join(target)).args(["--", MAX_BYTES]);
    command.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    command.env("CARGO_TARGET_DIR", folder);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Result<u64, Failure> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_minute_unless_told() {
        assert_eq!(parse_words("").unwrap(), 60);
        assert_eq!(parse_words("5").unwrap(), 5);
    }

    #[test]
    fn what_is_not_a_number_of_seconds_is_a_usage_error() {
        for line in ["0", "-1", "1.5", "long", "5 6"] {
            assert_eq!(parse_words(line).unwrap_err().code(), 2, "{line}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let words = |has_fuzz, has_nightly| {
            require_tools(has_fuzz, || Ok(has_nightly)).map_err(|failure| failure.to_string())
        };
        assert_eq!(words(true, true), Ok(()));
        assert!(words(false, true).unwrap_err().contains("cargo install --locked cargo-fuzz"));
        assert!(words(true, false).unwrap_err().contains("rustup toolchain install nightly"));
    }

    #[test]
    fn targets_run_for_the_time_and_keep_what_they_found_out_of_the_checkout() {
        let described = describe(&command("zone_header", 5, Path::new("/folder")).unwrap());

        let run = "cargo +nightly fuzz run zone_header /folder/corpus/zone_header";
        let rest = "-- -max_len=5000 -max_total_time=5 -print_final_stats=1";
        assert_eq!(described, format!("{run} {rest}"));
    }

    #[test]
    fn every_target_has_its_file() {
        for target in TARGETS {
            let path = crate::workspace::root().join(format!("fuzz/fuzz_targets/{target}.rs"));
            assert!(path.is_file(), "{}", path.display());
        }
    }
}
