//! A folder for the files of one test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

static MADE: AtomicU64 = AtomicU64::new(0);

/// A folder that is removed with all that is in it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("tidegate-rules-{}-{number}", process::id()));
        fs::create_dir(&path).expect("a folder for files of tests");
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Puts a file in place, whole, as editors do.
    pub(crate) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let beside = self.path("beside");
        fs::write(&beside, text).expect("a file can be written");
        fs::rename(beside, self.path(name)).expect("it can be moved");
    }

    /// Has a link point there, in one step.
    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        let beside = self.path("beside");
        std::os::unix::fs::symlink(target, &beside).expect("a link can be made");
        fs::rename(beside, self.path(name)).expect("it can be moved");
    }

    /// The names of what is in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry that can be read").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
