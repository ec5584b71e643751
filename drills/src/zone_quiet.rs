//! A decision takes no lock, no memory and no system call.
//!
//! A process of its own takes two million decisions between two calls that mark the beginning and the end, on two
//! threads that are in each other's way. `strace` writes down every system call of both: there must be none between
//! the marks. (The time is read from the processor, and from memory that the kernel shares.) A lock that a thread has
//! to wait for would be a call. What is allocated is counted by the program's allocator.

mod work;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::Outcome;
use harness::{Folder, Options, Report, once_more, thousands};
use work::Counted;

pub(crate) use work::{PART, part};

const DECISIONS: u64 = 2_000_000;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let scratch = Folder::new(report.name());
    let decisions = options.scaled(DECISIONS).to_string();
    // A reader of the process's clock may come to steer it; the system's own needs nothing like that.
    let zones = [
        ("in memory", String::new()),
        ("in memory by the system's clock", work::SYSTEM_CLOCK.to_owned()),
        ("in a file", scratch.file("zone.tg").display().to_string()),
    ];
    for (place, zone) in zones {
        let arguments = [decisions.clone(), zone];
        let counted = Counted::read(&output_of(once_more()?.arg(PART).args(&arguments))?)?;
        say(place, &counted, report);
        judge_calls(place, &arguments, &scratch.file("trace"), report)?;
    }
    Ok(())
}

fn say(place: &str, counted: &Counted, report: &mut Report) {
    report.fact(format!(
        "zone {place}: {} decisions by two threads: the same key, known keys, newcomers, newcomers who share",
        thousands(counted.decisions),
    ));
    report.fact(format!(
        "zone {place}: admitted {}, newcomers that got a cell {}, decided sharing {}, exchanges lost to the other {}",
        thousands(counted.admitted),
        thousands(counted.inserts),
        thousands(counted.shared),
        thousands(counted.retries),
    ));
    let claim = format!("zone {place}: nothing is allocated");
    report.claim(counted.allocations == 0, &claim, format!("{} allocations", counted.allocations));
}

fn judge_calls(place: &str, arguments: &[String], file: &Path, report: &mut Report) -> Outcome {
    let known = Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !known.is_ok_and(|status| status.success()) {
        report.fact(format!("zone {place}: system calls: skipped: no strace"));
        return Ok(());
    }
    let mut part = once_more()?;
    part.arg(PART).args(arguments);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o"]).arg(file).arg(part.get_program()).args(part.get_args());
    output_of(&mut strace)?;
    let trace = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let calls = work::between_marks(&trace)?;
    let claim = format!("zone {place}: no system call between the marks");
    let first = calls.first().map_or_else(String::new, |call| format!(", the first: {call}"));
    let all = trace.lines().count();
    report.claim(calls.is_empty(), &claim, format!("{} of {all} in all{first}", calls.len()));
    Ok(())
}

/// What a command says, if it ends well.
fn output_of(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(format!(
        "{:?} ended with {status}: {}",
        command.get_program(),
        String::from_utf8_lossy(&stderr).trim()
    ))
}
