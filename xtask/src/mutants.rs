//! Asks cargo-mutants which changes to the algorithms no test would notice.
//!
//! A missed mutant fails the command; a mutant that runs into the time limit was noticed, but is worth a look.
//! Each job builds in its own copy, so the shared target folder is not used.

use std::fs;
use std::path::Path;

use crate::failure::Failure;
use crate::run::{describe, not_started};
use crate::workspace::{cargo, has_cargo_tool, target_folder};

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
    let extra = after_dashes(arguments)?;
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

fn after_dashes(arguments: &[String]) -> Result<&[String], Failure> {
    match arguments.split_first() {
        None => Ok(arguments),
        Some((dashes, extra)) if dashes == "--" => Ok(extra),
        Some((first, _)) => Err(Failure::usage(format!("write `-- {first}` to pass it to cargo-mutants"))),
    }
}

fn mutate(extra: &[String], folder: &Path) -> Result<(), Failure> {
    let mut command = cargo(&["mutants", "-p", "tidegate", "--file", "crates/tidegate/src/algorithm/**"])?;
    command.args(["--test-tool", "cargo", "--profile", "mutants"]);
    command.args(["--cargo-test-arg=--lib", "--cargo-test-arg=--test=it"]);
    command.args(["--jobs", "2", "--timeout", "20", "--copy-target", "false", "--output"]);
    command.arg(folder).args(extra);
    command.env("TIDEGATE_TRACES", "300").env_remove("CARGO_TARGET_DIR");
    println!("{}", describe(&command));
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    match status.code() {
        Some(code) if COMPLETED.contains(&code) => Ok(()),
        _ => Err(Failure::new(format!("cargo-mutants ended with {status}"))),
    }
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
            Err(Failure::new("no mutant was tested; are there algorithms in crates/tidegate/src/algorithm?"))
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
    fn arguments_for_cargo_mutants_come_after_dashes() {
        assert_eq!(after_dashes(&names(&["--", "--shard", "1/4"])).unwrap(), names(&["--shard", "1/4"]));
        assert_eq!(after_dashes(&names(&["--shard"])).unwrap_err().code(), 2);
    }
}
