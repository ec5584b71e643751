//! Programs that are compared and have to be built first.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::{now, pause};

/// How long a build may take.
const BUILD_WITHIN: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The target folder, in a folder of which this program is.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    let target = program.parent().and_then(Path::parent).map(Path::to_owned);
    target.ok_or_else(|| format!("{} is not in a target folder", program.display()))
}

/// Cargo in the folder of the workspace, building into this folder.
pub(crate) fn cargo(target: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(ROOT).env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    command
}

/// Waits for a build, but not for ever.
pub(crate) fn build(name: &str, command: &mut Command) -> Result<(), String> {
    eprintln!("bench: building {name}");
    let start = now();
    let mut child = command.spawn().map_err(|error| format!("{name} is not built: {error}"))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{name} is not built: cargo ended with {status}")),
            Ok(None) if start.elapsed() < BUILD_WITHIN => pause(LOOK_EVERY),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} is not built after {BUILD_WITHIN:?}"));
            }
        }
    }
}
