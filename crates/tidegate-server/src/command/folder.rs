//! A zone's file that other users of the machine can remove.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The permission of everyone to create and remove files in a folder.
const ANYONE_WRITES: u32 = 0o002;
/// With this bit only the owner of a file removes it, as in `/tmp`.
const STICKY: u32 = 0o1000;

/// The warning about a folder of this file to which anyone can write.
///
/// The server starts all the same: volumes of containers are often folders of this kind with one user.
pub(super) fn warning(file: &Path) -> Option<String> {
    // A link that is in a private folder may lead to one that is not.
    let real = fs::canonicalize(file).ok();
    let mode = [Some(file), real.as_deref()].into_iter().flatten().find_map(open_mode)?;
    Some(format!(
        "anyone can write to the folder of {} (mode {mode:o}) and remove the file, so that a restart begins with all counts \
         anew; use a folder of its own, or run `chmod o-w` on this one",
        file.display()
    ))
}

/// Returns the permissions of the folder of this file if anyone can remove the file.
fn open_mode(file: &Path) -> Option<u32> {
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mode = fs::metadata(folder).ok()?.mode() & 0o7777;
    (mode & ANYONE_WRITES != 0 && mode & STICKY == 0).then_some(mode)
}
