//! Asks cargo-mutants which changes to what decides, keeps, waits and admits no test would notice.
//!
//! A missed mutant fails the command; a mutant that runs into the time limit was noticed, but is worth a look.
//! Each job builds in its own copy, so the shared target folder is not used.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::arguments::after_dashes;
use crate::failure::Failure;
use crate::run::{describe, not_started};
use crate::workspace::{cargo, has_cargo_tool, target_folder};

/// What is mutated, below the library's `src`; a pattern that matches nothing is no error.
const FILES: [&str; 12] = [
    "algorithm/**",
    "direct.rs",
    "direct/**",
    "dynamic.rs",
    "limiter/**",
    "pacer.rs",
    "permits.rs",
    "seqlock.rs",
    "shaper.rs",
    "store/**",
    "time/**",
    "wait/**",
];

/// What tests need is not mutated, but cargo-mutants knows it only where `cfg(test)` stands alone. What is printed
/// for programmers decides nothing, and what other systems need is not even compiled on this one.
const NOT_MUTATED: &str = r"\b(models|tests)(::|\.rs|/)|\belsewhere::|fmt::Debug";

/// After this long a mutant counts as noticed: it waits for what never comes, or works without end.
const TIMEOUT_SECONDS: &str = "20";

/// Exit codes of cargo-mutants after which its lists are complete: all caught, some missed, some timed out.
const COMPLETED: [i32; 3] = [0, 2, 3];

/// The names of mutants by outcome.
#[derive(Debug, Default)]
struct Tally {
    caught: Vec<String>,
    missed: Vec<String>,
    unviable: Vec<String>,
    timeout: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let extra = after_dashes(arguments, "cargo-mutants")?;
    if !has_cargo_tool("mutants")? {
        return Err(Failure::new("cargo-mutants is not installed; `cargo install --locked cargo-mutants`"));
    }
    let folder = target_folder()?.join("mutants");
    fs::create_dir_all(&folder).map_err(Failure::at(&folder))?;
    mutate(extra, &folder)?;
    if extra.iter().any(|argument| argument.starts_with("--list")) {
        return Ok(());
    }
    let tally = Tally::read(&folder.join("mutants.out"))?;
    print!("{}", tally.report());
    tally.judge(extra)
}

fn mutate(extra: &[String], folder: &Path) -> Result<(), Failure> {
    let mut command = command(extra, folder)?;
    println!("{}", describe(&command));
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    match status.code() {
        Some(code) if COMPLETED.contains(&code) => Ok(()),
        _ => Err(Failure::new(format!("cargo-mutants ended with {status}"))),
    }
}

fn command(extra: &[String], folder: &Path) -> Result<Command, Failure> {
    let mut command = cargo(&["mutants", "-p", "tidegate-core"])?;
    for file in FILES {
        command.args(["--file", &format!("crates/tidegate-core/src/{file}")]);
    }
    command.args(["--exclude-re", NOT_MUTATED]);
    command.args(["--test-tool", "cargo", "--profile", "mutants"]);
    command.args(["--cargo-test-arg=--lib", "--cargo-test-arg=--test=it"]);
    command.args(["--jobs", "2", "--timeout", TIMEOUT_SECONDS, "--copy-target", "false"]);
    command.arg("--output").arg(folder).args(extra);
    command.env("TIDEGATE_TRACES", "300").env_remove("CARGO_TARGET_DIR");
    Ok(command)
}

impl Tally {
    fn read(folder: &Path) -> Result<Self, Failure> {
        let names = |file: &str| {
            let path = folder.join(file);
            let text = fs::read_to_string(&path).map_err(Failure::at(&path))?;
            Ok::<_, Failure>(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            caught: names("caught.txt")?,
            missed: names("missed.txt")?,
            unviable: names("unviable.txt")?,
            timeout: names("timeout.txt")?,
        })
    }

    fn report(&self) -> String {
        let mut text = String::new();
        for (outcome, names) in [("missed", &self.missed), ("timeout", &self.timeout)] {
            for name in names {
                text.push_str(&format!("{outcome}: {name}\n"));
            }
        }
        text.push_str(&format!(
            "caught {} missed {} unviable {} timeout {}\n",
            self.caught.len(),
            self.missed.len(),
            self.unviable.len(),
            self.timeout.len()
        ));
        text
    }

    /// With `extra` arguments the run may have been narrowed to nothing on purpose.
    fn judge(&self, extra: &[String]) -> Result<(), Failure> {
        let tested = self.caught.len() + self.missed.len() + self.timeout.len();
        if !self.missed.is_empty() {
            Err(Failure::new(format!("mutants that no test notices: {}", self.missed.len())))
        } else if tested == 0 && extra.is_empty() {
            Err(Failure::new("no mutant was tested; is there code in the FILES of xtask/src/mutants.rs?"))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_missed_mutant_fails_and_is_named() {
        let tally = Tally { caught: names(&["a"]), missed: names(&["b"]), ..Tally::default() };

        assert_eq!(tally.report(), "missed: b\ncaught 1 missed 1 unviable 0 timeout 0\n");
        assert_eq!(tally.judge(&[]).unwrap_err().code(), 1);
    }

    #[test]
    fn a_timeout_is_named_but_passes() {
        let tally = Tally { timeout: names(&["c"]), ..Tally::default() };

        assert_eq!(tally.report(), "timeout: c\ncaught 0 missed 0 unviable 0 timeout 1\n");
        assert!(tally.judge(&[]).is_ok());
    }

    #[test]
    fn a_whole_run_without_mutants_fails_but_a_narrowed_one_passes() {
        let tally = Tally { unviable: names(&["d"]), ..Tally::default() };

        assert!(tally.judge(&[]).is_err());
        assert!(tally.judge(&names(&["--iterate"])).is_ok());
    }

    #[test]
    fn each_pattern_is_a_file_argument_of_its_own_and_extra_arguments_come_last() {
        let command = command(&names(&["--shard", "1/4"]), Path::new("/folder")).unwrap();
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();

        for file in FILES {
            let expected = ["--file".to_owned(), format!("crates/tidegate-core/src/{file}")];
            assert!(arguments.windows(2).any(|pair| pair == expected), "{file}");
        }
        assert_eq!(arguments[arguments.len() - 3..], ["/folder", "--shard", "1/4"]);
    }
}
