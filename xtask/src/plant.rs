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

fn chosen(mut faults: Vec<Fault>, arguments: &[String]) -> Result<Vec<Fault>, Failure> {
    match arguments {
        [] => {}
        // A number is that of one fault.
        [word] if word.starts_with(|first: char| first.is_ascii_digit()) => {
            faults.retain(|fault| fault.name.starts_with(word));
        }
        [word] => faults.retain(|fault| fault.name.contains(word)),
        [_, extra, ..] => {
            return Err(Failure::usage(format!("`plant` takes one word, but also got \"{extra}\"")));
        }
    }
    if faults.is_empty() {
        return Err(Failure::new("no such fault in xtask/faults: nothing would be proven"));
    }
    Ok(faults)
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

    #[test]
    fn every_fault_can_still_be_planted() {
        for fault in load().unwrap() {
            let path = root().join(&fault.file);
            let original = fs::read_to_string(&path).unwrap();
            fault.plant(&original).unwrap_or_else(|failure| panic!("{}: {failure}", fault.name));
        }
    }
}
