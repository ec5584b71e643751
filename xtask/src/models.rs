//! The unit tests of the library where threads meet in every order (loom), and under Miri.
//!
//! A model is a test in a module named `models` that exists only with `--cfg tidegate_models`. The flag changes every crate,
//! so models are built in a folder of their own, or they and the ordinary build would throw each other away.
//! One model alone: `cargo xtask models -- --exact seqlock::models::NAME`.
//!
//! Miri sees undefined behaviour that a processor forgives. It comes with nightly only, which nothing else here needs:
//! without it the command says so and succeeds.

use std::env;
use std::io;
use std::process::Command;

use crate::arguments::after_dashes;
use crate::failure::Failure;
use crate::run::{describe, set_unless_set, succeed_and_keep};
use crate::workspace::{cargo, has_nightly_tool, nightly_cargo, target_folder};

/// Preemptions per execution, which bound the search; loom says that two or three find most bugs.
const MAX_PREEMPTIONS: &str = "3";

/// Tests may read the clock and the environment.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation";

pub(crate) fn models(arguments: &[String]) -> Result<(), Failure> {
    let mut command = models_command(after_dashes(arguments, "the test program")?)?;
    println!("{}", describe(&command));
    let advice = "a model is a test in a module `models` with `#[cfg(all(test, tidegate_models))]`";
    judge(run_tests(&mut command)?, &format!("no model ran: {advice}"))
}

pub(crate) fn miri(arguments: &[String]) -> Result<(), Failure> {
    let extra = after_dashes(arguments, "the test program")?;
    if !has_nightly_tool("miri")? {
        let remedy = "`rustup toolchain install nightly --component miri`";
        println!("miri: nightly with miri is not installed, skipped; {remedy}");
        return Ok(());
    }
    let mut command = miri_command(extra)?;
    println!("{}", describe(&command));
    judge(run_tests(&mut command)?, "no test ran under miri: the words after `--` are parts of test names")
}

fn models_command(extra: &[String]) -> Result<Command, Failure> {
    let mut command = cargo(&["test", "-p", "tidegate-core", "--lib", "--locked", "--", "models"])?;
    command.args(extra).env("CARGO_TARGET_DIR", target_folder()?.join("models"));
    command.env("RUSTFLAGS", with_models(&env::var("RUSTFLAGS").unwrap_or_default()));
    set_unless_set(&mut command, "LOOM_MAX_PREEMPTIONS", MAX_PREEMPTIONS);
    Ok(command)
}

fn with_models(flags: &str) -> String {
    format!("{flags} --cfg tidegate_models").trim_start().to_owned()
}

fn miri_command(extra: &[String]) -> Result<Command, Failure> {
    let mut command = nightly_cargo(&["miri", "test", "-p", "tidegate-core", "--lib", "--locked", "--"])?;
    command.args(extra);
    set_unless_set(&mut command, "MIRIFLAGS", MIRI_FLAGS);
    Ok(command)
}

/// Runs tests and shows what they print; the number that passed, which may be 0, or a failure if one failed.
fn run_tests(command: &mut Command) -> Result<u64, Failure> {
    succeed_and_keep(command, io::stdout()).map(|output| passed(&output))
}

/// A filter that matches nothing is green as well, so the number of tests that passed is looked at.
fn judge(passed: u64, problem: &str) -> Result<(), Failure> {
    if passed == 0 { Err(Failure::new(problem)) } else { Ok(()) }
}

/// The number in `test result: ok. N passed`, added up over all test programs.
pub(crate) fn passed(output: &str) -> u64 {
    let summaries = output.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    summaries.filter_map(|summary| summary.split_once(" passed")?.0.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_added_to_those_that_are_there() {
        assert_eq!(with_models(""), "--cfg tidegate_models");
        assert_eq!(with_models("-C target-cpu=native"), "-C target-cpu=native --cfg tidegate_models");
    }

    #[test]
    fn models_are_built_in_a_folder_of_their_own() {
        let command = models_command(&[]).unwrap();
        let folder = command.get_envs().find(|(name, _)| *name == "CARGO_TARGET_DIR").unwrap().1;
        assert_eq!(folder.unwrap(), target_folder().unwrap().join("models"));
    }

    #[test]
    fn extra_arguments_reach_the_test_program() {
        let described = describe(&models_command(&["--nocapture".to_owned()]).unwrap());
        let expected = "cargo test -p tidegate-core --lib --locked -- models --nocapture";
        assert!(described.ends_with(expected), "{described}");

        let all = describe(&miri_command(&[]).unwrap());
        let some = describe(&miri_command(&["store".to_owned(), "wait".to_owned()]).unwrap());
        assert!(all.ends_with("cargo +nightly miri test -p tidegate-core --lib --locked --"), "{all}");
        assert_eq!(some, format!("{all} store wait"));
    }

    #[test]
    fn a_run_without_a_test_fails() {
        assert!(judge(1, "no model ran").is_ok());
        assert_eq!(judge(0, "no model ran").unwrap_err().code(), 1);
    }

    #[test]
    fn only_tests_that_passed_are_counted() {
        let output = "\nrunning 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        assert_eq!((passed(output), passed(&output.repeat(2))), (3, 6));
        assert_eq!(passed("test result: ok. 0 passed; 0 failed; 2 ignored; 7 filtered out\n"), 0);
        assert_eq!(passed("running 0 tests\n"), 0);
    }
}
