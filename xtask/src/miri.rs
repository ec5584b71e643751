//! Runs the unit tests of the library under miri, which sees undefined behaviour that a processor forgives.
//!
//! Miri comes with nightly only, which nobody needs for anything else here: without it the command says so and
//! succeeds. Miri builds in `miri` inside the target folder by itself.

use std::process::Command;

use crate::arguments::after_dashes;
use crate::failure::Failure;
use crate::run::{describe, set_unless_set};
use crate::summary::run_tests;
use crate::workspace::{has_nightly_tool, nightly_cargo};

/// Tests may read the clock and the environment.
const FLAGS: &str = "-Zmiri-disable-isolation";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let extra = after_dashes(arguments, "the test program")?;
    if !has_nightly_tool("miri")? {
        let remedy = "`rustup toolchain install nightly --component miri`";
        println!("miri: nightly with miri is not installed, skipped; {remedy}");
        return Ok(());
    }
    let mut command = command(extra)?;
    println!("{}", describe(&command));
    judge(run_tests(&mut command)?)
}

fn command(extra: &[String]) -> Result<Command, Failure> {
    let mut command = nightly_cargo(&["miri", "test", "-p", "tidegate", "--lib", "--locked", "--"])?;
    command.args(extra);
    set_unless_set(&mut command, "MIRIFLAGS", FLAGS);
    Ok(command)
}

fn judge(passed: u64) -> Result<(), Failure> {
    if passed == 0 {
        return Err(Failure::new("no test ran under miri: the words after `--` are parts of test names"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_unit_tests_run_unless_filters_are_given() {
        let all = describe(&command(&[]).unwrap());
        let some = describe(&command(&["store".to_owned(), "wait".to_owned()]).unwrap());

        assert!(all.ends_with("cargo +nightly miri test -p tidegate --lib --locked --"), "{all}");
        assert_eq!(some, format!("{all} store wait"));
    }

    #[test]
    fn a_run_without_a_test_fails() {
        assert!(judge(1).is_ok());
        assert_eq!(judge(0).unwrap_err().code(), 1);
    }
}
