//! The programs that are compared: ours and throttlecrab's are built, Redis is expected to be installed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::stopwatch::{instant, pause};
use super::{Server, redis, throttlecrab, tidegate};

const THROTTLECRAB: &str = "throttlecrab-server";
const THROTTLECRAB_VERSION: &str = "0.4.40";
/// How long a build may take.
const BUILD_WITHIN: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Where they are; those that are not there have been complained about.
#[derive(Debug)]
pub(crate) struct Programs {
    tidegate: Option<PathBuf>,
    redis: Option<PathBuf>,
    throttlecrab: Option<PathBuf>,
}

impl Programs {
    /// Builds and looks for all; whoever is missing is left out of the tables, and its goals are missed.
    pub(crate) fn prepare() -> Programs {
        Programs {
            tidegate: or_complain(build_tidegate()),
            redis: or_complain(find_redis()),
            throttlecrab: or_complain(build_throttlecrab()),
        }
    }

    /// Our own server, freshly started.
    pub(crate) fn tidegate(&self) -> Option<Server> {
        self.tidegate.as_deref().and_then(|program| or_complain(tidegate::start(program)))
    }

    /// A Redis, freshly started.
    pub(crate) fn redis(&self) -> Option<Server> {
        self.redis.as_deref().and_then(|program| or_complain(redis::start(program)))
    }

    /// A throttlecrab-server, freshly started.
    pub(crate) fn throttlecrab(&self) -> Option<Server> {
        self.throttlecrab.as_deref().and_then(|program| or_complain(throttlecrab::start(program)))
    }
}

fn or_complain<T>(found: Result<T, String>) -> Option<T> {
    found.map_err(|problem| eprintln!("server: left out: {problem}")).ok()
}

fn build_tidegate() -> Result<PathBuf, String> {
    let target = target_folder()?;
    let mut cargo = cargo(&target);
    cargo.args(["build", "--release", "--locked", "-p", "tidegate-server", "--bin", "tidegate"]);
    build("tidegate", &mut cargo)?;
    Ok(target.join("release/tidegate"))
}

fn find_redis() -> Result<PathBuf, String> {
    in_path("redis-server").ok_or_else(|| {
        "redis-server is not installed; on Debian: apt-get install redis-server redis-tools".to_owned()
    })
}

fn build_throttlecrab() -> Result<PathBuf, String> {
    let target = target_folder()?;
    let peers = target.join("peers");
    let program = peers.join("bin").join(THROTTLECRAB);
    if program.is_file() {
        return Ok(program);
    }
    // Without it the build fails half-way, and its build script is not asked again.
    in_path("protoc").ok_or_else(|| {
        format!("{THROTTLECRAB} cannot be built without protoc; on Debian: apt-get install protobuf-compiler")
    })?;
    let mut cargo = cargo(&target);
    cargo
        .args(["install", THROTTLECRAB, "--version", THROTTLECRAB_VERSION, "--locked", "--root"])
        .arg(&peers);
    build(THROTTLECRAB, &mut cargo)?;
    Ok(program)
}

/// The target folder, in a folder of which this program is.
fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    let target = program.parent().and_then(Path::parent).map(Path::to_owned);
    target.ok_or_else(|| format!("{} is not in a target folder", program.display()))
}

fn cargo(target: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(ROOT).env("CARGO_TARGET_DIR", target).stdin(Stdio::null());
    command
}

/// Waits for a build, but not for ever.
fn build(name: &str, command: &mut Command) -> Result<(), String> {
    eprintln!("server: building {name}");
    let start = instant();
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

/// A program in one of the folders of `PATH`.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_the_shell_finds_it() {
        assert!(in_path("sh").is_some_and(|program| program.is_absolute()));
        assert_eq!(in_path("no-such-program"), None);
    }
}
