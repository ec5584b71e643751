//! The atomic creation of a zone's file or a state file.
//!
//! The file is created under a temporary name in the same folder, with all its bytes on disk. It gets its final name
//! only when it is complete. No process ever opens an incomplete zone, and a full disk is an error now, not a signal
//! later.
//!
//! A process that is killed while it creates a file leaves the temporary one, whose name starts with `.tidegate-`. It
//! is never opened, and can be removed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;

use super::epoch::{Reading, begin};
use super::error::{Attempt, ZoneError, ZoneProblem};
use super::header::{Geometry, Header, Identity};
use super::record::PLACES;
use super::seed::fresh_seed;
use super::system;

/// The permissions: the owner may read and write.
const MODE: u32 = 0o600;

/// Creates a new zone, unless the path exists. It starts a new set of files, unless it belongs to one. If another
/// process has created the path meanwhile, that file stays, and this is not an error.
pub(super) fn create(
    path: &Path,
    geometry: Geometry,
    identity: Option<Identity>,
    now: &Reading,
) -> Result<(), ZoneError> {
    let identity = identity.unwrap_or_else(|| Identity::first(fresh_seed()[0]));
    let header = Header::new(geometry, identity, fresh_seed(), now.wall.as_secs());
    let header = header.ok_or_else(|| ZoneError::new(path, ZoneProblem::TooLarge))?;
    create_whole(path, header.length, &|file| {
        file.write_all_at(&header.encode(), 0)?;
        file.write_all_at(&begin(now).encode(), PLACES[0] as u64)
    })
}

/// Creates a file of `length` bytes, all zero except those that `fill` writes, unless the path exists. The folder is
/// synced as well, so the name survives a power failure.
pub(super) fn create_whole(
    path: &Path,
    length: u64,
    fill: &dyn Fn(&File) -> io::Result<()>,
) -> Result<(), ZoneError> {
    let failed = |error| ZoneError::failed(path, Attempt::Create, error);
    path.file_name().ok_or_else(|| ZoneError::new(path, ZoneProblem::NoName))?;
    let folder = folder_of(path);
    let opened = File::open(folder).map_err(failed)?;
    if let Some(name) = system::network(&opened).map_err(failed)? {
        return Err(ZoneError::new(path, ZoneProblem::OnNetwork(name)));
    }
    let temporary = Temporary::new(folder).map_err(failed)?;
    let written = || {
        temporary.file.set_permissions(Permissions::from_mode(MODE))?;
        system::allocate(&temporary.file, length)?;
        fill(&temporary.file)?;
        temporary.file.sync_all()
    };
    written().map_err(|error| ZoneError::not_made(path, length, error))?;
    match system::publish(&temporary.path, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        published => published.and_then(|()| opened.sync_all()).map_err(failed),
    }
}

/// Returns the folder of a path; that of a bare file name is the current one.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file under a unique temporary name, which is removed in any case.
#[derive(Debug)]
struct Temporary {
    /// The temporary path, in the folder of the final one: a rename does not cross file systems.
    path: PathBuf,
    file: File,
}

impl Temporary {
    /// Creates the file. Process id and random bits make the name unique; an existing file is an error.
    fn new(folder: &Path) -> io::Result<Temporary> {
        let path = folder.join(format!(".tidegate-{}-{:016x}.tmp", process::id(), fresh_seed()[0]));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(&path)?;
        Ok(Temporary { path, file })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The error cannot be reported, and after publication the name does not exist.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_in_the_folder_of_the_process() {
        assert_eq!(folder_of(Path::new("zone.tg")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/zone.tg")), Path::new("a"));
        assert_eq!(folder_of(Path::new("/zone.tg")), Path::new("/"));
    }
}
