//! A folder beside this program, which is in the target folder, for as long as it is needed.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new() -> Folder {
        let program = env::current_exe().expect("a program knows where it is");
        let path = program.with_file_name(format!("bench-zone-{}", process::id()));
        fs::create_dir_all(&path).expect("the target folder can be written to");
        Folder { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}
