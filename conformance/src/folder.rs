//! A folder for temporary files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

/// A new folder, which is removed with its value; zones keep their files open.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one that no other process has.
    #[expect(clippy::new_without_default, reason = "it makes something outside of the program")]
    pub fn new() -> Folder {
        Folder::within(&env::temp_dir())
    }

    /// The same in memory, where there is a file system for that: for what is not about a disk.
    pub fn in_memory() -> Folder {
        let shared = Some(PathBuf::from("/dev/shm")).filter(|shared| shared.is_dir());
        Folder::within(&shared.unwrap_or_else(env::temp_dir))
    }

    fn within(parent: &Path) -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("tidegate-conformance-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(name);
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a zone in it.
    pub fn zone(&self) -> PathBuf {
        self.0.join("zone.tg")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
