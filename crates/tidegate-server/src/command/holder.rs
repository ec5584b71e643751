//! The process that has a file or a socket open, as far as `/proc` shows.

use std::fs;
use std::path::{Path, PathBuf};

/// The name and the number of a process that has one of these open, by the target of its link, if it can be seen.
pub(super) fn holder(targets: &[PathBuf]) -> Option<String> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        holds_one(&process.path(), targets).then(|| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            format!("{} (process {})", name.trim(), process.file_name().display())
        })
    })
}

fn holds_one(process: &Path, targets: &[PathBuf]) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| targets.contains(&target)))
}
