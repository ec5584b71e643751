//! Runs the loom models of the library: every order in which threads can meet, up to a number of preemptions.
//!
//! A model is a test in a module named `models` that exists only with `--cfg tidegate_models`. The flag changes every crate,
//! so models are built in a folder of their own, or they and the ordinary build would throw each other away.
//! One model alone: `cargo xtask models -- --exact published::models::NAME`.

use std::env;
use std::process::Command;

use crate::arguments::after_dashes;
use crate::failure::Failure;
use crate::run::{describe, set_unless_set};
use crate::summary::run_tests;
use crate::workspace::{cargo, target_folder};

/// Preemptions per execution, which bound the search; loom says that two or three find most bugs.
const MAX_PREEMPTIONS: &str = "3";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut command = command(after_dashes(arguments, "the test program")?)?;
    println!("{}", describe(&command));
    judge(run_tests(&mut command)?)
}

fn command(extra: &[String]) -> Result<Command, Failure> {
    let mut command = cargo(&["test", "-p", "tidegate", "--lib", "--locked", "--", "models"])?;
    command.args(extra).env("CARGO_TARGET_DIR", target_folder()?.join("models"));
    command.env("RUSTFLAGS", with_models(&env::var("RUSTFLAGS").unwrap_or_default()));
    set_unless_set(&mut command, "LOOM_MAX_PREEMPTIONS", MAX_PREEMPTIONS);
    Ok(command)
}

fn with_models(flags: &str) -> String {
    format!("{flags} --cfg tidegate_models").trim_start().to_owned()
}

fn judge(passed: u64) -> Result<(), Failure> {
    if passed == 0 {
        let advice = "a model is a test in a module `models` with `#[cfg(all(test, tidegate_models))]`";
        return Err(Failure::new(format!("no model ran: {advice}")));
    }
    Ok(())
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
        let command = command(&[]).unwrap();
        let folder = command.get_envs().find(|(name, _)| *name == "CARGO_TARGET_DIR").unwrap().1;

        assert_eq!(folder.unwrap(), target_folder().unwrap().join("models"));
    }

    #[test]
    fn extra_arguments_reach_the_test_program() {
        let described = describe(&command(&["--nocapture".to_owned()]).unwrap());

        let expected = "cargo test -p tidegate --lib --locked -- models --nocapture";
        assert!(described.ends_with(expected), "{described}");
    }

    #[test]
    fn a_run_without_a_model_fails() {
        assert!(judge(1).is_ok());
        assert_eq!(judge(0).unwrap_err().code(), 1);
    }
}
