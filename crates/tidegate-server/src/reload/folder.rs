//! A temporary folder for the files of one test.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is removed on drop, with all of its contents.
#[derive(Debug)]
pub(crate) struct Folder(testbed::Folder);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(testbed::Folder::new("rules"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    /// Puts a file in place atomically, as editors do.
    pub(crate) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let beside = self.path("beside");
        fs::write(&beside, text).expect("a file can be written");
        fs::rename(beside, self.path(name)).expect("it can be moved");
    }

    /// Points a symbolic link to `target`, atomically.
    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        let beside = self.path("beside");
        std::os::unix::fs::symlink(target, &beside).expect("a link can be made");
        fs::rename(beside, self.path(name)).expect("it can be moved");
    }

    /// Returns the names of its entries, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder is there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry that can be read").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
