//! The workspace seen from outside: where it is, what is in it, and how to call cargo on it.
//!
//! Child cargos share one target folder in the user's cache unless `CARGO_TARGET_DIR` says otherwise, so several
//! checkouts do not build the same dependencies again.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::failure::Failure;

/// The folder that holds the workspace's `Cargo.toml`.
///
/// Checkouts share one target folder, in which Cargo names their programs alike: the path in a program may be that of
/// another checkout. Cargo says at run time which one it was started in.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let own = non_empty("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        own.parent().expect("xtask is a folder inside the workspace").to_owned()
    })
}

/// Where child cargos build.
pub(crate) fn target_folder() -> Result<PathBuf, Failure> {
    if let Some(folder) = non_empty("CARGO_TARGET_DIR") {
        return std::path::absolute(&folder).map_err(Failure::at(&folder));
    }
    Ok(cache_folder()?.join("target"))
}

/// What is ours in the user's cache.
pub(crate) fn cache_folder() -> Result<PathBuf, Failure> {
    let cache = non_empty("XDG_CACHE_HOME").or_else(|| Some(non_empty("HOME")?.join(".cache")));
    cache
        .map(|cache| cache.join("tidegate"))
        .ok_or_else(|| Failure::new("no place for what is built or downloaded: set XDG_CACHE_HOME or HOME"))
}

/// A variable that is set, and to something.
pub(crate) fn non_empty(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A cargo command that runs in the workspace root and builds in the shared target folder.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()).env("CARGO_TARGET_DIR", target_folder()?);
    Ok(command)
}

/// The same with rustup's nightly toolchain.
///
/// `CARGO` names the cargo of the pinned toolchain, which knows no other and which nightly's own tools would call.
pub(crate) fn nightly_cargo(arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(arguments).current_dir(root());
    command.env_remove("CARGO").env("CARGO_TARGET_DIR", target_folder()?);
    Ok(command)
}

/// Whether `cargo TOOL` is installed.
pub(crate) fn has_cargo_tool(tool: &str) -> Result<bool, Failure> {
    Ok(answers(&mut cargo(&[tool, "--version"])?))
}

/// Whether `cargo +nightly TOOL` is installed; rustup is not to install a toolchain only because it was asked.
pub(crate) fn has_nightly_tool(tool: &str) -> Result<bool, Failure> {
    Ok(answers(nightly_cargo(&[tool, "--version"])?.env("RUSTUP_AUTO_INSTALL", "0")))
}

fn answers(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Every file that is or could be committed, as sorted paths from the root with forward slashes.
///
/// Without git, or outside a checkout, all files count except those that builds leave behind.
pub(crate) fn files() -> Result<Vec<String>, Failure> {
    let mut paths = match listed_by_git() {
        Some(paths) => paths,
        None => walk(root())?,
    };
    // Git also lists tracked files that were deleted but not yet staged.
    paths.retain(|path| root().join(path).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn listed_by_git() -> Option<Vec<String>> {
    // A container often mounts a checkout that belongs to another user, which git refuses to read unless told.
    let trust = format!("safe.directory={}", root().display());
    let output = Command::new("git")
        .args(["-c", &trust, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .ok()?;
    let listing = String::from_utf8_lossy(&output.stdout);
    let paths: Vec<String> = listing.split_terminator('\0').map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

/// All files below a folder, as paths from it with forward slashes; build output and git's own files are left out.
pub(crate) fn walk(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut waiting = vec![String::new()];
    while let Some(prefix) = waiting.pop() {
        let place = folder.join(&prefix);
        for entry in fs::read_dir(&place).map_err(Failure::at(&place))? {
            let entry = entry.map_err(Failure::at(&place))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_file() {
                found.push(format!("{prefix}{name}"));
            } else if entry.path().is_dir() && !is_build_output(&name) {
                waiting.push(format!("{prefix}{name}/"));
            }
        }
    }
    Ok(found)
}

fn is_build_output(folder: &str) -> bool {
    matches!(folder, ".git" | "target") || folder.starts_with("mutants.out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_workspace() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join("xtask/Cargo.toml").is_file());
    }

    #[test]
    fn a_tool_is_installed_if_it_tells_its_version() {
        assert!(has_cargo_tool("clippy").unwrap());
        assert!(!has_cargo_tool("no-such-tool").unwrap());
        assert!(!has_nightly_tool("no-such-tool").unwrap());
    }

    #[test]
    fn walking_and_git_both_find_this_file_but_no_build_output() {
        for paths in [files().unwrap(), walk(root()).unwrap()] {
            assert!(paths.iter().any(|path| path == "xtask/src/workspace.rs"));
            assert!(!paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
        }
    }
}
