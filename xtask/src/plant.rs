//! Plants known faults, one at a time, and demands that the tests named for each turn red.
//!
//! A suite that is green says little until it has been seen to fail. Each fault is a file `xtask/faults/NN-name.txt`
//! ([`fault`] documents the format) and is planted in a scratch copy of the repository ([`scratch`]), never here.
//! A fault that does not compile, or whose text is not found exactly once, is itself at fault.

mod fault;
mod scratch;

use std::collections::BTreeSet;
use std::fs;

use crate::failure::Failure;
use crate::workspace::root;
use fault::{Fault, Test};
use scratch::{Built, Ending, Scratch};

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let faults = chosen(load()?, arguments)?;
    let scratch = Scratch::open()?;
    let planted = faults.iter().map(|fault| plant(fault, &scratch)).collect::<Result<Vec<_>, _>>()?;
    require_green(&faults, &scratch)?;
    let mut failed = 0;
    for (fault, text) in faults.iter().zip(&planted) {
        let original = scratch.read(&fault.file)?;
        scratch.write(&fault.file, text)?;
        let noticed = provoke(fault, &scratch);
        scratch.write(&fault.file, &original)?;
        failed += usize::from(!noticed?);
    }
    println!("{} passed, {failed} failed", faults.len() - failed);
    if failed == 0 {
        Ok(())
    } else {
        Err(Failure::new(format!("faults that survived or did not compile: {failed}")))
    }
}

/// All fault files, in the order of their numbers.
fn load() -> Result<Vec<Fault>, Failure> {
    let folder = root().join("xtask/faults");
    let mut faults = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Failure::at(&folder))? {
        let path = entry.map_err(Failure::at(&folder))?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).map_err(Failure::at(&path))?;
            faults.push(Fault::parse(&name, &text)?);
        }
    }
    faults.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(faults)
}

/// Keeps the faults that one of the words names: by number, by a range of numbers `63..99`, or by a part of the name.
fn chosen(mut faults: Vec<Fault>, words: &[String]) -> Result<Vec<Fault>, Failure> {
    if words.is_empty() {
        return Ok(faults);
    }
    if let Some(word) = words.iter().find(|word| !faults.iter().any(|fault| is_named(fault, word))) {
        return Err(Failure::new(format!("no fault {word:?} in xtask/faults: nothing would be proven")));
    }
    faults.retain(|fault| words.iter().any(|word| is_named(fault, word)));
    Ok(faults)
}

fn is_named(fault: &Fault, word: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().ok();
    let of_fault = fault.name.split('-').next().and_then(number);
    let range = word.split_once("..").and_then(|(first, last)| Some(number(first)?..=number(last)?));
    match (range, number(word)) {
        (Some(range), _) => of_fault.is_some_and(|of_fault| range.contains(&of_fault)),
        (None, Some(word)) => of_fault == Some(word),
        (None, None) => fault.name.contains(word),
    }
}

fn plant(fault: &Fault, scratch: &Scratch) -> Result<String, Failure> {
    let original = scratch.read(&fault.file).map_err(|failure| failure.within(&fault.path()))?;
    fault.plant(&original)
}

/// Runs every named test without a fault: a test that is red anyway, or that does not exist, notices nothing.
fn require_green(faults: &[Fault], scratch: &Scratch) -> Result<(), Failure> {
    let tests: BTreeSet<&Test> = faults.iter().flat_map(|fault| &fault.tests).collect();
    for test in tests {
        let program = match scratch.build(test)? {
            Built::Program(program) => program,
            Built::Broken(errors) => {
                return Err(Failure::new(format!("without a fault, no build:\n{errors}")));
            }
        };
        match scratch.run(&program, test)? {
            Ending::Green { tests: 0 } => return Err(Failure::new(format!("no test matches `{test}`"))),
            Ending::Green { tests } => println!("without a fault: {test} is green ({tests} passed)"),
            Ending::Red { output } => {
                return Err(Failure::new(format!("{test} is red without a fault:\n{output}")));
            }
            Ending::Hung => return Err(Failure::new(format!("{test} does not end, even without a fault"))),
        }
    }
    Ok(())
}

/// Runs the tests of a planted fault; whether all of them noticed it.
fn provoke(fault: &Fault, scratch: &Scratch) -> Result<bool, Failure> {
    let mut noticed = true;
    for test in &fault.tests {
        let program = match scratch.build(test)? {
            Built::Program(program) => program,
            Built::Broken(errors) => {
                println!("fault {}: does not compile, so it proves nothing\n{errors}", fault.name);
                return Ok(false);
            }
        };
        match scratch.run(&program, test)? {
            Ending::Red { .. } => println!("fault {}: {test} turned red", fault.name),
            Ending::Hung => println!("fault {}: {test} turned red (it did not end)", fault.name),
            Ending::Green { .. } => {
                println!("fault {}: {test} SURVIVED ({})", fault.name, fault.what);
                noticed = false;
            }
        }
    }
    Ok(noticed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files;

    const FAULT: &str =
        "what: w\nfile: crates/c/src/a.rs\ntest: lib:t\nfind:\n<<<\na\n>>>\nreplace:\n<<<\nb\n>>>\n";

    #[test]
    fn faults_are_named_by_number_range_or_word() {
        let named = |word: &str| {
            let names =
                ["07-late", "70-lost", "107-lost-late"].map(|name| Fault::parse(name, FAULT).unwrap());
            let chosen = chosen(names.into(), &word.split(' ').map(str::to_owned).collect::<Vec<_>>());
            chosen.map(|faults| faults.into_iter().map(|fault| fault.name).collect::<Vec<_>>().join(" "))
        };

        assert_eq!(named("7").unwrap(), "07-late");
        assert_eq!(named("70..107").unwrap(), "70-lost 107-lost-late");
        assert_eq!(named("lost").unwrap(), "70-lost 107-lost-late");
        assert_eq!(named("07 70").unwrap(), "07-late 70-lost");
        assert_eq!(named("107-lost").unwrap(), "107-lost-late");
        assert!(named("07 unheard-of").is_err());
        assert!(named("200..300").is_err());
    }

    #[test]
    fn every_fault_can_still_be_planted() {
        for fault in load().unwrap() {
            let path = root().join(&fault.file);
            let original = fs::read_to_string(&path).unwrap();
            fault.plant(&original).unwrap_or_else(|failure| panic!("{}: {failure}", fault.name));
        }
    }

    /// A plant of all faults takes an hour, and would find this out on its way.
    #[test]
    fn every_named_test_is_in_the_sources() {
        let sources: String = files()
            .unwrap()
            .iter()
            .filter(|path| path.ends_with(".rs") && !path.starts_with("xtask/"))
            .map(|path| fs::read_to_string(root().join(path)).unwrap())
            .collect();
        for fault in load().unwrap() {
            for test in &fault.tests {
                let name = test.filter.rsplit("::").next().unwrap();
                assert!(sources.contains(name), "{}: no source has a test {name}", fault.name);
            }
        }
    }
}
