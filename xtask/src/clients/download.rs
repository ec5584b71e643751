//! Runs what downloads, and says so if there is no network.

use std::process::Command;

use crate::failure::Failure;
use crate::run::{describe, output};

/// What pip, npm and apt say when they reach nobody.
const UNREACHABLE: [&str; 9] = [
    "Temporary failure",
    "Could not resolve",
    "Failed to establish a new connection",
    "Name or service not known",
    "Network is unreachable",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ETIMEDOUT",
];

/// Runs a child that needs the network; its output is only of interest when it fails.
pub(super) fn download(command: &mut Command) -> Result<(), Failure> {
    let described = describe(command);
    println!("{described}");
    let output = output(command)?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    eprint!("{said}");
    Err(Failure::new(match is_unreachable(&said) {
        true => format!("there is no network to download from; {described}"),
        false => format!("{described} ended with {}", output.status),
    }))
}

fn is_unreachable(said: &str) -> bool {
    UNREACHABLE.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(), String> {
        download(Command::new("sh").args(["-c", script])).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_network_that_is_not_there_is_named() {
        assert_eq!(shell("true"), Ok(()));
        assert!(shell("echo npm error code EAI_AGAIN >&2; exit 1").unwrap_err().contains("no network"));
        let wrong = shell("echo npm error code EINTEGRITY >&2; exit 1").unwrap_err();
        assert!(wrong.contains("exit status: 1") && !wrong.contains("network"), "{wrong}");
    }
}
