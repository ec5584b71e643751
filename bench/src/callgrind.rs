//! Instructions and allocations, which are the same on a busy machine: valgrind sees this program run once more.

use std::env;
use std::io::{self, ErrorKind};
use std::process::Command;

/// The mean instructions of each of so many times that this program does something with these arguments, in functions
/// whose name fits the pattern; none if there is no valgrind.
pub(crate) fn mean(counted: &str, arguments: &[&str], times: u64) -> Result<Option<f64>, String> {
    match instructions(counted, arguments) {
        Ok(instructions) => Ok(Some(instructions as f64 / times as f64)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: there is no valgrind");
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The instructions of this program with these arguments, in functions whose name fits the pattern.
fn instructions(counted: &str, arguments: &[&str]) -> io::Result<u64> {
    let toggle = format!("--toggle-collect={counted}");
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &toggle];
    counted_by(&tool, arguments, "Collected :")
}

/// The allocations of this program with these arguments, from its start to its end.
pub(crate) fn allocations(arguments: &[&str]) -> Result<u64, String> {
    let counted = counted_by(&["--tool=memcheck", "--leak-check=no"], arguments, "total heap usage:");
    counted.map_err(|error| error.to_string())
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
