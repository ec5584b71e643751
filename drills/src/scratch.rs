//! A folder that is gone when the drill ends.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// A folder of this process among temporary files.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Scratch, String> {
        let folder = env::temp_dir().join(format!("tidegate-{name}-{}", process::id()));
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Scratch(folder)),
            Err(error) => Err(format!("{}: {error}", folder.display())),
        }
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    #[cfg(test)]
    fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A path as an argument for another process.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_gone_with_its_files() {
        let scratch = Scratch::new("scratch-test").unwrap();
        let folder = scratch.folder().to_owned();
        fs::write(scratch.file("a"), "b").unwrap();
        drop(scratch);
        assert!(!folder.exists());
    }
}
