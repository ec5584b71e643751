//! This program once more as a server, which says on its first line where it listens.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::tidegate::first_line;
use super::{Process, Server};

/// Starts it with these arguments.
pub(crate) fn start(arguments: &[&str]) -> Result<Server, String> {
    let bench = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut process = Process::start(Command::new(bench).args(arguments), Stdio::piped())?;
    let output = process.0.stdout.take().expect("the output is a pipe that is taken once");
    let line = first_line(output)?;
    let address: SocketAddr = line.trim().parse().map_err(|_| format!("no address in {line:?}"))?;
    process.served(address, Some(address))
}
