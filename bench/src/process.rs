//! This program once more, in a process of its own, and what a process takes.

use std::process::Command;
use std::{env, fs};

/// What this program prints when it is given these arguments, or what it complains about.
pub(crate) fn in_own_process(arguments: &[&str]) -> Result<String, String> {
    let bench = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(bench).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// What is resident of this process, in bytes.
pub(crate) fn resident() -> Option<usize> {
    status("self", "VmRSS:")
}

/// What is resident of another process, in bytes.
pub(crate) fn resident_of(process: u32) -> Option<usize> {
    status(&process.to_string(), "VmRSS:")
}

/// The most that was ever resident of this process, in bytes.
pub(crate) fn most_resident() -> Option<usize> {
    status("self", "VmHWM:")
}

fn status(process: &str, name: &str) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}
