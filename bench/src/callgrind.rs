//! Instructions and allocations, which are the same on a busy machine: valgrind sees this program run once more.

use std::process::Command;
use std::{env, io};

/// The instructions of this program with these arguments, in functions whose name fits the pattern.
pub(crate) fn instructions(counted: &str, arguments: &[&str]) -> io::Result<u64> {
    let toggle = format!("--toggle-collect={counted}");
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &toggle];
    counted_by(&tool, arguments, "Collected :")
}

/// The allocations of this program with these arguments, from its start to its end.
pub(crate) fn allocations(arguments: &[&str]) -> io::Result<u64> {
    counted_by(&["--tool=memcheck", "--leak-check=no"], arguments, "total heap usage:")
}

fn counted_by(tool: &[&str], arguments: &[&str], label: &str) -> io::Result<u64> {
    let output = Command::new("valgrind").args(tool).arg(env::current_exe()?).args(arguments).output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let counted = if output.status.success() { number(&report, label) } else { None };
    counted.ok_or_else(|| io::Error::other(report.into_owned()))
}

/// The number behind a label in a report of valgrind: `==7== Collected : 1234`.
fn number(report: &str, label: &str) -> Option<u64> {
    let text = report.lines().find_map(|line| Some(line.split_once(label)?.1.trim_start()))?;
    text.split(' ').next()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_valgrind_are_read() {
        let report = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 1234\n==7== \n";
        assert_eq!(number(report, "Collected :"), Some(1234));
        assert_eq!(number("==7== Callgrind\n", "Collected :"), None);
        let report = "==7==   total heap usage: 31,034 allocs, 31,020 frees, 9,112 bytes allocated\n";
        assert_eq!(number(report, "total heap usage:"), Some(31_034));
    }
}
