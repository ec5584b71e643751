//! The programs that are compared: ours and throttlecrab's are built, Redis is expected to be installed.

use std::path::PathBuf;

use super::{Server, redis, throttlecrab, tidegate};
use crate::building::{build, cargo, in_path, target_folder};

const THROTTLECRAB: &str = "throttlecrab-server";
const THROTTLECRAB_VERSION: &str = "0.4.40";

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
        self.tidegate.as_deref().and_then(|program| or_complain(tidegate::start(program, None)))
    }

    /// The same with these rules.
    pub(crate) fn tidegate_with_rules(&self, rules: &str) -> Option<Server> {
        self.tidegate.as_deref().and_then(|program| or_complain(tidegate::start(program, Some(rules))))
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

/// Our own server, built.
pub(crate) fn build_tidegate() -> Result<PathBuf, String> {
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
