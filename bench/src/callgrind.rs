//! Instructions of a function, which are the same on a busy machine: valgrind sees this program run once more.

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

fn instructions(counted: &str, arguments: &[&str]) -> io::Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(format!("--toggle-collect={counted}")).arg(env::current_exe()?).args(arguments);
    let output = valgrind.output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let counted = if output.status.success() { collected(&report) } else { None };
    counted.ok_or_else(|| io::Error::other(report.into_owned()))
}

/// What a report of callgrind says: `==7== Collected : 1234`.
fn collected(report: &str) -> Option<u64> {
    report.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_callgrind_is_read() {
        let report = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 1234\n==7== \n";
        assert_eq!(collected(report), Some(1234));
        assert_eq!(collected("==7== Callgrind\n"), None);
    }
}
