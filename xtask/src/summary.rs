//! What test programs say at their end: how many tests passed.
//!
//! A filter that matches nothing is green as well, so whoever relies on a run asks for the number.

use std::io;
use std::process::Command;

use crate::failure::Failure;
use crate::run::succeed_and_keep;

/// Runs tests and shows what they print; the number that passed, which may be 0, or a failure if one failed.
pub(crate) fn run_tests(command: &mut Command) -> Result<u64, Failure> {
    succeed_and_keep(command, io::stdout()).map(|output| passed(&output))
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
    fn passed_tests_are_counted() {
        let output = "\nrunning 3 tests\n...\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        assert_eq!(passed(output), 3);
        assert_eq!(passed(&output.repeat(2)), 6);
    }

    #[test]
    fn tests_that_were_ignored_filtered_out_or_never_run_did_not_pass() {
        assert_eq!(passed("test result: ok. 0 passed; 0 failed; 2 ignored; 7 filtered out\n"), 0);
        assert_eq!(passed("running 0 tests\n"), 0);
    }
}
