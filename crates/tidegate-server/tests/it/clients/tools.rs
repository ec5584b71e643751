//! Paths of the installed clients.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder with the scripts and the files that pin their versions.
pub(super) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Returns the Python interpreter with redis-py and fastapi.
pub(crate) fn python() -> PathBuf {
    prepared().join("venv/bin/python")
}

/// Returns a recent Node.js.
pub(crate) fn node() -> PathBuf {
    prepared().join("node/bin/node")
}

/// Returns the folder with ioredis, node-redis and Express.
pub(crate) fn node_modules() -> PathBuf {
    prepared().join("node_modules")
}

/// Finds a program in `PATH`, or among those of the system's administrator.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed; `cargo xtask clients` installs it"))
}

/// Returns the folder that `cargo xtask clients` has prepared. Panics if its versions are not the pinned ones.
fn prepared() -> PathBuf {
    let folder = folder().expect("TIDEGATE_CLIENTS, XDG_CACHE_HOME or HOME says where the clients are");
    for name in ["package-lock.json", "requirements.txt"] {
        let wanted = fs::read(scripts().join(name)).expect("it is in the repository");
        let is_same = fs::read(folder.join(name)).is_ok_and(|found| found == wanted);
        assert!(is_same, "no such clients in {}; `cargo xtask clients` gets them", folder.display());
    }
    folder
}

fn folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable("TIDEGATE_CLIENTS").or_else(|| Some(cache()?.join("tidegate/clients")))
}
