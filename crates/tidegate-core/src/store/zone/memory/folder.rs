//! A folder for one test.
//!
//! Each test has a folder of its own, so tests of files can run at the same time. A killed test leaves its folder
//! behind.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

/// The number of folders that this process has created, which makes their names unique.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A folder that is removed with its content when it is dropped.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder in the temporary folder of the system, which `TMPDIR` selects.
    pub(super) fn new() -> Folder {
        Folder::inside(&env::temp_dir())
    }

    /// Creates a folder in another one, for tests that need a certain file system.
    pub(super) fn inside(place: &Path) -> Folder {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("tidegate-test-{}-{number}", process::id()));
        fs::create_dir(&path).expect("a folder for files of tests");
        Folder(path)
    }

    /// Returns the path of an entry, which need not exist.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the names of its entries, in order.
    pub(super) fn names(&self) -> Vec<String> {
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
