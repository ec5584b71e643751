//! A folder that is gone with its value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

use crate::guard;

/// A new folder among temporary files.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder whose name begins like this, and that no other process has.
    pub fn new(name: &str) -> Folder {
        Folder::within(&env::temp_dir(), name)
    }

    /// Makes the same in another folder than that of temporary files, which may be in memory.
    pub fn within(parent: &Path, name: &str) -> Folder {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tidegate-{name}-{}-{number}", process::id()));
        // One that was left by a process of the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("folder {}: {error}", path.display()));
        guard::made(&path);
        Folder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file in it, whole.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("file {}: {error}", path.display()));
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gone_with_its_files() {
        let (one, other) = (Folder::new("folder"), Folder::new("folder"));
        assert_ne!(one.path(), other.path());
        let file = one.write("a", "b");
        assert_eq!(fs::read_to_string(&file).unwrap(), "b");
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
